"""Random secrets, given out once and stored as digests; encrypted JSON; PKCE of our clients.

A code that our own client exchanges is worthless without the client's verifier (RFC 7636). PKCE
towards providers is done by social-core (``USE_PKCE`` in oauth.providers).
"""

import hashlib
import hmac
import json
import re
from base64 import urlsafe_b64encode
from secrets import token_urlsafe
from typing import Any, Final

from common.crypto import decrypt, encrypt

# RFC 7636 §4.1 and §4.2.
PKCE_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
PKCE_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


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


def matches_challenge(verifier: str, challenge: str) -> bool:
    """Return True if the challenge is the S256 challenge of the verifier."""
    if not PKCE_VERIFIER.fullmatch(verifier):
        return False
    hashed = hashlib.sha256(verifier.encode()).digest()
    return is_same(urlsafe_b64encode(hashed).decode().rstrip("="), challenge)
