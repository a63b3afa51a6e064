"""Keyed digests and encryption at rest."""

import hashlib
import hmac
from functools import lru_cache

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings


def keyed_digest(key: str, *parts: object) -> bytes:
    """Return HMAC-SHA256 over the parts; their lengths are included, so no two lists collide."""
    message = b"".join(
        len(text).to_bytes(4, "big") + text for text in (str(part).encode() for part in parts)
    )
    return hmac.new(key.encode(), message, hashlib.sha256).digest()


def encrypt(text: str) -> str:
    """Encrypt a secret for a row, under the first of ZSECRET_KEYS."""
    return _fernet(tuple(settings.SECRET_KEYS)).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Decrypt a secret of a row, under whichever of ZSECRET_KEYS it was encrypted.

    Raises cryptography.fernet.InvalidToken when none of the keys made it.
    """
    return _fernet(tuple(settings.SECRET_KEYS)).decrypt(token.encode()).decode()


@lru_cache(maxsize=4)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
