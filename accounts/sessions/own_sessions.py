"""Listing and ending a user's own sessions."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from accounts.audit_tags import AccountTag
from accounts.errors import SessionNotFound
from accounts.models import Session
from accounts.sessions import sessions
from audit import trail
from common.principals import PlatformRequest, Principal


def live_sessions(principal: Principal, *, now: datetime) -> QuerySet[Session]:
    """Return the caller's sessions that can still be used or refreshed."""
    idle_since = now - timedelta(
        seconds=max(settings.ACCOUNTS.refresh_ttl_s, settings.ACCOUNTS.access_ttl_s)
    )
    return Session.objects.filter(
        user_id=principal.own_id,
        ended_at=None,
        ends_at__gt=now,
        rotated_at__gt=idle_since,
        environment__deleted_at=None,
    )


def end(request: PlatformRequest, principal: Principal, session_id: str, *, now: datetime) -> None:
    """End one of the caller's sessions; its access tokens stop working immediately.

    Raises SessionNotFound (404), also for another user's session and for one that has ended.
    """
    try:
        key = UUID(session_id)
    except ValueError:
        raise SessionNotFound from None
    with transaction.atomic():
        sessions.lock_user_sessions(principal.own_id)
        if (
            not live_sessions(principal, now=now)
            .filter(pk=key)
            .update(ended_at=now, end_reason="ended_by_owner")
        ):
            raise SessionNotFound
        trail.record_request(request, AccountTag.SESSION_DELETE, session=session_id)


def end_others(request: PlatformRequest, principal: Principal, *, now: datetime) -> int:
    """End all of the caller's sessions except the requesting one; return their number."""
    with transaction.atomic():
        ended = sessions.end_all_of_user(
            principal.own_id,
            reason="ended_by_owner",
            now=now,
            except_session=principal.session_id,
        )
        trail.record_request(request, AccountTag.SESSION_DELETE_OTHERS, ended=ended)
    return ended
