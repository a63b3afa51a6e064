"""Validating and comparing e-mail addresses."""

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
    """Return an address for comparing and rate limits: trimmed, A to Z in lower case.

    Other letters are unchanged: by Unicode's rules a dotless i and a long s have the capitals of
    ``i`` and ``s``, so that the mailboxes of two people would count as one (a domain with a dotless
    i is another domain), and each spelling would give an attacker another counter.
    """
    return email.strip().encode(errors="replace").lower().decode()
