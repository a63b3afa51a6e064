"""Deliveries of events: which are due, what an answer means, and disabling failing endpoints."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import prefetch_related_objects

from audit import trail
from common.egress import WebhookAnswer
from outbox import deliveries
from outbox.audit_tags import OutboxTag
from outbox.errors import WebhookDeliveryNotFound, WebhookIsOff
from outbox.failures import Failure, PermanentFailure, TemporaryFailure
from outbox.models import WebhookDelivery, WebhookEndpoint
from outbox.webhooks import events

log = structlog.get_logger(__name__)

State = WebhookDelivery.State
# Maximum concurrent requests of an organization in all processes; an endpoint gets one at a time.
SHARE: Final = 2
# Without a successful delivery.
DISABLE_AFTER: Final = timedelta(days=3)
LOG_ENTRIES: Final = 20
GONE: Final = 410
# Functions of higher layers, called with an endpoint that failed and was disabled, and why.
WHEN_DISABLED: Final[list[Callable[[WebhookEndpoint, str], None]]] = []
# The advisory lock's number, which nothing else uses.
CLAIMS_LOCK: Final = 0x7765_6268

# The first due delivery of each endpoint that has no request in progress and no pause after
# failures. Ordered by the position within the organization, so that many endpoints of one
# organization do not delay another's.
_DUE: Final = """
WITH busy AS (
    SELECT organization_id, endpoint_id FROM outbox_webhookdelivery WHERE state = 'sending'
), heads AS (
    SELECT DISTINCT ON (d.endpoint_id) d.id, d.organization_id, d.next_attempt_at
    FROM outbox_webhookdelivery d JOIN outbox_webhookendpoint e ON e.id = d.endpoint_id
    WHERE d.state = 'queued' AND d.next_attempt_at <= %(now)s AND e.state = 'enabled'
        AND (e.resting_until IS NULL OR e.resting_until <= %(now)s)
        AND d.endpoint_id NOT IN (SELECT endpoint_id FROM busy)
    ORDER BY d.endpoint_id, d.next_attempt_at, d.id
), ranked AS (
    SELECT id, next_attempt_at,
        row_number() OVER (PARTITION BY organization_id ORDER BY next_attempt_at, id)
        + (SELECT count(*) FROM busy b WHERE b.organization_id = heads.organization_id) AS nth
    FROM heads
)
SELECT id FROM ranked WHERE nth <= %(share)s ORDER BY nth, next_attempt_at, id LIMIT %(limit)s
"""


def claim(limit: int, *, now: datetime) -> list[WebhookDelivery]:
    """Claim at most this many due deliveries, with their endpoints, each for one attempt."""
    with transaction.atomic(), connection.cursor() as cursor:
        # One claim at a time; two concurrent ones would exceed an organization's limit.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIMS_LOCK])
        claimed: list[WebhookDelivery] = []
        due: list[UUID] | None = None
        # Where all of these have expired, others may be due behind them.
        while not claimed and due != []:
            cursor.execute(_DUE, {"now": now, "share": SHARE, "limit": limit})
            due = [row[0] for row in cursor.fetchall()]
            claimed = deliveries.claim(WebhookDelivery, due, now=now)
        # The threads that send use no database.
        prefetch_related_objects(claimed, "endpoint")
        return claimed


def message_id_of(delivery: WebhookDelivery) -> str:
    """Return the message's id, by which a receiver recognizes repeated deliveries."""
    return f"msg_{delivery.pk.hex}"


def settle(claimed: WebhookDelivery, answer: WebhookAnswer | None, *, now: datetime) -> None:
    """Record the result of an attempt, and schedule the next one or disable the endpoint.

    answer: None if the delivery could not be decrypted, for which the endpoint is not to blame.
    """
    with transaction.atomic():
        # Locks the endpoint first, in the same order as changing and removing it.
        endpoints = WebhookEndpoint.objects.select_for_update()
        endpoint = endpoints.filter(pk=claimed.endpoint_id).first()
        if endpoint is None:
            # Removed, with its deliveries.
            return
        failure = TemporaryFailure("unreadable") if answer is None else _failure(answer)
        if failure is not None and endpoint.state == WebhookEndpoint.State.DISABLED:
            failure = PermanentFailure(failure.error)
        row = deliveries.settle(claimed, failure, now=now)
        if row is None or answer is None:
            return
        _note(row, answer, failure, now)
        endpoint.note(is_failure=failure is not None, now=now)
        _judge(endpoint, answer, now)


