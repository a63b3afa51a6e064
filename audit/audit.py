"""Adding audit events, in the transaction of the change that they record."""

from typing import Any, Protocol, cast
from uuid import UUID

import structlog
from django.db import DatabaseError, connection
from django.http import HttpRequest

from audit.models import AuditEvent
from common.audit import AuditTag
from common.principals import PlatformRequest
from common.web.addresses import client_address

log = structlog.get_logger(__name__)


class Actor(Protocol):
    """What an event holds of a user; its text is the name."""

    pk: UUID
    organization_id: int


def record_request(
    request: PlatformRequest, tag: AuditTag, *, outcome: str = "success", **data: Any
) -> None:
    """Record what the request's principal did, in the current transaction.

    data: JSON values, never a secret.
    """
    principal = request.principal
    add(
        request,
        tag,
        outcome=outcome,
        organization_id=principal.organization_id if principal else None,
        environment_id=principal.environment_id if principal else "",
        actor_id=principal.actor_id if principal else None,
        actor=principal.audit_name if principal else "",
        data=data,
    )


def record_user(
    request: PlatformRequest, tag: AuditTag, user: Actor, *, outcome: str = "success", **data: Any
) -> None:
    """Record what happened to a user who has no session yet: sign-up, login, refresh."""
    add(
        request,
        tag,
        outcome=outcome,
        organization_id=user.organization_id,
        actor_id=user.pk,
        actor=str(user),
        data=data,
    )


def record_staff(
    request: HttpRequest, tag: AuditTag, *, organization_id: int | None, **data: Any
) -> None:
    """Record an action of the platform's staff in the admin on an organization's data."""
    add(
        cast(PlatformRequest, request),
        tag,
        organization_id=organization_id,
        actor_id=request.user.pk,
        actor=str(request.user),
        data=data,
    )


def add(request: PlatformRequest | None, tag: AuditTag, **fields: Any) -> None:
    """Append one event with the request's address and agent; None is the platform's own work."""
    event = AuditEvent(tag=str(tag), **fields)
    if request is not None:
        event.address = client_address(request)
        # PostgreSQL's text cannot contain NUL, and callers choose their headers.
        event.agent = request.headers.get("User-Agent", "").replace("\0", "")[:300]
        event.request_id = getattr(request, "request_id", "")
    try:
        event.save(force_insert=True)
    except DatabaseError:
        if not connection.in_atomic_block:
            # The action was done outside the database, as in the brain, and is not rolled back.
            names = ("organization_id", "environment_id", "actor_id", "outcome", "data")
            audited = {name: getattr(event, name) for name in names}
            log.error("audit_event_not_written", tag=event.tag, audited=audited)  # noqa: TRY400 - the database's words may hold values
        raise
