"""Opening, locking and ending sessions, and their tokens. Rotation: ``refresh_rotation.py``."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone

from accounts.errors import InvalidCredentials, SessionRevoked
from accounts.models import Session, User
from accounts.tokens import session_tokens
from accounts.tokens.session_tokens import SessionPointer
from common.web.addresses import client_address
from environments.models import Environment

# The reason of an end by a switch: the sign-in goes on in another session.
SWITCHED: Final = "switched"
# A new one ends the least recently used one.
SESSIONS_PER_USER: Final = 100


@dataclass(frozen=True, slots=True)
class Assurance:
    """The assurance of a sign-in: level, RFC 8176 names, and the second factor if there was one.

    auth_time, mfa_time: when the first and the second factor were proven; None for now.
    """

    aal: int
    amr: Sequence[str]
    mfa_method: str = ""
    auth_time: datetime | None = None
    mfa_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class RequestSource:
    """Address and User-Agent of a sign-in, for the user's list of sessions."""

    address: str
    agent: str


@dataclass(frozen=True, slots=True)
class SessionTokens:
    """A session that was opened or refreshed, with the data of its response."""

    session: Session
    environment: Environment
    warnings: Sequence[dict[str, Any]] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def pair(self) -> dict[str, Any]:
        """Return the token pair with ``environment``."""
        environment = {"id": self.environment.slug, "name": self.environment.name}
        pair = session_tokens.pair_for(self.session, self.environment).as_json()
        return pair | {"environment": environment}

    @property
    def answer(self) -> dict[str, Any]:
        """Return the response of a completed login."""
        head = {"status": "authenticated"}
        return head | self.pair() | self.extra | {"warnings": list(self.warnings)}


def open_session(
    user: User,
    environment: Environment,
    *,
    assurance: Assurance,
    source: RequestSource,
    now: datetime,
) -> Session:
    """Open a session; the user's least recently refreshed one ends if there are too many.

    Raises InvalidCredentials (401) for a user who has changed since it was read; the caller's
    transaction cannot continue then.
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
    # No savepoint: no caller continues its transaction after this error.
    with transaction.atomic(savepoint=False):
        _lock_user_and_end_surplus(user, environment, now)
        session.save(force_insert=True)
    return session


def request_source(request: HttpRequest) -> RequestSource:
    """Return the address and User-Agent of a request, as a session stores them."""
    agent = request.headers.get("User-Agent", "").replace("\0", "")
    return RequestSource(client_address(request), agent)


def lock_user_sessions(user_id: UUID) -> None:
    """Lock the set of a user's sessions: nothing else adds sessions or ends several.

    Call inside a transaction. Without it a concurrent switch could add a session while all sessions
    are being ended.
    """
    rows = User.objects.select_for_update(no_key=True)
    rows.filter(pk=user_id).values("pk").first()


def _lock_user_and_end_surplus(user: User, environment: Environment, now: datetime) -> None:
    """Lock the user, who must not have changed, and end sessions beyond the limit.

    The environment becomes the last used one, for logins without `environment`. The lock serializes
    sign-ins of a user, so that the limit holds under concurrency. Raises InvalidCredentials for a
    user who has a new password, was disabled or removed since the authentication.
    """
    unchanged = User.objects.filter(pk=user.pk, password=user.password, is_active=True)
    if not unchanged.update(last_environment=environment, last_login=now):
        raise InvalidCredentials
    end_surplus_sessions(user, now)


def end_surplus_sessions(user: User, now: datetime, *, kept: UUID | None = None) -> None:
    """End the least recently refreshed sessions, so that one more is within the limit.

    kept: a session that is not ended.
    """
    others = max(0, SESSIONS_PER_USER - (1 if kept is None else 2))
    live = Session.objects.filter(user_id=user.pk, ended_at=None).exclude(pk=kept)
    surplus = live.order_by("-rotated_at").values("pk")[others:]
    Session.objects.filter(pk__in=surplus).update(ended_at=now, end_reason="too_many")


def lock(pointer: SessionPointer) -> Session:
    """Return the session of a token, locked, with its user and environment.

    Raises SessionRevoked if it does not exist.
    """
    found: Session | None = (
        Session.objects.select_for_update(of=("self",))
        .select_related("environment", "user")
        .filter(pk=pointer.session_id, user_id=pointer.user_id)
        .first()
    )
    if found is None:
        raise SessionRevoked
    return found


def end(pointer: SessionPointer, *, now: datetime) -> Session | None:
    """End the session of a refresh token of any generation; None if it had ended before."""
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
    """End every session of one sign-in; return their number.

    Call inside a transaction that holds the lock of ``lock_user_sessions``.
    """
    live = Session.objects.filter(login_id=login_id, ended_at=None)
    return live.update(ended_at=now, end_reason=reason)


def on_environment_deleted(environment_pk: int) -> None:
    """End the sessions in an environment (a lifecycle hook)."""
    live = Session.objects.filter(environment_id=environment_pk, ended_at=None)
    live.update(ended_at=timezone.now(), end_reason="environment_deleted")


def end_all_of_user(
    user_id: UUID, *, reason: str, now: datetime, except_session: UUID | None = None
) -> int:
    """End every session of a user except ``except_session``; return their number.

    Sessions of the admin end too, but are not counted. Call inside a transaction.
    """
    # Takes the same lock as ``lock_user_sessions``.
    row = User.objects.filter(pk=user_id)
    row.update(sessions_ended=F("sessions_ended") + 1)
    live = Session.objects.filter(user_id=user_id, ended_at=None)
    return live.exclude(pk=except_session).update(ended_at=now, end_reason=reason)
