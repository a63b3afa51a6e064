"""Rotation of refresh tokens: refresh, and the switch to another environment.

The five rules, applied with the session's row locked:

1. the current generation: rotate;
2. the previous one within the grace: the same successor again, byte for byte;
3. the previous one later, its successor never used: the response was lost, so rotate again and
   invalidate the unused generation;
4. any other generation before: a replay, so every session of that sign-in ends;
5. a generation after the current one: the database lost rotations (a failover with asynchronous
   replication, a recovery to a point in time), so this session ends, and no other.
"""

from datetime import datetime, timedelta
from enum import Enum, auto

from django.db import transaction

from accounts.errors import SessionRevoked, TokenSuperseded
from accounts.models import REFRESH_GRACE_S, Session, User
from accounts.sessions import sessions
from accounts.sessions.sessions import RequestSource
from accounts.tokens.session_tokens import SessionPointer
from common.errors import InvalidRequest, NotAuthenticated
from environments.models import Environment


class ChainPosition(Enum):
    """The position of a refresh token in its session's chain: the five rules."""

    CURRENT = auto()
    PREVIOUS_IN_GRACE = auto()
    ANSWER_LOST = auto()
    REPLAYED = auto()
    ROTATION_LOST = auto()


class RotationLost(Exception):
    """A refresh token that is newer than its session's row; this session has to end."""

    def __init__(self, session: Session) -> None:
        super().__init__(str(session.id))
        self.session = session


class ReuseDetected(Exception):
    """A replayed refresh token; all sessions of the sign-in have to end."""

    def __init__(self, session: Session) -> None:
        super().__init__(str(session.id))
        self.session = session


def _position(session: Session, generation: int, now: datetime) -> ChainPosition:
    if generation == session.generation:
        return ChainPosition.CURRENT
    if generation > session.generation:
        return ChainPosition.ROTATION_LOST
    if generation != session.previous_generation:
        return ChainPosition.REPLAYED
    if session.is_in_grace(now):
        return ChainPosition.PREVIOUS_IN_GRACE
    return ChainPosition.REPLAYED if session.is_confirmed else ChainPosition.ANSWER_LOST


def _refuse_ended(session: Session, now: datetime, *, unless_ended_by: str = "") -> None:
    user, environment = session.user, session.environment
    is_open = session.is_live(now) or (
        unless_ended_by != "" and session.end_reason == unless_ended_by
    )
    if not (is_open and user.is_active and environment.deleted_at is None):
        raise SessionRevoked


def rotate(pointer: SessionPointer, *, now: datetime) -> Session:
    """Exchange a refresh token by the five rules; return the session in its next generation.

    Raises SessionRevoked; ReuseDetected by rule 4: the caller ends the sign-in; RotationLost by
    rule 5: the caller ends the session.
    """
    with transaction.atomic():
        session = sessions.lock(pointer)
        if session.end_reason != sessions.SWITCHED:
            return _rotated(session, pointer, now)
    # A lost switch is undone under the lock of the user's sessions, which comes first: all of them
    # may be ending at this moment.
    with transaction.atomic():
        sessions.lock_user_sessions(pointer.user_id)
        return _rotated(sessions.lock(pointer), pointer, now)


def _rotated(session: Session, pointer: SessionPointer, now: datetime) -> Session:
    position = _known_position(session, pointer, now)
    if session.end_reason == sessions.SWITCHED:
        _undo_lost_switch(session, now)
    _refuse_ended(session, now)
    if position is not ChainPosition.PREVIOUS_IN_GRACE:
        _begin_next_generation(session, kept=pointer.generation, now=now)
    return session


def _known_position(session: Session, pointer: SessionPointer, now: datetime) -> ChainPosition:
    """Return the position of a token by rules 1 to 3.

    Raises ReuseDetected by rule 4, RotationLost by rule 5, SessionRevoked if the session has ended.
    """
    position = _position(session, pointer.generation, now)
    if position is ChainPosition.REPLAYED:
        _refuse_ended(session, now, unless_ended_by=sessions.SWITCHED)
        raise ReuseDetected(session)
    if position is ChainPosition.ROTATION_LOST:
        _refuse_ended(session, now)
        raise RotationLost(session)
    return position


