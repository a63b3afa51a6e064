"""Deliveries of events: claiming due ones, recording results, and disabling failing endpoints.

A claim is committed before the request is sent and its result after, so that no transaction is open
during network calls. If a process dies in between, the claim's lease ends and the event is sent a
second time with the same id. Sending twice is preferred to not sending.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q

from audit import trail
from common.crypto import decrypt
from common.egress import WebhookAnswer
from outbox.audit_tags import OutboxTag
from outbox.errors import WebhookDeliveryNotFound, WebhookIsOff
from outbox.models import WebhookDelivery, WebhookEndpoint
from outbox.webhooks import events

log = structlog.get_logger(__name__)

State = WebhookDelivery.State
# Waits after each attempt except the last: eight attempts in about 22 hours.
WAITS_S: Final = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
# The random part of a wait spreads the attempts after an outage.
JITTER: Final = 0.1
# Nothing is sent to a failing endpoint for this long, doubled with each failure in a row.
INITIAL_BACKOFF_S: Final = 5
MAX_BACKOFF_S: Final = 600
# Maximum concurrent requests of an organization in all processes; an endpoint gets one at a time.
SHARE: Final = 2
LEASE: Final = timedelta(minutes=5)
KEEP: Final = timedelta(days=30)
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


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A claimed delivery, with the data of its request."""

    delivery_id: UUID
    endpoint_id: UUID
    organization_id: int
    attempts: int
    url: str
    message_id: str
    body: bytes = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def claim(limit: int, *, now: datetime) -> list[ClaimedDelivery]:
    """Claim at most this many due deliveries, each for one attempt."""
    with transaction.atomic(), connection.cursor() as cursor:
        # One claim at a time; two concurrent ones would exceed an organization's limit.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIMS_LOCK])
        while True:
            cursor.execute(_DUE, {"now": now, "share": SHARE, "limit": limit})
            due = [row[0] for row in cursor.fetchall()]
            claims = _claim(due, now)
            # Without a claim all of these were unreadable: others may be due behind them.
            if claims or not due:
                return claims


def _claim(due: list[UUID], now: datetime) -> list[ClaimedDelivery]:
    """Claim these deliveries; those that cannot be decrypted are tried later, and stop no others.

    Another process may have the key already: keys are changed while deliveries are waiting.
    """
    rows = WebhookDelivery.objects.filter(pk__in=due)
    rows.update(
        state=State.SENDING,
        attempts=F("attempts") + 1,
        tries=F("tries") + 1,
        claimed_at=now,
        next_attempt_at=None,
    )
    claims: list[ClaimedDelivery] = []
    for row in rows.select_related("endpoint"):
        try:
            claims.append(_claimed(row, now))
        except InvalidToken:
            log.error("webhook_unreadable", webhook=str(row.endpoint_id), delivery=str(row.pk))  # noqa: TRY400 - no trace: it says nothing
            row.last_error = "unreadable"
            _schedule(row, now)
            row.save()
    return claims


def _claimed(row: WebhookDelivery, now: datetime) -> ClaimedDelivery:
    """Return the claim. Raises InvalidToken if ZSECRET_KEYS lacks the key of a secret or body."""
    endpoint = row.endpoint
    kept = [endpoint.secret]
    ends_at = endpoint.previous_secret_ends_at
    if endpoint.previous_secret and ends_at is not None and ends_at > now:
        kept.append(endpoint.previous_secret)
    return ClaimedDelivery(
        row.pk,
        row.endpoint_id,
        row.organization_id,
        row.attempts,
        endpoint.url,
        message_id_of(row),
        decrypt(row.body).encode(),
        tuple(map(decrypt, kept)),
    )


def message_id_of(delivery: WebhookDelivery) -> str:
    """Return the message's id, by which a receiver recognizes repeated deliveries."""
    return f"msg_{delivery.pk.hex}"


def settle(claimed: ClaimedDelivery, answer: WebhookAnswer, *, now: datetime) -> None:
    """Record the result of an attempt, and schedule the next one or disable the endpoint."""
    with transaction.atomic():
        # Locks the endpoint first, in the same order as changing and removing it.
        endpoints = WebhookEndpoint.objects.select_for_update()
        endpoint = endpoints.filter(pk=claimed.endpoint_id).first()
        rows = WebhookDelivery.objects.select_for_update()
        row = rows.filter(pk=claimed.delivery_id, attempts=claimed.attempts).first()
        if endpoint is None or row is None or row.state != State.SENDING:
            # Its endpoint was removed, or the lease ended during the attempt.
            return
        _note(row, answer, now)
        if answer.status is not None and answer.status // 100 == 2:
            row.finish(State.DELIVERED, now=now)
            endpoint.failures, endpoint.resting_until, endpoint.failing_since = 0, None, None
        else:
            _plan(row, endpoint, now)
        row.save()
        endpoint.save(update_fields=["failures", "resting_until", "failing_since"])
        _judge(endpoint, answer, now)


