"""Who: a bearer access token, resolved with one query into a principal."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts import policy, tokens
from accounts.errors import SessionRevoked
from accounts.models import Session
from platform_site.lib.errors import NotAuthenticated, TokenInvalid
from platform_site.lib.principals import PlatformRequest, Principal

AAL2: Final = 2

# One row, joined, as literal SQL: the ORM takes five times as long to put this together as
# PostgreSQL takes to answer it, and it stands before every request.
_COLUMNS: Final = {
    "generation": "s.generation",
    "previous_generation": "s.previous_generation",
    "is_confirmed": "s.is_confirmed",
    "rotated_at": "s.rotated_at",
    "ends_at": "s.ends_at",
    "ended_at": "s.ended_at",
    "aal": "s.aal",
    "amr": "s.amr",
    "auth_time": "s.auth_time",
    "mfa_time": "s.mfa_time",
    "mfa_method": "s.mfa_method",
    "user_id": "u.id",
    "email": "u.email",
    "is_active": "u.is_active",
    "roles": "u.roles",
    "labels": "u.labels",
    "created_at": "u.created_at",
    "organization_id": "o.id",
    "organization_name": "o.name",
    "mfa_required": "o.mfa_required",
    "mfa_required_since": "o.mfa_required_since",
    "mfa_grace_period_days": "o.mfa_grace_period_days",
    "mfa_allowed_methods": "o.mfa_allowed_methods",
    "environment_pk": "e.id",
    "slug": "e.slug",
    "environment_name": "e.name",
    "deleted_at": "e.deleted_at",
}
_QUERY: Final = f"""
SELECT {", ".join(_COLUMNS.values())}
FROM accounts_session s
JOIN accounts_user u ON u.id = s.user_id
JOIN environments_organization o ON o.id = s.organization_id
JOIN environments_environment e ON e.id = s.environment_id
WHERE s.id = %s AND s.user_id = %s
"""  # noqa: S608 - column names from the literal table above


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
    row = _find(pointer)
    if row is None or not _holds(row, pointer.generation, now):
        raise SessionRevoked
    if not row["is_confirmed"] and pointer.generation == row["generation"]:
        # From now on the previous generation's late return is a theft, not a lost answer.
        Session.unscoped.filter(  # unscoped: by the row just read
            pk=pointer.session_id, generation=pointer.generation, is_confirmed=False
        ).update(is_confirmed=True)
    return Principal(
        kind="user",
        user_id=row["user_id"],
        email=row["email"],
        organization_id=row["organization_id"],
        organization_name=row["organization_name"],
        environment_pk=row["environment_pk"],
        environment_id=row["slug"],
        environment_name=row["environment_name"],
        roles=tuple(row["roles"]),
        labels=tuple(row["labels"]),
        session_id=pointer.session_id,
        aal=row["aal"],
        amr=tuple(row["amr"]),
        auth_time=int(row["auth_time"].timestamp()),
        access_expires_at=pointer.expires_at,
        mfa_time=int(row["mfa_time"].timestamp()) if row["mfa_time"] else None,
        restriction=_restriction(row, now),
    )


def _find(pointer: tokens.Pointer) -> dict[str, Any] | None:
    with connection.cursor() as cursor:
        cursor.execute(_QUERY, [pointer.session_id, pointer.user_id])
        found = cursor.fetchone()
    return dict(zip(_COLUMNS, found, strict=True)) if found is not None else None


def _restriction(row: dict[str, Any], now: datetime) -> str:
    """Say what the policy holds against a session; it holds on sessions that live already, too."""
    if not row["mfa_required"]:
        return ""
    if row["aal"] >= AAL2 and row["mfa_method"] in row["mfa_allowed_methods"]:
        return ""
    deadline = policy.deadline(
        row["mfa_required_since"], row["mfa_grace_period_days"], member_since=row["created_at"]
    )
    return "second_factor" if now >= deadline else ""


def _holds(row: dict[str, Any], generation: int, now: datetime) -> bool:
    if row["ended_at"] is not None or now >= row["ends_at"]:
        return False
    if not row["is_active"] or row["deleted_at"] is not None:
        return False
    if generation == row["generation"]:
        return True
    grace = row["rotated_at"] + timedelta(seconds=settings.JWT_REFRESH_GRACE_S)
    return bool(generation == row["previous_generation"] and now <= grace)
