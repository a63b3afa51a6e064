"""Resolve an access token into a principal, with one query."""

from datetime import datetime, timedelta
from typing import Any, Final, Literal

from django.db.models import F, QuerySet
from django.utils import timezone

from accounts.errors import SessionRevoked, TokenSuperseded
from accounts.models import REFRESH_GRACE_S, Session
from accounts.sessions import sessions
from accounts.tokens import session_tokens
from common.database.prepared import PreparedQuery, parameter
from common.errors import NotAuthenticated, TokenInvalid
from common.principals import PlatformRequest, Principal
from common.scoping import unscoped
from environments import models

AAL2: Final = 2
# In `amr`: a trusted device replaces the second factor at sign-in only.
TRUSTED_DEVICE: Final = "tdev"


@unscoped("the session says whose scope it is")
def _rows() -> QuerySet[Session, dict[str, Any]]:
    mine = Session.objects.filter(pk=parameter(1, "uuid"), user_id=parameter(2, "uuid"))
    return mine.values(
        "generation",
        "previous_generation",
        "is_confirmed",
        "rotated_at",
        "ends_at",
        "ended_at",
        "end_reason",
        "aal",
        "amr",
        "auth_time",
        "mfa_time",
        "mfa_method",
        "organization_id",
        "environment_id",
        email=F("user__email"),
        email_verified_at=F("user__email_verified_at"),
        is_active=F("user__is_active"),
        roles=F("user__roles"),
        derived_roles=F("user__derived_roles"),
        labels=F("user__labels"),
        member_since=F("user__created_at"),
        organization_name=F("organization__name"),
        mfa_required=F("organization__mfa_required"),
        mfa_required_since=F("organization__mfa_required_since"),
        mfa_grace_period_days=F("organization__mfa_grace_period_days"),
        mfa_allowed_methods=F("organization__mfa_allowed_methods"),
        slug=F("environment__slug"),
        environment_name=F("environment__name"),
        environment_deleted_at=F("environment__deleted_at"),
    )


_QUERY: Final = PreparedQuery(_rows)


def bearer_token(request: PlatformRequest) -> str | None:
    """Return the bearer token, None without an Authorization header.

    Raises NotAuthenticated for another scheme, TokenInvalid for a header that is malformed.
    """
    header: str | None = request.META.get("HTTP_AUTHORIZATION")
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        raise NotAuthenticated("Send Authorization: Bearer <ACCESS_TOKEN>.")
    if not token.strip() or not token.isascii():
        raise TokenInvalid
    return token.strip()


def authenticate(request: PlatformRequest, token: str) -> Principal | None:
    """Return the principal of an access token.

    The row decides: a logout, a disabled user or a changed role takes effect on the next request.
    The first use of a generation costs a second query, an UPDATE.
    Raises TokenInvalid, TokenExpired, SessionRevoked, TokenSuperseded.
    """
    now = timezone.now()
    pointer = session_tokens.read(token, "at+jwt", now=now)
    row = _QUERY.row(str(pointer.session_id).encode(), str(pointer.user_id).encode())
    if row is None or not _holds(row, pointer.generation, now):
        raise _refusal(row, pointer, now)
    if not row["is_confirmed"] and pointer.generation == row["generation"]:
        # From now on a token of the previous generation means theft, not a lost response.
        Session.objects.filter(
            pk=pointer.session_id, generation=pointer.generation, is_confirmed=False
        ).update(is_confirmed=True)
    return Principal(
        kind="user",
        user_id=pointer.user_id,
        email=row["email"] or None,
        email_verified=row["email_verified_at"] is not None,
        organization_id=row["organization_id"],
        organization_name=row["organization_name"],
        environment_pk=row["environment_id"],
        environment_id=row["slug"],
        environment_name=row["environment_name"],
        # A role may be both given by an admin and derived.
        roles=tuple(dict.fromkeys([*row["roles"], *row["derived_roles"]])),
        labels=tuple(row["labels"]),
        session_id=pointer.session_id,
        aal=row["aal"],
        amr=tuple(row["amr"]),
        auth_time=_seconds(row["auth_time"]),
        access_expires_at=pointer.expires_at,
        mfa_time=_seconds(row["mfa_time"]) if row["mfa_time"] else None,
        restriction=_restriction(row, now),
    )


def _restriction(row: dict[str, Any], now: datetime) -> Literal["", "second_factor", "email"]:
    """Return why the session is restricted; a changed policy also applies to existing sessions."""
    if not row["email"]:
        return "email"
    if not row["mfa_required"]:
        return ""
    if row["aal"] >= AAL2 and row["mfa_method"] in row["mfa_allowed_methods"]:
        return ""
    if TRUSTED_DEVICE in row["amr"]:
        return ""
    since = row["mfa_required_since"]
    ends_at = models.second_factor_deadline(
        datetime.fromisoformat(since) if since else None,
        row["mfa_grace_period_days"],
        member_since=datetime.fromisoformat(row["member_since"]),
    )
    return "second_factor" if now >= ends_at else ""


def _seconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp())


def _refusal(
    row: dict[str, Any] | None, pointer: session_tokens.SessionPointer, now: datetime
) -> NotAuthenticated:
    """Return why a token does not hold: its session has ended, or goes on with newer tokens."""
    if row is None:
        return SessionRevoked()
    if pointer.generation <= row["generation"] and _holds(row, row["generation"], now):
        return TokenSuperseded()
    if row["end_reason"] == sessions.SWITCHED and _has_live_successor(pointer, now):
        return TokenSuperseded()
    return SessionRevoked()


@unscoped("the session says whose scope it is")
def _has_live_successor(pointer: session_tokens.SessionPointer, now: datetime) -> bool:
    rows = Session.objects.filter(pk=pointer.session_id, user_id=pointer.user_id)
    return rows.filter(
        succeeded_by__ended_at=None,
        succeeded_by__ends_at__gt=now,
        succeeded_by__environment__deleted_at=None,
        user__is_active=True,
    ).exists()


def _holds(row: dict[str, Any], generation: int, now: datetime) -> bool:
    if row["ended_at"] or now >= datetime.fromisoformat(row["ends_at"]):
        return False
    if not row["is_active"] or row["environment_deleted_at"]:
        return False
    if generation == row["generation"]:
        return True
    grace_ends = datetime.fromisoformat(row["rotated_at"]) + timedelta(seconds=REFRESH_GRACE_S)
    return bool(generation == row["previous_generation"] and now <= grace_ends)
