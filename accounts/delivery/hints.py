"""Recipients as they may be shown and logged: enough for the owner to know which one is meant."""


def mask_email(address: str) -> str:
    """Give ``a***@example.com``."""
    local, _, domain = address.rpartition("@")
    return f"{local[:1]}***@{domain}"


def mask_phone(number: str) -> str:
    """Give ``***78``: the last two digits."""
    return f"***{number[-2:]}"
