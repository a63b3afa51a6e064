"""Identifiers, and codes that people read and type.

Ids are sortable for rows, unguessable for capabilities. Codes are in Crockford's base32: no I, L, O
or U. Source: https://www.crockford.com/base32.html
"""

import secrets
from typing import Final
from uuid import UUID

import uuid_utils.compat

CODE_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def uuid7() -> UUID:
    """Return a time-ordered UUID (RFC 9562 §5.7), so that inserts stay at the end of an index."""
    return uuid_utils.compat.uuid7()


def capability_id() -> str:
    """Return 128 random bits as 22 URL-safe characters; knowing the id gives access."""
    return secrets.token_urlsafe(16)


def random_code(length: int) -> str:
    """Return random characters of the alphabet, with 5 bits each."""
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(length))


def normalized_code(typed: str) -> str:
    """Return typed text in capitals, without blanks and dashes."""
    return "".join(typed.split()).replace("-", "").upper()


def is_code(text: str, *, length: int) -> bool:
    """True for text of this length whose characters are all in the alphabet."""
    return len(text) == length and set(text) <= set(CODE_ALPHABET)
