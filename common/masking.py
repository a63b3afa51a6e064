"""Masked recipients for display and logs: recognizable to their owner only."""

from common.emails import MAX_EMAIL_CHARS


def mask_email(address: str) -> str:
    """Return ``a***@example.com``, no longer than an address."""
    local, _, domain = address.rpartition("@")
    # Masking lengthens a local part of one character by three; a very long domain is cut.
    return f"{local[:1]}***@{domain}"[:MAX_EMAIL_CHARS]


def mask_phone(number: str) -> str:
    """Return ``***78``: the last two digits."""
    return f"***{number[-2:]}"
