"""Random names and passwords; a name does not reveal its tenant."""

import re
import secrets
from typing import Final

LENGTH: Final = 20
ALPHABET: Final = "abcdefghijkmnpqrstuvwxyz23456789"
DATABASE_PREFIX: Final = "zd_"
ROLE_PREFIX: Final = "zr_"
TEMPLATE_PREFIX: Final = "zt_"

# Matches every name that this module creates, of any tenant.
OPAQUE: Final = re.compile(rf"\bz[drt]_[{ALPHABET}0-9]{{1,{LENGTH}}}\b")


def plain(text: str) -> str:
    """Return a message with ``role`` or ``database`` in the place of each opaque name."""
    return OPAQUE.sub(_plain_word, text)


def database_name() -> str:
    """Return a new database name."""
    return DATABASE_PREFIX + _random()


def role_name() -> str:
    """Return a new role name."""
    return ROLE_PREFIX + _random()


def template_name() -> str:
    """Return a new name for a template under construction."""
    return TEMPLATE_PREFIX + _random()


def password() -> str:
    """Return a new password of 192 bits."""
    return secrets.token_urlsafe(24)


def _random() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def _plain_word(match: re.Match[str]) -> str:
    return "role" if match.group().startswith(ROLE_PREFIX) else "database"
