"""Sessions: opened by a sign-in, carried on by refresh, moved by a switch, ended.

The refresh chain, with the row locked (auth.md, "Tokens and sessions"):

1. the current generation → rotate;
2. the previous one within the grace → the same successor again, byte for byte;
3. the previous one later, its successor never used → the answer was lost: rotate forward, and the
   unused generation is void;
4. any other generation → somebody replays: every session of that sign-in ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts.errors import InvalidCredentials, SessionRevoked
from accounts.models import Session, User
from accounts.tokens.tokens import Pointer
from environments.models import Environment

SWITCHED: Final = "switched"
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


class ChainPosition(Enum):
    """The position of a refresh token in its session's chain: the four rules."""

    CURRENT = auto()
    PREVIOUS_IN_GRACE = auto()
    ANSWER_LOST = auto()
    REPLAYED = auto()


@dataclass(frozen=True, slots=True)
class Assurance:
    """What a sign-in has proven: level, RFC 8176 names, and the second factor among them."""

    aal: int
    amr: Sequence[str]
    mfa_method: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a sign-in came from, for the owner's list of sessions."""

    address: str
    agent: str


class ReuseDetected(Exception):
    """A replayed refresh token; all sessions of the sign-in have to end."""

    def __init__(self, session: Session) -> None:
        super().__init__(str(session.id))
        self.session = session


def open_session(
    user: User,
    environment: Environment,
    *,
    assurance: Assurance,
    origin: Origin,
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
        auth_time=now,
        ends_at=now + timedelta(seconds=settings.ACCOUNTS.session_max_s),
        aal=assurance.aal,
        amr=list(assurance.amr),
        mfa_method=assurance.mfa_method,
        mfa_time=now if assurance.mfa_method else None,
        address=origin.address,
        agent=origin.agent[:300],
    )
    # No savepoint: no caller within a transaction goes on after a refusal.
    with transaction.atomic(savepoint=False):
        _enter(user, environment, now)
        session.save(force_insert=True)
    return session


def take_turns(user_id: UUID) -> None:
    """Wait for what adds sessions to a user or ends several; call inside a transaction.

    Otherwise a concurrent switch could open a session that ending all sessions misses.
    """
    rows = User.unscoped.select_for_update(no_key=True)  # unscoped: by its own key
    rows.filter(pk=user_id).values("pk").first()


