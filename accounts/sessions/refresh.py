"""Refresh and switch with a refresh token, and the end of a sign-in after a replayed token.

The rotation itself, with its five rules, is in accounts.sessions.refresh_rotation.
"""

from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction

from accounts import notices
from accounts.audit_tags import AccountTag
from accounts.errors import SessionRevoked, SwitchedTooOften
from accounts.models import Session
from accounts.sessions import known_devices, refresh_rotation, sessions
from accounts.sessions.refresh_rotation import ReuseDetected, RotationLost
from accounts.sessions.sessions import SessionTokens, request_source
from accounts.tokens import session_tokens
from audit import trail
from common import rate_limits
from common.principals import PlatformRequest
from environments import environments

HOUR: Final = timedelta(hours=1)
# Of one sign-in.
SWITCHES_PER_HOUR: Final = 1000
# Of one user. A client chooses its program's name, and each new device adds rows.
NEW_SOURCES_PER_HOUR: Final = 60

log = structlog.get_logger(__name__)


def refresh(request: PlatformRequest, token: str, *, now: datetime) -> SessionTokens:
    """Return the session of a refresh token, in its next generation.

    The user is notified of a new device, as at a sign-in.
    Raises TokenInvalid, TokenExpired, SessionRevoked (401 all).
    """
    pointer = session_tokens.read(token, "rt+jwt", now=now)
    try:
        session = refresh_rotation.rotate(pointer, now=now)
    except ReuseDetected as exc:
        raise _end_replayed_sign_in(request, exc.session, now) from exc
    except RotationLost as exc:
        raise _end_session_of_lost_rotation(request, exc.session, now) from exc
    _note_source(request, session, now)
    return SessionTokens(session, session.environment)


def _note_source(request: PlatformRequest, session: Session, now: datetime) -> None:
    """Keep where a session was refreshed from; notify the user of a new device, as at a sign-in.

    A refresh token alone is enough to go on with a session elsewhere.
    """
    source = request_source(request)
    agent = source.agent[:300]
    if (source.address, agent) == (session.address, session.agent):
        return
    session.address, session.agent = source.address, agent
    with transaction.atomic():
        # The user before the session, as all that ends sessions does; it may have come first.
        sessions.lock_user_sessions(session.user_id)
        current = Session.objects.filter(pk=session.pk, ended_at=None)
        if not current.update(address=source.address, agent=agent):
            return
        user, limit = str(session.user_id), NEW_SOURCES_PER_HOUR
        if rate_limits.take("refresh from elsewhere", user, limit=limit, window=HOUR, now=now):
            return
        if known_devices.is_new(session, now=now):
            slug = session.environment.slug
            known_devices.notify(request, session, environment=slug, now=now)


def switch(
    request: PlatformRequest, token: str, *, environment: str, keep_current: bool, now: datetime
) -> SessionTokens:
    """Return a session in another environment of the same sign-in.

    environment: id or name. The user is notified of a new device, as at a sign-in.
    Raises EnvironmentNotFound (404), TokenInvalid, TokenExpired, SessionRevoked (401),
    SwitchedTooOften (429), and InvalidRequest (400) for ``keep_current`` and the session's own
    environment.
    """
    pointer = session_tokens.read(token, "rt+jwt", now=now)
    target = environments.find(_count_switch(pointer, now), environment)
    try:
        with transaction.atomic():
            session = refresh_rotation.rotate_to(
                pointer, target, keep_current=keep_current, source=request_source(request), now=now
            )
            trail.record_user(
                request,
                AccountTag.SESSION_SWITCH,
                session.user,
                session=str(session.id),
                environment=target.slug,
            )
            if known_devices.is_new(session, now=now):
                known_devices.notify(request, session, environment=target.slug, now=now)
    except ReuseDetected as exc:
        raise _end_replayed_sign_in(request, exc.session, now) from exc
    except RotationLost as exc:
        raise _end_session_of_lost_rotation(request, exc.session, now) from exc
    return SessionTokens(session, target)


def _count_switch(pointer: session_tokens.SessionPointer, now: datetime) -> int:
    """Count a switch against its sign-in's limit; return the organization's id.

    Each switch adds rows that are kept for weeks, and costs its caller nothing.
    Raises SessionRevoked (401), SwitchedTooOften (429).
    """
    owner = Session.objects.filter(pk=pointer.session_id, user_id=pointer.user_id)
    found = owner.values_list("organization_id", "login_id").first()
    if found is None:
        raise SessionRevoked
    organization_id, login_id = found
    rate_limits.enforce(
        "switch",
        str(login_id),
        limit=SWITCHES_PER_HOUR,
        window=HOUR,
        error=SwitchedTooOften,
        now=now,
    )
    return int(organization_id)


def _end_replayed_sign_in(
    request: PlatformRequest, session: Session, now: datetime
) -> SessionRevoked:
    """End all sessions of the sign-in after a replay; return the exception to raise."""
    with transaction.atomic():
        # A switch from another session of the sign-in must not add one at this moment.
        sessions.lock_user_sessions(session.user_id)
        ended = sessions.end_login(session.login_id, reason="refresh_reuse", now=now)
        trail.record_user(
            request,
            AccountTag.SESSION_REFRESH_REUSE_DETECTED,
            session.user,
            outcome="refused",
            session=str(session.id),
            ended=ended,
        )
        notices.notify(session.user, "sessions_revoked_reuse")
    log.warning("refresh_reuse_detected", user_id=str(session.user_id), ended=ended)
    return SessionRevoked()


def _end_session_of_lost_rotation(
    request: PlatformRequest, session: Session, now: datetime
) -> SessionRevoked:
    """End the session of a token that is newer than its row; return the exception to raise.

    No mail: this platform signed the token, and lost the row of it. It is not accepted, because
    the lost rows may have ended the session.
    """
    with transaction.atomic():
        rows = Session.objects.filter(pk=session.pk, ended_at=None)
        rows.update(ended_at=now, end_reason="rotation_lost")
        trail.record_user(
            request,
            AccountTag.SESSION_ROTATION_LOST,
            session.user,
            outcome="refused",
            session=str(session.id),
        )
    log.warning("session_rotation_lost", user_id=str(session.user_id))
    return SessionRevoked()
