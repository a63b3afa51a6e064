"""Reset tokens: what a proven channel is exchanged for; they open nothing but recovery.

Their own type (``pwr+jwt``) and audience; the row decides whether one still counts.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from accounts.tokens.signing import SignedToken
from platform_site.lib.errors import TokenExpired, TokenInvalid
from recovery.errors import RecoveryGone
from recovery.models import Recovery


class ResetToken(SignedToken):
    """What completes a recovery."""

    token_type = "pwr+jwt"  # noqa: S105 - a media type
    audience = "recovery"
    key_ring = "mfa_keys"
    required = ("iss", "aud", "sub", "jti", "gen", "iat", "exp")


@dataclass(frozen=True, slots=True)
class Pointer:
    """Which recovery, whose, and which of its reset tokens."""

    recovery_id: UUID
    user_id: UUID
    generation: int


def token_for(recovery: Recovery, *, issued_at: datetime, expires_at: datetime) -> str:
    """Return the reset token of the recovery's present generation."""
    claims = {
        "sub": str(recovery.user_id),
        "jti": str(recovery.pk),
        "gen": recovery.generation,
        "iat": int(issued_at.timestamp()),
        "exp": int(expires_at.timestamp()),
    }
    return str(ResetToken(claims))


def read(token: str, *, now: datetime) -> Pointer:
    """Verify a reset token and return what it points at.

    Raises RecoveryGone for garbage, another type, another key, and an expired one alike.
    """
    try:
        claims = ResetToken.read(token, now=now)
        return Pointer(UUID(claims["jti"]), UUID(claims["sub"]), int(claims["gen"]))
    except (TokenExpired, TokenInvalid, ValueError, TypeError, AttributeError) as exc:
        raise RecoveryGone from exc
