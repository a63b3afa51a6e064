"""Opaque names and passwords: they tell nothing about whose database it is."""

import re
import secrets
from typing import Final

LENGTH: Final = 20
ALPHABET: Final = "abcdefghijkmnpqrstuvwxyz23456789"
DATABASE_PREFIX: Final = "zd_"
ROLE_PREFIX: Final = "zr_"
TEMPLATE_PREFIX: Final = "zt_"

# What every name made here looks like, also one of another tenant.
OPAQUE: Final = re.compile(rf"\bz[drt]_[{ALPHABET}0-9]{{1,{LENGTH}}}\b")


def database_name() -> str:
    """Give a fresh database name."""
    return DATABASE_PREFIX + _random()


def role_name() -> str:
    """Give a fresh role name."""
    return ROLE_PREFIX + _random()


def template_name() -> str:
    """Give a fresh name for a template that is being made."""
    return TEMPLATE_PREFIX + _random()


def password() -> str:
    """Give a fresh password of 192 bits."""
    return secrets.token_urlsafe(24)


def _random() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
