"""Reset tokens: what a proven channel is exchanged for; they open nothing but recovery.

Their own type (``pwr+jwt``) and audience; the row says whether one still counts.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import jwt
from django.conf import settings

from recovery.errors import RecoveryGone
from recovery.models import Recovery

TYPE: Final = "pwr+jwt"
MAX_CHARS: Final = 2048
REQUIRED: Final = ("iss", "aud", "sub", "jti", "gen", "iat", "exp")


@dataclass(frozen=True, slots=True)
class Pointer:
    """Which recovery, whose, and which of its reset tokens."""

    recovery_id: UUID
    user_id: UUID
    generation: int


def _audience() -> str:
    return f"{settings.SERVICE_NAME}:recovery"


def token_for(recovery: Recovery, *, issued_at: datetime, expires_at: datetime) -> str:
    """Give the reset token of the recovery's present generation."""
    claims = {
        "iss": settings.SERVICE_NAME,
        "aud": _audience(),
        "sub": str(recovery.user_id),
        "jti": str(recovery.pk),
        "gen": recovery.generation,
        "iat": int(issued_at.timestamp()),
        "exp": int(expires_at.timestamp()),
    }
    return jwt.encode(
        claims, settings.ACCOUNTS.mfa_keys[0], algorithm="HS256", headers={"typ": TYPE}
    )


def read(token: str, *, now: datetime) -> Pointer:
    """Verify a reset token and give what it points at.

    Raises RecoveryGone for garbage, another type, another key, and an expired one alike.
    """
    if len(token) > MAX_CHARS or not token.isascii():
        raise RecoveryGone
    try:
        if jwt.get_unverified_header(token).get("typ") != TYPE:
            raise RecoveryGone
        claims = _verify(token)
        pointer = Pointer(UUID(claims["jti"]), UUID(claims["sub"]), int(claims["gen"]))
        expires_at = int(claims["exp"])
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as exc:
        raise RecoveryGone from exc
    if now.timestamp() >= expires_at:
        raise RecoveryGone
    return pointer


def _verify(token: str) -> dict[str, Any]:
    for key in settings.ACCOUNTS.mfa_keys:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=["HS256"],
                audience=_audience(),
                issuer=settings.SERVICE_NAME,
                # Times are compared with the caller's clock.
                options={"require": list(REQUIRED), "verify_exp": False, "verify_iat": False},
            )
        except jwt.InvalidSignatureError:
            continue
        return claims
    raise RecoveryGone
