"""Secrets that are mailed and stored only as digests: tokens in links, and codes to type."""

import hashlib
import hmac
import secrets
from typing import Final

from django.conf import settings

from common import ids
from common.crypto import keyed_digest

TOKEN_BYTES: Final = 32
# Longer than every token that is issued.
MAX_TOKEN_CHARS: Final = 200
CODE_CHARS: Final = 8
# Blanks and dashes are allowed anywhere.


def new_token() -> str:
    """Return 256 random bits, safe in a link."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_digest(purpose: str, token: str) -> str:
    """Return the digest of a token, without a key: a token is too long to be guessed."""
    return hashlib.sha256(f"{purpose}\0{token}".encode()).hexdigest()


def new_code() -> str:
    """Return 40 random bits as ``ABCD-EFGH``, to be typed."""
    code = ids.random_code(CODE_CHARS)
    return f"{code[:4]}-{code[4:]}"


def canonical_code(code: str) -> str:
    """Return a typed code as ``ABCD-EFGH``; '' if it is not a code."""
    plain = ids.typed_code(code)
    if not ids.is_code(plain, length=CODE_CHARS):
        return ""
    return f"{plain[:4]}-{plain[4:]}"


def code_digest(purpose: str, *binding: object, code: str) -> str:
    """Return the keyed digest of a code, bound to its purpose and subject."""
    return keyed_digest(settings.ACCOUNTS.mfa_keys[0], purpose, *binding, code).hex()


def is_same(left: str, right: str) -> bool:
    """Compare two digests in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())