def _failure(answer: WebhookAnswer) -> Failure | None:
    if answer.status is None:
        return TemporaryFailure(answer.error)
    if answer.status // 100 == 2:
        return None
    return TemporaryFailure("redirect" if answer.status // 100 == 3 else "refused")


def _note(
    row: WebhookDelivery, answer: WebhookAnswer, failure: Failure | None, now: datetime
) -> None:
    entry = {
        "at": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "status": answer.status,
        "error": failure.error if failure is not None else "",
        "elapsed_ms": answer.elapsed_ms,
    }
    row.last_status, row.log = answer.status, [*row.log, entry][-LOG_ENTRIES:]
    row.save(update_fields=["last_status", "log"])


def _judge(endpoint: WebhookEndpoint, answer: WebhookAnswer, now: datetime) -> None:
    """Disable an endpoint that answers 410 Gone, or has failed for days."""
    since = endpoint.failing_since
    if answer.status == GONE:
        reason, said = WebhookEndpoint.Reason.GONE, "it answered 410 Gone"
    elif since is not None and now - since >= DISABLE_AFTER:
        reason = WebhookEndpoint.Reason.FAILING
        said = f"no delivery has succeeded since {since:%Y-%m-%d %H:%M} UTC"
    else:
        return
    if endpoint.state == WebhookEndpoint.State.DISABLED:
        return
    disable(endpoint, reason, now=now)
    for notify in WHEN_DISABLED:
        notify(endpoint, said)
    trail.add(
        None,
        OutboxTag.SYSTEM_WEBHOOK_DISABLE,
        organization_id=endpoint.organization_id,
        data={"webhook": str(endpoint.pk), "reason": str(reason)},
    )
    log.warning("webhook_disabled", webhook=str(endpoint.pk), reason=str(reason))


def disable(endpoint: WebhookEndpoint, reason: WebhookEndpoint.Reason, *, now: datetime) -> None:
    """Disable an endpoint; its queued deliveries fail. Call inside a transaction."""
    endpoint.state, endpoint.disabled_reason = WebhookEndpoint.State.DISABLED, reason
    endpoint.save(update_fields=["state", "disabled_reason"])
    WebhookDelivery.objects.filter(endpoint=endpoint, state=State.QUEUED).update(
        state=State.FAILED, error="switched_off", finished_at=now, next_attempt_at=None
    )


def resend(delivery: WebhookDelivery, *, now: datetime) -> WebhookDelivery:
    """Send an event again immediately, with the same id and a new series of attempts.

    Call inside a transaction. Raises WebhookIsOff (409), WebhookDeliveryNotFound (404). A delivery
    in progress is not changed.
    """
    endpoints = WebhookEndpoint.objects.select_for_update()
    endpoint = endpoints.filter(pk=delivery.endpoint_id).first()
    if endpoint is None:
        raise WebhookDeliveryNotFound
    if endpoint.state != WebhookEndpoint.State.ENABLED:
        raise WebhookIsOff
    try:
        row = deliveries.retry(delivery, now=now)
    except deliveries.NotRetryable:
        if not WebhookDelivery.objects.filter(pk=delivery.pk).exists():
            raise WebhookDeliveryNotFound from None
        delivery.refresh_from_db()
        return delivery
    row.expires_at = now + events.LIFE
    row.save(update_fields=["expires_at"])
    endpoint.resting_until = None
    endpoint.save(update_fields=["resting_until"])
    events.wake()
    return row


def maintain(*, now: datetime) -> bool:
    """Run the maintenance of ``deliveries``; True if anything is due."""
    deliveries.maintain(WebhookDelivery, "created_at", now=now)
    due = WebhookDelivery.objects.filter(state=State.QUEUED, next_attempt_at__lte=now)
    return due.exists()