def _undo_lost_switch(session: Session, now: datetime) -> None:
    """Rule 3 for a switch: if its response was lost, the old session continues.

    Shortly after a switch, another tab may still send the old token: it is only refused, as
    superseded. Later, if the successor was used, the token was replayed.
    """
    if _switched_recently(session, now):
        raise _refusal_after_switch(_lock_successor(session), now)
    successor = _lock_successor(session)
    if successor is None or not _is_unused(successor):
        raise ReuseDetected(session)
    # If the successor was ended by its owner or a new password, the old session stays ended too.
    _refuse_ended(successor, now)
    successor.ended_at, successor.end_reason = now, "undelivered"
    successor.save(update_fields=["ended_at", "end_reason"])
    session.ended_at, session.end_reason, session.succeeded_by = None, "", None
    session.save(update_fields=["ended_at", "end_reason", "succeeded_by"])


def _begin_next_generation(session: Session, *, kept: int, now: datetime) -> None:
    """Begin the next generation.

    kept: the generation whose token stays valid, because the client may have it; 0: none.
    """
    session.previous_generation = kept
    session.generation += 1
    session.rotated_at = now
    session.is_confirmed = False
    session.save(update_fields=["previous_generation", "generation", "rotated_at", "is_confirmed"])


def rotate_to(
    pointer: SessionPointer,
    target: Environment,
    *,
    keep_current: bool,
    source: RequestSource,
    now: datetime,
) -> Session:
    """Exchange a refresh token for a session in another environment, under the same five rules.

    The new session inherits sign-in, end and assurance. The old one ends, or continues with
    ``keep_current``. A switch repeated within the grace returns the same session again.
    source: of the request. Raises SessionRevoked, ReuseDetected and RotationLost, as ``rotate``
    does, and InvalidRequest (400) for ``keep_current`` and the session's own environment.
    """
    with transaction.atomic():
        sessions.lock_user_sessions(pointer.user_id)
        session = sessions.lock(pointer)
        position = _known_position(session, pointer, now)
        if session.end_reason == sessions.SWITCHED:
            return _switch_again(session, target, now=now)
        _refuse_ended(session, now)
        if keep_current and session.environment_id == target.pk:
            raise InvalidRequest.for_field("keep_current", "The session is in this environment.")
        if position is ChainPosition.ANSWER_LOST:
            _begin_next_generation(session, kept=pointer.generation, now=now)
        elif position is ChainPosition.CURRENT:
            session.is_confirmed = True
        successor = _successor(session, target, source=source, now=now, is_further=keep_current)
        if not keep_current:
            session.ended_at, session.end_reason = now, sessions.SWITCHED
            session.succeeded_by = successor
        session.save(update_fields=["is_confirmed", "ended_at", "end_reason", "succeeded_by"])
    return successor


def _successor(
    session: Session, target: Environment, *, source: RequestSource, now: datetime, is_further: bool
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
        address=source.address,
        agent=source.agent[:300],
    )
    if is_further:
        sessions.end_surplus_sessions(session.user, now, kept=session.pk)
    successor.save(force_insert=True)
    User.objects.filter(pk=session.user_id).update(last_environment=target)
    return successor


def _switch_again(session: Session, target: Environment, *, now: datetime) -> Session:
    """Answer a repeated switch: the same session, within the grace or if its response was lost."""
    successor = _lock_successor(session)
    if successor is None or successor.environment_id != target.pk:
        raise _refusal_after_switch(successor, now)
    if _switched_recently(session, now):
        _refuse_ended(successor, now)
        return successor
    if not _is_unused(successor):
        raise ReuseDetected(session)
    _refuse_ended(successor, now)
    _begin_next_generation(successor, kept=0, now=now)
    return successor


def _refusal_after_switch(successor: Session | None, now: datetime) -> NotAuthenticated:
    """Return the refusal of a token whose session was switched: whether the sign-in goes on."""
    is_live = successor is not None and successor.is_live(now)
    return TokenSuperseded() if is_live else SessionRevoked()


def _is_unused(session: Session) -> bool:
    return session.generation == 1 and not session.is_confirmed


def _lock_successor(session: Session) -> Session | None:
    if session.succeeded_by_id is None:
        return None
    found: Session | None = (
        Session.objects.select_for_update(of=("self",))
        .select_related("environment", "user")
        .filter(pk=session.succeeded_by_id)
        .first()
    )
    return found


def _switched_recently(session: Session, now: datetime) -> bool:
    grace = timedelta(seconds=REFRESH_GRACE_S)
    return session.ended_at is not None and now <= session.ended_at + grace
