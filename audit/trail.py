"""An organization's audit trail: events are added, read, filtered, and deleted when old.

An event is added in the transaction of the change that it records. A denied request within the
caller's tenant is recorded by ``record_denial``, which common.permissions calls.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_
from typing import Any, Final, Protocol, cast
from uuid import UUID

import structlog
from django.db import DatabaseError, connection
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.utils import timezone

from audit.descriptions import COMMAND, NAMELESS, OPERATOR, PLATFORM, words_of
from audit.models import AuditEvent
from audit.tags import AuditTag, TrailTag, known
from common import rate_limits
from common.principals import PlatformRequest
from common.web.addresses import client_address

log = structlog.get_logger(__name__)

COLUMNS: Final = (
    "id",
    "at",
    "tag",
    "outcome",
    "organization_id",
    "environment",
    "actor_id",
    "actor",
    "address",
    "agent",
    "request_id",
    "data",
)
# Rows deleted per statement, so that no lock is held for long.
BATCH: Final = 5000
# The trigger refuses to delete younger events, whatever the setting says.
MIN_RETENTION: Final = timedelta(days=30)
# A client that is refused in a loop must not fill the table.
DENIALS_PER_HOUR: Final = 60
HOUR: Final = timedelta(hours=1)


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


def record_denial(request: PlatformRequest, resource: str, action: str) -> None:
    """Record that the request's principal lacked a permission.

    At most sixty an hour for each user; for a development token, for its organization.
    """
    principal = request.principal
    if principal is None:
        return
    who = str(principal.actor_id or f"organization {principal.organization_id}")
    if rate_limits.take("denial", who, limit=DENIALS_PER_HOUR, window=HOUR, now=timezone.now()):
        return
    add(
        request,
        TrailTag.PERMISSION_DENY,
        outcome="denied",
        organization_id=principal.organization_id,
        environment_id=principal.environment_id,
        actor_id=principal.actor_id,
        actor=principal.audit_name,
        data={
            "permission": f"{resource}:{action}",
            "method": request.method,
            "route": request.resolver_match.route if request.resolver_match else "",
        },
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


def of_organization(organization_id: int) -> QuerySet[AuditEvent]:
    """Return the events of one organization, unordered."""
    return AuditEvent.objects.filter(organization_id=organization_id)


def matching(events: QuerySet[AuditEvent], wanted: Mapping[str, Any]) -> QuerySet[AuditEvent]:
    """Return the events that match every given filter.

    wanted: ``search`` (words, each of them in the event's sentence, actor, data, tag, address or
    request id), ``tag`` (a whole tag or its first parts, such as ``api:session``), ``outcome``,
    ``environment``, ``actor`` and ``affected`` (a part of an address, or a user's id),
    ``request_id``, ``since`` (inclusive), ``until`` (exclusive). Texts match in any case.
    """
    events = events.alias(data_text=Cast("data", TextField()))
    return events.filter(*(FILTERS[name](value) for name, value in wanted.items()))


def rows(events: QuerySet[AuditEvent]) -> Iterator[dict[str, Any]]:
    """Yield events as JSON values, oldest first, reading a limited number at a time."""
    for event in events.order_by("id").iterator(chunk_size=2000):
        yield {
            "id": str(event.id),
            "at": event.at.astimezone(UTC).isoformat(),
            "tag": event.tag,
            "outcome": event.outcome,
            "organization_id": event.organization_id,
            "environment": event.environment_id,
            "actor_id": str(event.actor_id) if event.actor_id else None,
            "actor": event.actor,
            "address": event.address,
            "agent": event.agent,
            "request_id": event.request_id,
            "data": event.data,
        }


def prune(*, retention_days: int, now: datetime) -> int:
    """Delete events older than the retention; return their number. 0 days keeps all events.

    Events that record when a key was first seen are kept: they give the key's age.
    """
    if not retention_days:
        return 0
    cutoff = now - max(timedelta(days=retention_days), MIN_RETENTION)
    ended = AuditEvent.objects.filter(at__lt=cutoff).exclude(tag=TrailTag.SYSTEM_KEY_SEE)
    deleted = 0
    while True:
        old = ended.order_by("at").values("pk")[:BATCH]
        number, _ = AuditEvent.objects.filter(pk__in=old).delete()
        deleted += number
        if number < BATCH:
            return deleted


def _is_by(text: str) -> Q:
    found = Q(actor__icontains=text) | Q(actor_id__in=_ids(text))
    is_nameless = Q(actor__in=NAMELESS)
    is_command = Q(tag__startswith="cli:")
    if text.lower() in OPERATOR:
        found |= Q(actor=COMMAND) | (is_nameless & is_command)
    if text.lower() in PLATFORM:
        found |= is_nameless & ~is_command
    return found


def _affects(text: str) -> Q:
    return Q(data__email__icontains=text) | Q(data__member__in=[str(key) for key in _ids(text)])


def _has_word(word: str) -> Q:
    tags = [tag for tag, each in known().items() if word.lower() in words_of(each).lower()]
    found = _is_by(word) | Q(tag__icontains=word) | Q(tag__in=tags) | Q(data_text__icontains=word)
    return found | Q(address__startswith=word) | Q(request_id=word)


def _ids(text: str) -> list[UUID]:
    """Return the user id in a filter, if it is one."""
    try:
        return [UUID(text)]
    except ValueError:
        return []


FILTERS: Final[Mapping[str, Callable[[Any], Q]]] = {
    "search": lambda text: reduce(and_, map(_has_word, text.split()), Q()),
    "tag": lambda tag: Q(tag=tag.lower()) | Q(tag__startswith=f"{tag.lower()}:"),
    "outcome": lambda outcome: Q(outcome=outcome),
    "environment": lambda environment: Q(environment_id=environment),
    "actor": _is_by,
    "affected": _affects,
    "request_id": lambda request_id: Q(request_id=request_id),
    "since": lambda at: Q(at__gte=at),
    "until": lambda at: Q(at__lt=at),
}
