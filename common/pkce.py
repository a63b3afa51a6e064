"""PKCE towards our own clients (RFC 7636): a code is worthless without the client's verifier.

PKCE towards the providers is social-core's work (``USE_PKCE`` in accounts.oauth.providers).
"""

import hashlib
import re
from base64 import urlsafe_b64encode
from typing import Final

from common.one_time_secrets import is_same

# RFC 7636 §4.1 and §4.2.
VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def matches(verifier: str, challenge: str) -> bool:
    """Return True if the challenge is the S256 challenge of the verifier."""
    if not VERIFIER.fullmatch(verifier):
        return False
    hashed = hashlib.sha256(verifier.encode()).digest()
    return is_same(urlsafe_b64encode(hashed).decode().rstrip("="), challenge)
