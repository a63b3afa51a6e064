"""E-mail addresses: what one is, and how two are compared."""

from typing import Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

MAX_EMAIL_CHARS: Final = 254


def is_address(text: str) -> bool:
    """Say whether a text is an e-mail address, and one that fits its column."""
    try:
        validate_email(text)
    except ValidationError:
        return False
    return len(text) <= MAX_EMAIL_CHARS


def folded(email: str) -> str:
    """Give an address as it is compared and counted: trimmed, A to Z without regard to case.

    No other letters: by Unicode's rules a dotless i and a long s have the capitals of ``i`` and
    ``s``, which would make one of two people's mailboxes (a domain with a dotless i is one of its
    own), and give who guesses a password as many counters as there are spellings.
    """
    return email.strip().encode(errors="replace").lower().decode()
