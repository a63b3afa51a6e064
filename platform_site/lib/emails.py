"""E-mail addresses: what one is, and how two are compared."""

from typing import Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

MAX_EMAIL_CHARS: Final = 254


def is_address(text: str) -> bool:
    """True if a text is an e-mail address that fits its column."""
    try:
        validate_email(text)
    except ValidationError:
        return False
    return len(text) <= MAX_EMAIL_CHARS


def folded(email: str) -> str:
    """Return an address as it is compared and counted: trimmed, A to Z in lower case.

    Other letters stay: by Unicode's rules a dotless i and a long s have the capitals of ``i`` and
    ``s``, so that two people's mailboxes would count as one (a domain with a dotless i is another
    domain), and each spelling would give a password guesser another counter.
    """
    return email.strip().encode(errors="replace").lower().decode()
