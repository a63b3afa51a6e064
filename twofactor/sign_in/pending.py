"""Sign-ins that wait for their second factor, and their ``mfa_token``.

The token has its own key and type (``mfa+jwt``): no view accepts it as an access token, and the
views that accept it only act on the pending sign-in.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.utils import timezone

from accounts.models import User
from accounts.tokens.signing import SignedToken, header_of
from common.errors import TokenExpired, TokenInvalid
from common.principals import PlatformRequest, Principal
from environments.models import Environment
from twofactor.errors import ChallengeGone, EnrolmentGone
from twofactor.models import PendingSignIn

TYPE: Final = "mfa+jwt"
LIFE: Final = timedelta(minutes=10)
CHALLENGE: Final = "challenge"
ENROL: Final = "enrol"


class MfaToken(SignedToken):
    """The token that answers a challenge of a pending sign-in, or sets a factor up for it."""

    token_type = TYPE
    audience = "mfa"
    key_ring = "mfa_keys"
    required = ("iss", "aud", "sub", "jti", "use", "exp")


def open_pending(
    user: User, environment: Environment, *, use: str, amr: list[str], now: datetime
) -> PendingSignIn:
    """Store a sign-in with a proven first factor for ten minutes."""
    pending = PendingSignIn(
        organization_id=user.organization_id,
        user=user,
        environment=environment,
        use=use,
        amr=amr,
        created_at=now,
        expires_at=now + LIFE,
    )
    pending.save(force_insert=True)
    return pending


def token_for(pending: PendingSignIn) -> str:
    """Return the ``mfa_token``."""
    claims = {
        "sub": str(pending.user_id),
        "jti": str(pending.id),
        "use": pending.use,
        "iat": int(pending.created_at.timestamp()),
        "exp": int(pending.expires_at.timestamp()),
    }
    return str(MfaToken(claims))


def _read(token: str, now: datetime) -> UUID:
    try:
        return UUID(MfaToken.read(token, now=now)["jti"])
    except (ValueError, TypeError, AttributeError) as exc:
        raise TokenInvalid from exc


def authenticate(request: PlatformRequest, token: str) -> Principal | None:
    """Return a principal without roles for an ``mfa_token``, None for another kind of token.

    Raises TokenInvalid and TokenExpired; a completed sign-in is expired.
    """
    if header_of(token).get("typ") != TYPE:
        return None
    now = timezone.now()
    pending = (
        PendingSignIn.objects.select_related("user", "organization", "environment")
        .filter(pk=_read(token, now), used_at=None, expires_at__gt=now)
        .first()
    )
    if pending is None or not pending.user.is_active or pending.environment.deleted_at:
        raise TokenExpired
    return Principal(
        kind="pending",
        user_id=pending.user_id,
        email=pending.user.email or None,
        organization_id=pending.organization_id,
        organization_name=pending.organization.name,
        environment_pk=pending.environment_id,
        environment_id=pending.environment.slug,
        environment_name=pending.environment.name,
        roles=(),
        labels=(),
        session_id=None,
        aal=1,
        amr=tuple(pending.amr),
        auth_time=int(pending.created_at.timestamp()),
        access_expires_at=int(pending.expires_at.timestamp()),
        pending_id=pending.id,
        pending_use=pending.use,
    )


def use_up(pending_id: UUID | None, *, now: datetime) -> PendingSignIn:
    """Return a pending sign-in with its environment, once: it leads to one session.

    Raises ChallengeGone (410) if it has led to a session, has expired, or its environment was
    deleted.
    """
    waiting: PendingSignIn | None = (
        PendingSignIn.objects.select_for_update(of=("self",))
        .select_related("environment")
        .filter(pk=pending_id, used_at=None, expires_at__gt=now)
        .first()
    )
    if waiting is None or waiting.environment.deleted_at:
        raise ChallengeGone
    waiting.used_at = now
    waiting.save(update_fields=["used_at"])
    return waiting


def end_enrolling(user_id: UUID, *, except_pending: UUID | None) -> None:
    """End a user's sign-ins that wait for an enrolment, except one: a factor was enrolled.

    Otherwise an attacker with the password could start a sign-in, wait until the owner has set up a
    factor, and then set up another one without having proven the first. Call inside a transaction;
    of several concurrent sign-ins one succeeds.
    Raises EnrolmentGone (410) if ``except_pending`` has ended in the meantime.
    """
    waiting = PendingSignIn.objects.filter(user_id=user_id, use=ENROL, used_at=None)
    # Locked in one order, to avoid deadlocks.
    found = list(waiting.select_for_update().order_by("pk").values_list("pk", flat=True))
    if except_pending is not None and except_pending not in found:
        raise EnrolmentGone
    others = [key for key in found if key != except_pending]
    PendingSignIn.objects.filter(pk__in=others).update(used_at=timezone.now())
