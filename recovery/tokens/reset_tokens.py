"""Reset tokens: issued after a channel was proven; valid for recovery only.

They have their own type (``pwr+jwt``) and audience; the row decides whether one is valid.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from accounts.tokens.signing import SignedToken
from common.errors import TokenExpired, TokenInvalid
from recovery.errors import RecoveryGone
from recovery.models import Recovery


class ResetToken(SignedToken):
    """The token that completes a recovery."""

    token_type = "pwr+jwt"  # noqa: S105 - a media type
    audience = "recovery"
    key_ring = "mfa_keys"
    required = ("iss", "aud", "sub", "jti", "gen", "iat", "exp")


@dataclass(frozen=True, slots=True)
class ResetPointer:
    """A recovery, its user, and the generation of the reset token."""

    recovery_id: UUID
    user_id: UUID
    generation: int


def token_for(recovery: Recovery, *, issued_at: datetime, expires_at: datetime) -> str:
    """Return the reset token of the recovery's current generation."""
    claims = {
        "sub": str(recovery.user_id),
        "jti": str(recovery.pk),
        "gen": recovery.generation,
        "iat": int(issued_at.timestamp()),
        "exp": int(expires_at.timestamp()),
    }
    return str(ResetToken(claims))


def read(token: str, *, now: datetime) -> ResetPointer:
    """Verify a reset token and return the recovery it refers to.

    Raises RecoveryGone for an invalid or expired token, and for other types.
    """
    try:
        claims = ResetToken.read(token, now=now)
        return ResetPointer(UUID(claims["jti"]), UUID(claims["sub"]), int(claims["gen"]))
    except (TokenExpired, TokenInvalid, ValueError, TypeError, AttributeError) as exc:
        raise RecoveryGone from exc