def _enter(user: User, environment: Environment, now: datetime) -> None:
    """Wait for the user's turn, hold the user as it was proven, and make room for a session.

    Sign-in is the last use that the next login without `environment` goes by. Sign-ins of one user
    take turns at its row, so that the cap holds under concurrency. A user who has a new password,
    was disabled or removed since it was proven does not come in.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ENTER, [environment.pk, now, user.pk, user.password])
        if not cursor.rowcount:
            raise InvalidCredentials
    _make_room(user, now)


def _make_room(user: User, now: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_END_SURPLUS, [now, user.pk, settings.ACCOUNTS.sessions_per_user - 1])


def _lock(pointer: Pointer) -> Session:
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


def _position(session: Session, generation: int, now: datetime) -> ChainPosition:
    if generation == session.generation:
        return ChainPosition.CURRENT
    if generation != session.previous_generation:
        return ChainPosition.REPLAYED
    if session.is_in_grace(now):
        return ChainPosition.PREVIOUS_IN_GRACE
    return ChainPosition.REPLAYED if session.is_confirmed else ChainPosition.ANSWER_LOST


def _refuse_dead(session: Session, now: datetime, *, besides: str = "") -> None:
    user, environment = session.user, session.environment
    is_open = session.is_live(now) or (besides != "" and session.end_reason == besides)
    if not (is_open and user.is_active and environment.deleted_at is None):
        raise SessionRevoked


def refresh(pointer: Pointer, *, now: datetime) -> Session:
    """Exchange a refresh token under the four rules; tokens.pair_for gives the new pair.

    Raises SessionRevoked; ReuseDetected under rule 4, when the caller ends the sign-in.
    """
    with transaction.atomic():
        session = _lock(pointer)
        position = _position(session, pointer.generation, now)
        if position is ChainPosition.REPLAYED:
            _refuse_dead(session, now, besides=SWITCHED)
            raise ReuseDetected(session)
        if session.end_reason == SWITCHED:
            _undo_lost_switch(session, now)
        _refuse_dead(session, now)
        if position is not ChainPosition.PREVIOUS_IN_GRACE:
            _rotate(session, held=pointer.generation, now=now)
    return session


def _undo_lost_switch(session: Session, now: datetime) -> None:
    """Rule 3 for a switch: where its answer never arrived, the old session goes on.

    Right after a switch the token of another tab is late, no thief; once the successor has been
    used, it is a replay.
    """
    if _switched_lately(session, now):
        raise SessionRevoked
    successor = _lock_successor(session)
    if successor is None or not _is_unused(successor):
        raise ReuseDetected(session)
    # Where it was ended, by its owner or a new password, the old one does not come back, either.
    _refuse_dead(successor, now)
    successor.ended_at, successor.end_reason = now, "undelivered"
    successor.save(update_fields=["ended_at", "end_reason"])
    session.ended_at, session.end_reason, session.succeeded_by = None, "", None
    session.save(update_fields=["ended_at", "end_reason", "succeeded_by"])


def _rotate(session: Session, *, held: int, now: datetime) -> None:
    """Begin the next generation; ``held`` is the one the client still has."""
    session.previous_generation = held
    session.generation += 1
    session.rotated_at = now
    session.is_confirmed = False
    session.save(update_fields=["previous_generation", "generation", "rotated_at", "is_confirmed"])


def switch(pointer: Pointer, target: Environment, *, keep_current: bool, now: datetime) -> Session:
    """Exchange a refresh token for a session in another environment, under the same four rules.

    The new session inherits sign-in, end and assurance; the old one ends, or goes on with
    ``keep_current``. A switch repeated within the grace gives the same session again.
    Raises SessionRevoked and ReuseDetected, as refresh does.
    """
    with transaction.atomic():
        take_turns(pointer.user_id)
        session = _lock(pointer)
        position = _position(session, pointer.generation, now)
        if position is ChainPosition.REPLAYED:
            _refuse_dead(session, now, besides=SWITCHED)
            raise ReuseDetected(session)
        if session.end_reason == SWITCHED:
            return _switch_again(session, target, now=now)
        _refuse_dead(session, now)
        if position is ChainPosition.ANSWER_LOST:
            _rotate(session, held=pointer.generation, now=now)
        elif position is ChainPosition.CURRENT:
            session.is_confirmed = True
        successor = _successor(session, target, now=now, is_further=keep_current)
        if not keep_current:
            session.ended_at, session.end_reason = now, SWITCHED
            session.succeeded_by = successor
        session.save(update_fields=["is_confirmed", "ended_at", "end_reason", "succeeded_by"])
    return successor


def _successor(
    session: Session, target: Environment, *, now: datetime, is_further: bool
) -> Session:
    successor = Session(
        login_id=session.login_id,
        user=session.user,
        organization_id=session.organization_id,
        environment=target,
        rotated_at=now,
        created_at=now,
        auth_time=session.auth_time,
        mfa_time=session.mfa_time,
        mfa_method=session.mfa_method,
        ends_at=session.ends_at,
        aal=session.aal,
        amr=session.amr,
        address=session.address,
        agent=session.agent,
    )
    if is_further:
        _make_room(session.user, now)
    successor.save(force_insert=True)
    User.unscoped.filter(pk=session.user_id).update(  # unscoped: the session's own user
        last_environment=target
    )
    return successor


def _switch_again(session: Session, target: Environment, *, now: datetime) -> Session:
    """Answer a repeated switch: the same session within the grace, or where the answer was lost."""
    successor = _lock_successor(session)
    if successor is None or successor.environment_id != target.pk:
        raise SessionRevoked
    if _switched_lately(session, now):
        _refuse_dead(successor, now)
        return successor
    if not _is_unused(successor):
        raise ReuseDetected(session)
    _refuse_dead(successor, now)
    _rotate(successor, held=0, now=now)
    return successor


def _is_unused(session: Session) -> bool:
    return session.generation == 1 and not session.is_confirmed


def _lock_successor(session: Session) -> Session | None:
    if session.succeeded_by_id is None:
        return None
    found: Session | None = (
        Session.unscoped.select_for_update(of=("self",))  # unscoped: reached from a locked row
        .select_related("environment", "user")
        .filter(pk=session.succeeded_by_id)
        .first()
    )
    return found


def _switched_lately(session: Session, now: datetime) -> bool:
    grace = timedelta(seconds=settings.ACCOUNTS.refresh_grace_s)
    return session.ended_at is not None and now <= session.ended_at + grace


def end(pointer: Pointer, *, now: datetime) -> Session | None:
    """End the session a refresh token points at, of any generation; None when it had ended."""
    with transaction.atomic():
        try:
            session = _lock(pointer)
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

    Call inside a transaction.
    """
    take_turns(user_id)
    live = Session.unscoped.filter(user_id=user_id, ended_at=None)  # unscoped: by its own key
    return live.exclude(pk=except_session).update(ended_at=now, end_reason=reason)
