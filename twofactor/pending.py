"""A sign-in that waits for its second factor, and the ``mfa_token`` that points at it.

Its own key and type (``mfa+jwt``): no view takes it for an access token, and the views it opens
take nothing else of it than the pending sign-in.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import jwt
from django.conf import settings
from django.utils import timezone

from accounts import tokens
from accounts.models import User
from environments.models import Environment
from platform_site.lib.errors import TokenExpired, TokenInvalid
from platform_site.lib.principals import PlatformRequest, Principal
from twofactor.models import PendingSignIn

TYPE: Final = "mfa+jwt"
LIFE: Final = timedelta(minutes=10)
CHALLENGE: Final = "challenge"
ENROL: Final = "enrol"


def open_pending(
    user: User, environment: Environment, *, use: str, amr: list[str], now: datetime
) -> PendingSignIn:
    """Keep a proven first factor for ten minutes."""
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
    """Give the ``mfa_token``."""
    claims = {
        "iss": settings.SERVICE_NAME,
        "aud": f"{settings.SERVICE_NAME}:mfa",
        "sub": str(pending.user_id),
        "jti": str(pending.id),
        "use": pending.use,
        "iat": int(pending.created_at.timestamp()),
        "exp": int(pending.expires_at.timestamp()),
    }
    return jwt.encode(claims, settings.MFA_SECRETS[0], algorithm="HS256", headers={"typ": TYPE})


def _read(token: str, now: datetime) -> UUID:
    for key in settings.MFA_SECRETS:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=["HS256"],
                audience=f"{settings.SERVICE_NAME}:mfa",
                issuer=settings.SERVICE_NAME,
                options={"require": ["exp", "jti", "sub", "use"], "verify_exp": False},
            )
            pending_id = UUID(claims["jti"])
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
            continue
        if now.timestamp() >= int(claims["exp"]):
            raise TokenExpired
        return pending_id
    raise TokenInvalid


def authenticate(request: PlatformRequest, token: str) -> Principal | None:
    """Give a principal without roles for an ``mfa_token``, None for another kind of token.

    Raises TokenInvalid and TokenExpired; a sign-in that is through already is expired.
    """
    if tokens.header_of(token).get("typ") != TYPE:
        return None
    now = timezone.now()
    pending = (
        PendingSignIn.unscoped.select_related(  # unscoped: this is where the tenant becomes known
            "user", "organization", "environment"
        )
        .filter(pk=_read(token, now), used_at=None, expires_at__gt=now)
        .first()
    )
    if pending is None or not pending.user.is_active or pending.environment.deleted_at:
        raise TokenExpired
    return Principal(
        kind="pending",
        user_id=pending.user_id,
        email=pending.user.email,
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
