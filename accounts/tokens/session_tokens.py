"""Access and refresh tokens: they refer to a session's row, which decides if they are valid.

They are derived from the row only: the same generation always gives the same bytes, so that a
repeated refresh gets the same response without a stored token. Source: RFC 9068 (``at+jwt``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Literal
from uuid import UUID

from django.conf import settings

from accounts.models import Session
from accounts.tokens.signing import SignedToken, header_of, is_retired
from common.crypto import keyed_digest
from common.errors import TokenInvalid
from environments.models import Environment

# Verified access tokens that a process caches; a token is used hundreds of times.
VERIFIED_TOKENS: Final = 4096

TokenType = Literal["at+jwt", "rt+jwt"]
REQUIRED: Final = ("iss", "aud", "sub", "sid", "gen", "jti", "iat", "nbf", "exp")


class AccessToken(SignedToken):
    """The token that authenticates requests."""

    token_type = "at+jwt"  # noqa: S105 - a media type
    audience = "api"
    key_ring = "access_keys"
    required = REQUIRED


class RefreshToken(SignedToken):
    """The token that is exchanged for the next generation, or for another environment."""

    token_type = "rt+jwt"  # noqa: S105 - a media type
    audience = "refresh"
    key_ring = "refresh_keys"
    required = REQUIRED


@dataclass(frozen=True, slots=True)
class SessionPointer:
    """The session and generation that a valid token refers to."""

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
        """Return the published fields."""
        return {
            "access_token": self.access_token,
            "refresh_token": self.refresh_token,
            "access_expires_at": self.access_expires_at,
            "refresh_expires_at": self.refresh_expires_at,
        }


def pair_for(session: Session, environment: Environment) -> TokenPair:
    """Return the token pair of the session's current generation, always the same bytes.

    environment: the session's, already loaded, so that no query is needed.
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
        access_token=_sign(AccessToken, session, expires_at=access_ends, claims=access),
        refresh_token=_sign(RefreshToken, session, expires_at=refresh_ends, claims={}),
        access_expires_at=access_ends,
        refresh_expires_at=refresh_ends,
    )


def _sign(
    kind: type[SignedToken], session: Session, *, expires_at: int, claims: Mapping[str, Any]
) -> str:
    key = kind.get_token_backend().current_key
    issued = int(session.rotated_at.timestamp())
    payload = {
        "sub": str(session.user_id),
        "sid": str(session.id),
        "gen": session.generation,
        "jti": keyed_digest(key, kind.token_type, session.id, session.generation).hex()[:32],
        "iat": issued,
        "nbf": issued,
        "exp": expires_at,
        **claims,
    }
    return str(kind(payload))


def read(
    token: str, typ: TokenType, *, now: datetime, allow_expired: bool = False
) -> SessionPointer:
    """Verify a token of one type and return its session and generation; the row decides further.

    Raises TokenExpired for an expired token, TokenInvalid for everything else.
    """
    if typ == "at+jwt":
        ring = settings.ACCOUNTS.access_keys
        pointer, begins, key = _read_access(token, ring, settings.SERVICE_NAME)
        # Not cached, because it depends on the time.
        if is_retired(key):
            raise TokenInvalid
    else:
        pointer, begins = _read(token, RefreshToken)
    SignedToken({"nbf": begins, "exp": pointer.expires_at}, now=now).check_times(
        allow_expired=allow_expired
    )
    return pointer


@lru_cache(maxsize=VERIFIED_TOKENS)
def _read_access(
    token: str, _ring: tuple[str, ...], _service: str
) -> tuple[SessionPointer, int, str]:
    """Return the result of ``_read`` and the key; cached per access token.

    The cache key includes the keys and the service's name. Refused tokens are not cached.
    """
    keys = AccessToken.get_token_backend().keys
    return *_read(token, AccessToken), keys[header_of(token)["kid"]]


def _read(token: str, kind: type[SignedToken]) -> tuple[SessionPointer, int]:
    """Return a token's session and generation, and from when it is valid. Raises TokenInvalid."""
    claims = kind.claims_of(token)
    try:
        pointer = SessionPointer(
            session_id=UUID(claims["sid"]),
            user_id=UUID(claims["sub"]),
            generation=int(claims["gen"]),
            expires_at=int(claims["exp"]),
        )
        return pointer, int(claims["nbf"])
    except (ValueError, TypeError, AttributeError) as exc:
        raise TokenInvalid from exc
