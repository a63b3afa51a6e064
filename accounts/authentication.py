"""Who: a bearer access token, resolved with one query into a principal."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from accounts import policy, tokens
from accounts.errors import SessionRevoked
from accounts.models import Session
from platform_site.lib.errors import NotAuthenticated, TokenInvalid
from platform_site.lib.principals import PlatformRequest, Principal

AAL2: Final = 2

# One row, joined; values and not model instances, since building four of those costs more than
# the query does.
_FIELDS: Final = (
    "generation",
    "previous_generation",
    "is_confirmed",
    "rotated_at",
    "ends_at",
    "ended_at",
    "aal",
    "amr",
    "auth_time",
    "mfa_time",
    "mfa_method",
    "user_id",
    "user__email",
    "user__is_active",
    "user__roles",
    "user__labels",
    "organization_id",
    "organization__name",
    "organization__mfa_required",
    "organization__mfa_required_since",
    "organization__mfa_grace_period_days",
    "organization__mfa_allowed_methods",
    "user__created_at",
    "environment_id",
    "environment__slug",
    "environment__name",
    "environment__deleted_at",
)


def bearer_token(request: PlatformRequest) -> str | None:
    """Give the bearer token, None without an Authorization header.

    Raises NotAuthenticated for another scheme, TokenInvalid for a header that is malformed.
    """
    header = request.headers.get("Authorization")
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        raise NotAuthenticated("Send Authorization: Bearer <ACCESS_TOKEN>.")
    if not token.strip() or not token.isascii():
        raise TokenInvalid
    return token.strip()


def authenticate(request: PlatformRequest, token: str) -> Principal | None:
    """Give the principal of an access token (one of settings.PRINCIPAL_AUTHENTICATORS).

    The row decides: logout, a disabled user, a role change hold on the very next request. One
    query; the first use of a generation costs one more, an UPDATE.
    Raises TokenInvalid, TokenExpired, SessionRevoked.
    """
    now = timezone.now()
    pointer = tokens.read(token, "at+jwt", now=now)
    rows = Session.unscoped.filter(  # unscoped: this is where the tenant becomes known
        pk=pointer.session_id, user_id=pointer.user_id
    )
    row = rows.values(*_FIELDS).first()
    if row is None or not _holds(row, pointer.generation, now):
        raise SessionRevoked
    if not row["is_confirmed"] and pointer.generation == row["generation"]:
        # From now on the previous generation's late return is a theft, not a lost answer.
        rows.filter(generation=pointer.generation, is_confirmed=False).update(is_confirmed=True)
    return Principal(
        kind="user",
        user_id=row["user_id"],
        email=row["user__email"],
        organization_id=row["organization_id"],
        organization_name=row["organization__name"],
        environment_pk=row["environment_id"],
        environment_id=row["environment__slug"],
        environment_name=row["environment__name"],
        roles=tuple(row["user__roles"]),
        labels=tuple(row["user__labels"]),
        session_id=pointer.session_id,
        aal=row["aal"],
        amr=tuple(row["amr"]),
        auth_time=int(row["auth_time"].timestamp()),
        access_expires_at=pointer.expires_at,
        mfa_time=int(row["mfa_time"].timestamp()) if row["mfa_time"] else None,
        restriction=_restriction(row, now),
    )


def _restriction(row: dict[str, Any], now: datetime) -> str:
    """Say what the policy holds against a session; it holds on sessions that live already, too."""
    if not row["organization__mfa_required"]:
        return ""
    if row["aal"] >= AAL2 and row["mfa_method"] in row["organization__mfa_allowed_methods"]:
        return ""
    deadline = policy.deadline(
        row["organization__mfa_required_since"],
        row["organization__mfa_grace_period_days"],
        member_since=row["user__created_at"],
    )
    return "second_factor" if now >= deadline else ""


def _holds(row: dict[str, Any], generation: int, now: datetime) -> bool:
    if row["ended_at"] is not None or now >= row["ends_at"]:
        return False
    if not row["user__is_active"] or row["environment__deleted_at"] is not None:
        return False
    if generation == row["generation"]:
        return True
    grace = row["rotated_at"] + timedelta(seconds=settings.JWT_REFRESH_GRACE_S)
    return bool(generation == row["previous_generation"] and now <= grace)
