"""Secrets that are mailed and kept only as digests: tokens in links, and codes to type."""

import hashlib
import hmac
import secrets
from typing import Final

from django.conf import settings

from platform_site.lib.crypto import keyed_digest

TOKEN_BYTES: Final = 32
# Longer than any token of ours.
MAX_TOKEN_CHARS: Final = 200
# Crockford's base32: no letter that could be read as another one, or as a digit.
ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE_CHARS: Final = 8
# As people type it, with blanks and dashes.
CODE_PATTERN: Final = rf"^[\s-]*([0-9A-Za-z][\s-]*){{{CODE_CHARS}}}$"


def new_token() -> str:
    """Return 256 random bits, safe in a link."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_digest(purpose: str, token: str) -> str:
    """Return what is kept of a token. It is too long to guess, so that its digest needs no key."""
    return hashlib.sha256(f"{purpose}\0{token}".encode()).hexdigest()


def new_code() -> str:
    """Return 40 random bits as ``ABCD-EFGH``, to be typed."""
    code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
    return f"{code[:4]}-{code[4:]}"


def canonical_code(code: str) -> str:
    """Return a typed code as ``ABCD-EFGH``, whatever its case, blanks and dashes; '' for none."""
    plain = "".join(code.split()).replace("-", "").upper()
    # Crockford's spelling: what is easily taken for another one counts as that.
    plain = plain.replace("O", "0").replace("I", "1").replace("L", "1")
    if len(plain) != CODE_CHARS or not set(plain) <= set(ALPHABET):
        return ""
    return f"{plain[:4]}-{plain[4:]}"


def code_digest(purpose: str, *binding: object, code: str) -> str:
    """Return what is kept of a code: keyed, since it is short, and bound to what it is for."""
    return keyed_digest(settings.ACCOUNTS.mfa_keys[0], purpose, *binding, code).hex()


def is_same(left: str, right: str) -> bool:
    """Compare two digests in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())
