"""What external sign-in hands out and keeps only a digest of, and PKCE towards its own clients."""

import hashlib
import hmac
import json
import re
from base64 import urlsafe_b64encode
from secrets import token_urlsafe
from typing import Any, Final

from platform_site.lib.crypto import decrypt, encrypt

# RFC 7636 §4.1 and §4.2.
VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def new_secret() -> str:
    """Give 256 random bits as 43 URL-safe characters."""
    return token_urlsafe(32)


def digest(secret: str) -> str:
    """Give what is kept of a secret; none is needed for a hash of 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_same(left: str, right: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())


def fits(verifier: str, challenge: str) -> bool:
    """Say whether a PKCE verifier is the one whose S256 challenge this is."""
    if not VERIFIER.fullmatch(verifier):
        return False
    hashed = hashlib.sha256(verifier.encode()).digest()
    return is_same(urlsafe_b64encode(hashed).decode().rstrip("="), challenge)


def seal(value: dict[str, Any]) -> str:
    """Encrypt JSON for a row."""
    return encrypt(json.dumps(value))


def unseal(sealed: str) -> dict[str, Any]:
    """Give the JSON of a row back."""
    value: dict[str, Any] = json.loads(decrypt(sealed))
    return value
