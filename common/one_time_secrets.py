"""Random secrets that are handed out once and stored as digests, and encrypted JSON for rows."""

import hashlib
import hmac
import json
from secrets import token_urlsafe
from typing import Any

from common.crypto import decrypt, encrypt


def new_secret() -> str:
    """Return 256 random bits as 43 URL-safe characters."""
    return token_urlsafe(32)


def digest(secret: str) -> str:
    """Return what is stored of a secret; 256 random bits need no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_same(left: str, right: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())


def encrypt_json(value: dict[str, Any]) -> str:
    """Encrypt a JSON object for a row."""
    return encrypt(json.dumps(value))


def decrypt_json(encrypted: str) -> dict[str, Any]:
    """Decrypt a row's JSON object."""
    value: dict[str, Any] = json.loads(decrypt(encrypted))
    return value