def _note(row: WebhookDelivery, answer: WebhookAnswer, now: datetime) -> None:
    error = answer.error
    if answer.status is not None and answer.status // 100 != 2:
        error = "redirect" if answer.status // 100 == 3 else "refused"
    row.last_status, row.last_error = answer.status, error
    entry = {
        "at": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "status": answer.status,
        "error": error,
        "elapsed_ms": answer.elapsed_ms,
    }
    row.log = [*row.log, entry][-LOG_ENTRIES:]


def _plan(row: WebhookDelivery, endpoint: WebhookEndpoint, now: datetime) -> None:
    endpoint.failures += 1
    backoff_s = min(INITIAL_BACKOFF_S << min(endpoint.failures - 1, 10), MAX_BACKOFF_S)
    endpoint.resting_until = now + timedelta(seconds=backoff_s)
    endpoint.failing_since = endpoint.failing_since or now
    if endpoint.state == WebhookEndpoint.State.DISABLED:
        row.finish(State.FAILED, now=now)
        return
    _schedule(row, now)


def _schedule(row: WebhookDelivery, now: datetime) -> None:
    """Schedule the next attempt; without one the delivery has failed."""
    row.claimed_at = None
    if row.tries > len(WAITS_S):
        row.finish(State.FAILED, now=now)
        return
    # The low bits of a UUIDv7 are random.
    wait_s = WAITS_S[row.tries - 1] * (1 + JITTER * (row.pk.int % 1000) / 1000)
    at = now + timedelta(seconds=wait_s)
    if at >= row.expires_at:
        row.finish(State.FAILED, now=now)
        return
    row.state, row.next_attempt_at = State.QUEUED, at


def _judge(endpoint: WebhookEndpoint, answer: WebhookAnswer, now: datetime) -> None:
    """Disable an endpoint that answers 410 Gone, or has failed for days."""
    patience = timedelta(days=settings.WEBHOOKS.disable_days)
    since = endpoint.failing_since
    if answer.status == GONE:
        reason, said = WebhookEndpoint.Reason.GONE, "it answered 410 Gone"
    elif since is not None and now - since >= patience:
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
        state=State.FAILED, last_error="switched_off", finished_at=now, next_attempt_at=None
    )


def resend(delivery: WebhookDelivery, *, now: datetime) -> WebhookDelivery:
    """Send an event again immediately, with the same id and a new series of attempts.

    Call inside a transaction. Raises WebhookIsOff (409), WebhookDeliveryNotFound (404). A delivery
    in progress is not changed.
    """
    endpoints = WebhookEndpoint.objects.select_for_update()
    endpoint = endpoints.filter(pk=delivery.endpoint_id).first()
    rows = WebhookDelivery.objects.select_for_update()
    row: WebhookDelivery | None = rows.filter(pk=delivery.pk).first()
    if endpoint is None or row is None:
        raise WebhookDeliveryNotFound
    if endpoint.state != WebhookEndpoint.State.ENABLED:
        raise WebhookIsOff
    if row.state == State.SENDING:
        return row
    row.state, row.tries, row.finished_at = State.QUEUED, 0, None
    row.next_attempt_at, row.expires_at = now, now + events.LIFE
    row.save()
    endpoint.resting_until = None
    endpoint.save(update_fields=["resting_until"])
    events.wake()
    return row


def maintain(*, now: datetime) -> bool:
    """Release deliveries whose process never finished, and delete old rows.

    Returns True if anything is due.
    """
    rows = WebhookDelivery.objects.all()
    lost = rows.filter(state=State.SENDING, claimed_at__lt=now - LEASE)
    lost.update(state=State.QUEUED, claimed_at=None, next_attempt_at=now, last_error="lost")
    late = Q(state=State.QUEUED, expires_at__lte=now)
    rows.filter(late).update(state=State.FAILED, finished_at=now, next_attempt_at=None)
    rows.filter(created_at__lt=now - KEEP).exclude(state=State.SENDING).delete()
    return rows.filter(state=State.QUEUED, next_attempt_at__lte=now).exists()
