"""Codes that people read and type, in Crockford's base32: no I, L, O or U.

Source: https://www.crockford.com/base32.html
"""

import secrets
from typing import Final

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def random_text(length: int) -> str:
    """Return random characters of the alphabet, with 5 bits each."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def normalized(typed: str) -> str:
    """Return typed text in capitals, without blanks and dashes."""
    return "".join(typed.split()).replace("-", "").upper()


def is_plain(text: str, *, length: int) -> bool:
    """True for text of this length whose characters are all in the alphabet."""
    return len(text) == length and set(text) <= set(ALPHABET)
