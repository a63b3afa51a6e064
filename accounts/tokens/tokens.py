"""Access and refresh tokens: HS256 JWTs that point at a session row and never decide by themselves.

Made from the row alone: the same generation gives the same bytes again, so that a repeated refresh
is answered alike without a token being stored. Sources: RFC 8725 (fixed algorithm, explicit
``typ``, separate keys, required claims), RFC 9068 (``at+jwt``).
"""

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Literal
from uuid import UUID

import jwt
from django.conf import settings
from django.utils import timezone

from accounts.models import Session
from environments.models import Environment
from platform_site.lib.crypto import keyed_digest
from platform_site.lib.errors import TokenExpired, TokenInvalid

ALGORITHM: Final = "HS256"
# Longer than any token of ours; nothing longer is worth a signature check.
MAX_CHARS: Final = 4096
# Verified access tokens that a process remembers; a token is used hundreds of times in its life.
VERIFIED_TOKENS: Final = 4096
CLOCKS_DIFFER_S: Final = 5

TokenType = Literal["at+jwt", "rt+jwt"]
REQUIRED: Final = ("iss", "aud", "sub", "sid", "gen", "jti", "iat", "nbf", "exp")


@dataclass(frozen=True, slots=True)
class Pointer:
    """What a valid token says: which session, and which generation of its chain."""

    session_id: UUID
    user_id: UUID
    generation: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class TokenPair:
    """The tokens of one generation; times in Unix seconds."""

    access_token: str
    refresh_token: str
    access_expires_at: int
    refresh_expires_at: int

    def as_json(self) -> dict[str, Any]:
        """Give the published fields."""
        return {
            "access_token": self.access_token,
            "refresh_token": self.refresh_token,
            "access_expires_at": self.access_expires_at,
            "refresh_expires_at": self.refresh_expires_at,
        }


def _ring(typ: TokenType) -> tuple[str, ...]:
    return settings.ACCOUNTS.access_keys if typ == "at+jwt" else settings.ACCOUNTS.refresh_keys


def _audience(typ: TokenType) -> str:
    return f"{settings.SERVICE_NAME}:{'api' if typ == 'at+jwt' else 'refresh'}"


@lru_cache(maxsize=32)
def _kid(key: str) -> str:
    """Give a key's public name, from which nothing of the key can be learned."""
    return hmac.new(key.encode(), b"kid", hashlib.sha256).hexdigest()[:16]


def pair_for(session: Session, environment: Environment) -> TokenPair:
    """Give the token pair of the session's current generation, always the same bytes.

    environment: the session's, already at hand, so that no query is needed.
    """
    issued = int(session.rotated_at.timestamp())
    ends = int(session.ends_at.timestamp())
    access_ends = min(issued + settings.ACCOUNTS.access_ttl_s, ends)
    refresh_ends = min(issued + settings.ACCOUNTS.refresh_ttl_s, ends)
    access = {
        "org": session.organization_id,
        "env": environment.slug,
        "amr": session.amr,
        "acr": f"aal{session.aal}",
        "auth_time": int(session.auth_time.timestamp()),
    }
    return TokenPair(
        access_token=_sign("at+jwt", session, expires_at=access_ends, claims=access),
        refresh_token=_sign("rt+jwt", session, expires_at=refresh_ends, claims={}),
        access_expires_at=access_ends,
        refresh_expires_at=refresh_ends,
    )


def _sign(typ: TokenType, session: Session, *, expires_at: int, claims: Mapping[str, Any]) -> str:
    key = _ring(typ)[0]
    issued = int(session.rotated_at.timestamp())
    payload = {
        "iss": settings.SERVICE_NAME,
        "aud": _audience(typ),
        "sub": str(session.user_id),
        "sid": str(session.id),
        "gen": session.generation,
        "jti": keyed_digest(key, typ, session.id, session.generation).hex()[:32],
        "iat": issued,
        "nbf": issued,
        "exp": expires_at,
        **claims,
    }
    headers = {"typ": typ, "kid": _kid(key)}
    return jwt.encode(payload, key, algorithm=ALGORITHM, headers=headers)


def read(token: str, typ: TokenType, *, now: datetime, allow_expired: bool = False) -> Pointer:
    """Verify a token of one type and give what it points at; it holds only if the row agrees.

    Raises TokenExpired for a token that was valid once, TokenInvalid for everything else alike.
    """
    if len(token) > MAX_CHARS:
        raise TokenInvalid
    if typ == "at+jwt":
        pointer, begins = _read_access(token, settings.ACCOUNTS.access_keys, settings.SERVICE_NAME)
    else:
        pointer, begins = _read(token, typ)
    # Times are compared here, with the caller's clock, so that tests and replays agree on `now`.
    now_s = now.timestamp()
    if now_s < begins - CLOCKS_DIFFER_S:
        raise TokenInvalid
    if not allow_expired and now_s >= pointer.expires_at:
        raise TokenExpired
    return pointer


@lru_cache(maxsize=VERIFIED_TOKENS)
def _read_access(token: str, _ring: tuple[str, ...], _service: str) -> tuple[Pointer, int]:
    """Do as ``_read`` once for each access token: nothing of it depends on when or who asks.

    Kept under the keys and the name that it was verified with. What is refused is not kept.
    """
    return _read(token, "at+jwt")


def _read(token: str, typ: TokenType) -> tuple[Pointer, int]:
    """Give what a token of ours says, and when it begins to hold.

    Raises TokenInvalid.
    """
    try:
        header = header_of(token)
        if header.get("typ") != typ:
            raise TokenInvalid
        claims = _verify(token, typ, str(header.get("kid")))
        pointer = Pointer(
            session_id=UUID(claims["sid"]),
            user_id=UUID(claims["sub"]),
            generation=int(claims["gen"]),
            expires_at=int(claims["exp"]),
        )
        return pointer, int(claims["nbf"])
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as exc:
        raise TokenInvalid from exc


def header_of(token: str) -> dict[str, Any]:
    """Give a token's header without believing it, {} for what has none: to tell types apart.

    PyJWT's own reader parses the whole token first, which is done once, when it is verified.
    """
    head = token.partition(".")[0][:MAX_CHARS]
    try:
        header = json.loads(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return {}
    return header if isinstance(header, dict) else {}


def _is_retired(key: str) -> bool:
    day = settings.ACCOUNTS.key_retirements.get(key)
    return day is not None and timezone.now().date() >= day


def _verify(token: str, typ: TokenType, kid: str) -> dict[str, Any]:
    key = next((key for key in _ring(typ) if _kid(key) == kid), None)
    if key is None or _is_retired(key):
        raise TokenInvalid
    claims: dict[str, Any] = jwt.decode(
        token,
        key,
        algorithms=[ALGORITHM],
        audience=_audience(typ),
        issuer=settings.SERVICE_NAME,
        options={
            "require": list(REQUIRED),
            "verify_exp": False,
            "verify_nbf": False,
            "verify_iat": False,
        },
    )
    return claims
