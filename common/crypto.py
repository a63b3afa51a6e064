"""Keyed digests and encryption at rest."""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12


class NotAuthentic(Exception):
    """The bytes were not sealed with one of the keys for this purpose and these data."""


def keyed_digest(key: str, *parts: object) -> bytes:
    """Return HMAC-SHA256 over the parts and their lengths, so that no two lists collide."""
    message = b"".join(
        len(text).to_bytes(4, "big") + text for text in (str(part).encode() for part in parts)
    )
    return hmac.new(key.encode(), message, hashlib.sha256).digest()


def encrypt(text: str) -> str:
    """Encrypt a secret for a row, under the first of ZSECRET_KEYS."""
    return _fernet(tuple(settings.SECRET_KEYS)).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Decrypt a secret of a row that was encrypted under any of ZSECRET_KEYS.

    Raises cryptography.fernet.InvalidToken if none of the keys fits.
    """
    return _fernet(tuple(settings.SECRET_KEYS)).decrypt(token.encode()).decode()


def seal(data: bytes, *, purpose: str, associated: bytes) -> bytes:
    """Encrypt bytes that others can read and replace, under the first of ZSECRET_KEYS.

    associated: authenticated but not stored; binds the bytes to a context. Each call derives its
    own key, so that nonces cannot repeat (AES-256-GCM, HKDF-SHA256).
    """
    salt, nonce = secrets.token_bytes(SALT_BYTES), secrets.token_bytes(NONCE_BYTES)
    key = _derived(settings.SECRET_KEYS[0], purpose, salt)
    return salt + nonce + AESGCM(key).encrypt(nonce, data, associated)


def unseal(sealed: bytes, *, purpose: str, associated: bytes) -> bytes:
    """Decrypt bytes that ``seal`` encrypted under any of ZSECRET_KEYS. Raises NotAuthentic."""
    salt, rest = sealed[:SALT_BYTES], sealed[SALT_BYTES:]
    nonce, encrypted = rest[:NONCE_BYTES], rest[NONCE_BYTES:]
    if len(nonce) < NONCE_BYTES:
        raise NotAuthentic
    for secret_key in settings.SECRET_KEYS:
        try:
            return AESGCM(_derived(secret_key, purpose, salt)).decrypt(nonce, encrypted, associated)
        except InvalidTag:
            continue
    raise NotAuthentic


def _derived(secret_key: str, purpose: str, salt: bytes) -> bytes:
    kdf = HKDF(SHA256(), length=32, salt=salt, info=b"zonal " + purpose.encode())
    return kdf.derive(urlsafe_b64decode(secret_key))


@lru_cache(maxsize=4)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
