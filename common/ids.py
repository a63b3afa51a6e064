"""Identifiers, and codes that people read and type.

Ids are sortable for rows, unguessable for capabilities. Codes are in Crockford's base32: no I, L, O
or U. Source: https://www.crockford.com/base32.html
"""

import secrets
import unicodedata
from string import ascii_lowercase, ascii_uppercase
from typing import Final
from uuid import UUID

import uuid_utils.compat

CODE_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# Unicode's categories of blanks, dashes, and control and format characters, such as the marks of
# writing direction that telephones paste.
_IGNORED: Final = frozenset({"Zs", "Zl", "Zp", "Pd", "Cc", "Cf"})
# ASCII letters only: other letters have the capitals of these. The minus sign and the hyphen bullet
# are no dashes by their category.
_READ_AS: Final = str.maketrans(
    dict(zip(ascii_lowercase, ascii_uppercase, strict=True))
    | dict.fromkeys("Oo", "0")
    | dict.fromkeys("IiLl", "1")
    | dict.fromkeys("\u2212\u2043", "")
)


def uuid7() -> UUID:
    """Return a time-ordered UUID (RFC 9562 §5.7), so that inserts stay at the end of an index."""
    return uuid_utils.compat.uuid7()


def capability_id() -> str:
    """Return 128 random bits as 22 URL-safe characters; knowing the id gives access."""
    return secrets.token_urlsafe(16)


def random_code(length: int) -> str:
    """Return random characters of the alphabet, with 5 bits each."""
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(length))


def typed_code(text: str) -> str:
    """Return a code as it was issued from text that a person typed or pasted.

    Blanks, dashes and invisible characters of any kind are dropped, A to Z are capitals, and O is
    read as 0, I and L as 1, which no code contains. For codes of digits only as well.
    """
    kept = (char for char in text if unicodedata.category(char) not in _IGNORED)
    return "".join(kept).translate(_READ_AS)


def is_code(text: str, *, length: int) -> bool:
    """True for text of this length whose characters are all in the alphabet."""
    return len(text) == length and set(text) <= set(CODE_ALPHABET)
