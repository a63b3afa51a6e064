"""The events of webhooks, queued as rows in the transaction of the change that they report.

After the commit the dispatcher is woken. A lost wakeup only delays the rows until the next minute's
job.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import orjson
import structlog
from django.db import transaction
from django.utils import timezone
from procrastinate.exceptions import AlreadyEnqueued

from common.crypto import encrypt
from common.jobs import job
from outbox.models import WebhookDelivery, WebhookEndpoint

log = structlog.get_logger(__name__)

DISPATCH: Final = "outbox.webhooks.dispatch"
Event = Literal[
    "member.added",
    "member.removed",
    "member.changed",
    "session.new_device",
    "node.state_changed",
    "payout.state_changed",
    "quota.reached",
    "credits.running_out",
]
# Each with what the console says of it.
EVENTS: Final[dict[Event, str]] = {
    "member.added": "someone joined",
    "member.removed": "someone was removed",
    "member.changed": "roles, disabled or enabled",
    "session.new_device": "a sign-in or a refresh from a new device",
    "node.state_changed": "your cache nodes",
    "payout.state_changed": "requested, sent, confirmed, reversed",
    "quota.reached": "disk of an environment, spend cap",
    "credits.running_out": "and what follows",
}
TEST: Final = "webhook.test"
# Deliveries that wait for one webhook; beyond it the oldest are dropped.
QUEUE_LIMIT: Final = 2_000
# Attempts end after this time; the last of WebhookDelivery.WAITS_S is before it.
LIFE: Final = timedelta(hours=28)


def emit(organization_id: int, event: Event, data: Mapping[str, Any]) -> None:
    """Queue an event for each subscribed endpoint; call in the transaction of the change.

    data: JSON values that the organization may read, never a secret.
    """
    endpoints = WebhookEndpoint.objects.filter(
        organization_id=organization_id,
        state=WebhookEndpoint.State.ENABLED,
        events__contains=[event],
    )
    rows = [*endpoints.only("pk", "organization_id")]
    if rows:
        queue(rows, event, data, now=timezone.now())


def queue(
    endpoints: list[WebhookEndpoint], event: str, data: Mapping[str, Any], *, now: datetime
) -> list[WebhookDelivery]:
    """Queue an event for these endpoints, in the caller's transaction."""
    moment = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    body = encrypt(orjson.dumps({"type": event, "timestamp": moment, "data": data}).decode())
    rows = [
        WebhookDelivery(
            organization_id=endpoint.organization_id,
            endpoint=endpoint,
            event=event,
            body=body,
            created_at=now,
            expires_at=now + LIFE,
            next_attempt_at=now,
        )
        for endpoint in endpoints
    ]
    made: list[WebhookDelivery] = WebhookDelivery.objects.bulk_create(rows)
    for endpoint in endpoints:
        _drop_oldest(endpoint, now)
    wake()
    return made


def wake() -> None:
    """Queue the dispatcher after the commit, unless it is queued already.

    Not within the transaction: the job's lock would block all other transactions with events.
    """
    transaction.on_commit(_enqueue, robust=True)


def _drop_oldest(endpoint: WebhookEndpoint, now: datetime) -> None:
    """Fail an endpoint's oldest deliveries beyond the limit, so that the table stays bounded."""
    rows = WebhookDelivery.objects.filter(endpoint=endpoint, state=WebhookDelivery.State.QUEUED)
    surplus = rows.order_by("-id").values("pk")[QUEUE_LIMIT:]
    # Locked ones are being sent, or failed by another concurrent event.
    found = rows.filter(pk__in=surplus).select_for_update(skip_locked=True)
    dropped = [*found.values_list("pk", flat=True)]
    if not dropped:
        return
    WebhookDelivery.objects.filter(pk__in=dropped).update(
        state=WebhookDelivery.State.FAILED,
        error="queue_full",
        finished_at=now,
        next_attempt_at=None,
    )
    log.warning("webhook_events_dropped", webhook=str(endpoint.pk), events=len(dropped))


def _enqueue() -> None:
    try:
        with transaction.atomic():
            job(DISPATCH, queueing_lock=DISPATCH).defer()
    except AlreadyEnqueued:
        return
