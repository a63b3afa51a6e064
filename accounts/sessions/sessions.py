"""Sessions: opened by a sign-in, and ended. ``rotation.py`` has refresh and switch."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from accounts.errors import InvalidCredentials, SessionRevoked
from accounts.models import Session, User
from accounts.tokens.tokens import Pointer
from environments.models import Environment

# Literal SQL, since every sign-in runs them; the second one with the index of live sessions
# by user, and after the first one has waited for its turn, so that it sees what others have opened.
_ENTER: Final = """
UPDATE accounts_user SET last_environment_id = %s, last_login = %s
WHERE id = %s AND password = %s AND is_active
"""
_END_SURPLUS: Final = """
UPDATE accounts_session SET ended_at = %s, end_reason = 'too_many'
WHERE id IN (
    SELECT id FROM accounts_session WHERE user_id = %s AND ended_at IS NULL
    ORDER BY rotated_at DESC OFFSET %s
)
"""


@dataclass(frozen=True, slots=True)
class Assurance:
    """What a sign-in has proven: level, RFC 8176 names, and the second factor among them.

    auth_time, mfa_time: when the first and the second factor were proven; None for just now.
    """

    aal: int
    amr: Sequence[str]
    mfa_method: str = ""
    auth_time: datetime | None = None
    mfa_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class RequestSource:
    """Where a sign-in came from, for the owner's list of sessions."""

    address: str
    agent: str


def open_session(
    user: User,
    environment: Environment,
    *,
    assurance: Assurance,
    source: RequestSource,
    now: datetime,
) -> Session:
    """Begin a session; the user's least recently refreshed one ends when there are too many.

    Raises InvalidCredentials (401) for a user who has changed since it was read; that voids the
    caller's transaction, too.
    """
    session = Session(
        user=user,
        organization_id=user.organization_id,
        environment=environment,
        rotated_at=now,
        created_at=now,
        auth_time=assurance.auth_time or now,
        ends_at=now + timedelta(seconds=settings.ACCOUNTS.session_max_s),
        aal=assurance.aal,
        amr=list(assurance.amr),
        mfa_method=assurance.mfa_method,
        mfa_time=(assurance.mfa_time or now) if assurance.mfa_method else None,
        address=source.address,
        agent=source.agent[:300],
    )
    # No savepoint: no caller within a transaction goes on after a refusal.
    with transaction.atomic(savepoint=False):
        _lock_user_and_end_surplus(user, environment, now)
        session.save(force_insert=True)
    return session


def lock_user_sessions(user_id: UUID) -> None:
    """Wait for what adds sessions to a user or ends several; call inside a transaction.

    Otherwise a concurrent switch could open a session that ending all sessions misses.
    """
    rows = User.unscoped.select_for_update(no_key=True)  # unscoped: by its own key
    rows.filter(pk=user_id).values("pk").first()


def _lock_user_and_end_surplus(user: User, environment: Environment, now: datetime) -> None:
    """Wait for the user's turn, hold the user as it was proven, and make room for a session.

    Sign-in is the last use that the next login without `environment` goes by. Sign-ins of one user
    take turns at its row, so that the cap holds under concurrency. A user who has a new password,
    was disabled or removed since it was proven does not come in.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ENTER, [environment.pk, now, user.pk, user.password])
        if not cursor.rowcount:
            raise InvalidCredentials
    end_surplus_sessions(user, now)


def end_surplus_sessions(user: User, now: datetime) -> None:
    """End the least recently refreshed sessions beyond the limit, so that one more fits."""
    with connection.cursor() as cursor:
        cursor.execute(_END_SURPLUS, [now, user.pk, settings.ACCOUNTS.sessions_per_user - 1])


def lock(pointer: Pointer) -> Session:
    """Return the session of a token, locked, with its user and environment.

    Raises SessionRevoked for one that does not exist.
    """
    # unscoped: the signed token names the tenant
    found: Session | None = (
        Session.unscoped.select_for_update(of=("self",))
        .select_related("environment", "user")
        .filter(pk=pointer.session_id, user_id=pointer.user_id)
        .first()
    )
    if found is None:
        raise SessionRevoked
    return found


def end(pointer: Pointer, *, now: datetime) -> Session | None:
    """End the session a refresh token points at, of any generation; None when it had ended."""
    with transaction.atomic():
        try:
            session = lock(pointer)
        except SessionRevoked:
            return None
        if session.ended_at is not None:
            return None
        session.ended_at, session.end_reason = now, "logout"
        session.save(update_fields=["ended_at", "end_reason"])
    return session


def end_login(login_id: UUID, *, reason: str, now: datetime) -> int:
    """End every session of one sign-in; return how many there were."""
    live = Session.unscoped.filter(login_id=login_id, ended_at=None)  # unscoped: by its own key
    return live.update(ended_at=now, end_reason=reason)


def on_environment_deleted(environment_pk: int) -> None:
    """End the sessions in an environment (a lifecycle hook)."""
    live = Session.unscoped.filter(  # unscoped: a hook knows the environment alone
        environment_id=environment_pk, ended_at=None
    )
    live.update(ended_at=timezone.now(), end_reason="environment_deleted")


def end_all_of_user(
    user_id: UUID, *, reason: str, now: datetime, except_session: UUID | None = None
) -> int:
    """End every session of a user, but for one where it is named; return how many there were.

    Sessions of the admin end, too, and are not counted. Call inside a transaction.
    """
    # Waits for the user's turn, as ``lock_user_sessions`` does.
    row = User.unscoped.filter(pk=user_id)  # unscoped: by its own key
    row.update(sessions_ended=F("sessions_ended") + 1)
    live = Session.unscoped.filter(user_id=user_id, ended_at=None)  # unscoped: by its own key
    return live.exclude(pk=except_session).update(ended_at=now, end_reason=reason)
