"""Secrets that are stored as keyed digests or encrypted, never as plain text."""

import hmac
import json
import secrets
from typing import Any

from django.conf import settings

from common.crypto import decrypt, encrypt, keyed_digest


def digest(purpose: str, *parts: object) -> str:
    """Return the keyed digest of a secret, which cannot be guessed from the digest alone."""
    return keyed_digest(settings.ACCOUNTS.mfa_keys[0], purpose, *parts).hex()


def digests(purpose: str, *parts: object) -> list[str]:
    """Return the digest under each key that still verifies, the current one first.

    For secrets that people keep for a long time: a new key must not invalidate backup codes.
    """
    return [keyed_digest(key, purpose, *parts).hex() for key in settings.ACCOUNTS.mfa_keys]


def one_time_code(digits: int = 6) -> str:
    """Return a random numeric code."""
    return f"{secrets.randbelow(10**digits):0{digits}d}"


def is_same(left: str, right: str) -> bool:
    """Compare two digests in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())


def seal(value: dict[str, Any]) -> str:
    """Encrypt JSON for a row."""
    return encrypt(json.dumps(value))


def unseal(sealed: str) -> dict[str, Any]:
    """Decrypt the JSON of a row."""
    value: dict[str, Any] = json.loads(decrypt(sealed))
    return value
