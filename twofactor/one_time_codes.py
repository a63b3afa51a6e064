"""Parsing of numeric one-time codes."""

import re
from typing import Final

from common import ids
from twofactor.errors import MalformedCode

# With blanks and dashes, as authenticators show codes and people paste them.
MAX_CHARS: Final = 64
SIX_DIGITS: Final = re.compile(r"[0-9]{6}")


def six_digits(code: str) -> str:
    """Return a typed numeric code as it was issued.

    Raises MalformedCode for anything but six ASCII digits: int() would accept other digits, signs
    and underscores.
    """
    digits = ids.typed_code(code)
    if not SIX_DIGITS.fullmatch(digits):
        raise MalformedCode.for_field("code", "Six digits.", code="malformed")
    return digits
