"""Parsing of numeric one-time codes."""

import re
from typing import Final

from twofactor.errors import MalformedCode

# Six digits, with blanks around them from pasting.
MAX_CHARS: Final = 64
SIX_DIGITS: Final = re.compile(r"[0-9]{6}")


def six_digits(code: str) -> str:
    """Return a numeric code without surrounding blanks.

    Raises MalformedCode for anything but six ASCII digits: int() would accept other digits, signs
    and underscores.
    """
    trimmed = code.strip()
    if not SIX_DIGITS.fullmatch(trimmed):
        raise MalformedCode.for_field("code", "Six digits.", code="malformed")
    return trimmed
