"""Metrics of messages and webhooks, read from their rows, so that they cover all processes.

Bounded: a scrape reads at most about ten thousand rows of each kind, even after a long outage of a
provider.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import structlog
from django.db import DatabaseError, connection
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from common.machine.reasons import reason
from common.metrics.figures import GaugeGroup, gauge
from outbox.models import WebhookDelivery

log = structlog.get_logger(__name__)

# Maximum rows to count.
MAX_COUNTED: Final = 10_000
# Uses the index of the creation time.
WEBHOOK_DELIVERIES: Final = """
SELECT state, count(*) FROM (
    SELECT state FROM outbox_webhookdelivery
    WHERE created_at > now() - interval '1 day' ORDER BY created_at DESC LIMIT %s
) AS latest
GROUP BY state
"""
# Deliveries that could be sent now: an endpoint gets one event at a time, and pauses after a
# failure.
OLDEST_DUE_DELIVERY: Final = """
SELECT coalesce(extract(epoch FROM clock_timestamp() - min(next_attempt_at)), 0) FROM (
    SELECT d.next_attempt_at
    FROM outbox_webhookendpoint e JOIN outbox_webhookdelivery d ON d.endpoint_id = e.id
    WHERE d.state = 'queued' AND d.next_attempt_at <= now() AND e.state = 'enabled'
        AND (e.resting_until IS NULL OR e.resting_until <= now())
        AND NOT EXISTS (
            SELECT FROM outbox_webhookdelivery s
            WHERE s.state = 'sending' AND s.organization_id = e.organization_id
                AND s.endpoint_id = e.id
        )
    LIMIT %s
) AS due
"""
WEBHOOK_ENDPOINTS: Final = """
SELECT count(*) FILTER (WHERE failing_since IS NULL), count(failing_since) FROM (
    SELECT failing_since FROM outbox_webhookendpoint WHERE state = 'enabled' LIMIT %s
) AS enabled
"""
# Uses the index of unfinished rows.
UNFINISHED_MESSAGES: Final = """
SELECT kind, state, count(*), min(created_at)
FROM (
    SELECT kind, state, created_at FROM outbox_delivery
    WHERE state IN ('queued', 'sending', 'failed') LIMIT %s
) AS waiting
GROUP BY kind, state
"""
# Uses the index of the time of completion.
FINISHED_MESSAGES: Final = """
SELECT kind, state, count(*)
FROM (
    SELECT kind, state FROM outbox_delivery
    WHERE finished_at > now() - interval '1 hour' LIMIT %s
) AS finished
GROUP BY kind, state
"""


@dataclass(frozen=True, slots=True)
class WebhookFigures:
    """deliveries: of the last day, by state. answering, failing: enabled endpoints."""

    deliveries: dict[str, int]
    oldest_due_s: float
    answering: int
    failing: int


def read_webhooks() -> WebhookFigures:
    """Return the figures; the queries are bounded for any number of webhooks."""
    with connection.cursor() as cursor:
        cursor.execute(WEBHOOK_DELIVERIES, [MAX_COUNTED])
        counts = dict.fromkeys(WebhookDelivery.State.values, 0) | dict(cursor.fetchall())
        cursor.execute(OLDEST_DUE_DELIVERY, [MAX_COUNTED])
        [oldest_s] = cursor.fetchone()
        cursor.execute(WEBHOOK_ENDPOINTS, [MAX_COUNTED])
        answering, failing = cursor.fetchone()
    return WebhookFigures(counts, float(oldest_s), answering, failing)


class Deliveries(Collector):
    """Unfinished deliveries and their age, and the deliveries finished in the last hour."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the gauges; none while the database is down, which ``/readyz`` reports."""
        try:
            with connection.cursor() as cursor:
                cursor.execute(UNFINISHED_MESSAGES, [MAX_COUNTED])
                waiting = cursor.fetchall()
                cursor.execute(FINISHED_MESSAGES, [MAX_COUNTED])
                finished = cursor.fetchall()
        except DatabaseError as exc:
            log.warning("deliveries_not_counted", error=reason(exc))
            connection.close()
            return
        unfinished = GaugeMetricFamily(
            "zonal_deliveries_unfinished",
            f"Mail and SMS not sent yet, at most {MAX_COUNTED}; failed ones wait for an operator.",
            labels=["kind", "state"],
        )
        oldest = GaugeMetricFamily(
            "zonal_deliveries_oldest_seconds",
            "Age of the oldest of them.",
            labels=["kind", "state"],
        )
        now = timezone.now()
        for kind, state, number, since in waiting:
            unfinished.add_metric([kind, state], number)
            oldest.add_metric([kind, state], (now - since).total_seconds())
        ended = GaugeMetricFamily(
            "zonal_deliveries_finished_last_hour",
            f"Mail and SMS that were sent, failed or were given up, at most {MAX_COUNTED}.",
            labels=["kind", "state"],
        )
        for kind, state, number in finished:
            ended.add_metric([kind, state], number)
        yield from (unfinished, oldest, ended)


def _webhook_gauges() -> Iterator[GaugeMetricFamily]:
    found = read_webhooks()
    deliveries = GaugeMetricFamily(
        "zonal_webhook_deliveries",
        f"Deliveries of webhooks of the last day, by state; of the newest {MAX_COUNTED}.",
        labels=["state"],
    )
    for state, number in found.deliveries.items():
        deliveries.add_metric([state], number)
    yield deliveries
    yield gauge(
        "zonal_webhook_oldest_seconds",
        "For how long a delivery waits that could be sent now, at most.",
        found.oldest_due_s,
    )
    endpoints = GaugeMetricFamily(
        "zonal_webhook_endpoints",
        f"Enabled webhooks that answered the last time, or failed; at most {MAX_COUNTED}.",
        labels=["state"],
    )
    endpoints.add_metric(["answering"], found.answering)
    endpoints.add_metric(["failing"], found.failing)
    yield endpoints


WEBHOOKS: Final = GaugeGroup("webhooks", _webhook_gauges, keep_s=15)
