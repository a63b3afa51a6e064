"""Masked recipients for display and logs: recognizable to their owner only."""


def mask_email(address: str) -> str:
    """Return ``a***@example.com``."""
    local, _, domain = address.rpartition("@")
    return f"{local[:1]}***@{domain}"


def mask_phone(number: str) -> str:
    """Return ``***78``: the last two digits."""
    return f"***{number[-2:]}"
