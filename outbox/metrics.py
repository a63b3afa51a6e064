"""Metrics of webhooks for Prometheus and ``doctor``, read from their rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.db import connection
from prometheus_client.core import GaugeMetricFamily

from common.metrics.figures import GaugeGroup, gauge
from outbox.models import WebhookDelivery

# Maximum rows to count.
MAX_COUNTED: Final = 10_000
# Uses the index of the creation time.
LAST_DAY: Final = """
SELECT state, count(*) FROM (
    SELECT state FROM accounts_webhookdelivery
    WHERE created_at > now() - interval '1 day' ORDER BY created_at DESC LIMIT %s
) AS latest
GROUP BY state
"""
# Deliveries that could be sent now: an endpoint gets one event at a time, and pauses after a
# failure.
OLDEST_DUE: Final = """
SELECT coalesce(extract(epoch FROM clock_timestamp() - min(next_attempt_at)), 0) FROM (
    SELECT d.next_attempt_at
    FROM accounts_webhookendpoint e JOIN accounts_webhookdelivery d ON d.endpoint_id = e.id
    WHERE d.state = 'queued' AND d.next_attempt_at <= now() AND e.state = 'enabled'
        AND (e.resting_until IS NULL OR e.resting_until <= now())
        AND NOT EXISTS (
            SELECT FROM accounts_webhookdelivery s
            WHERE s.state = 'sending' AND s.organization_id = e.organization_id
                AND s.endpoint_id = e.id
        )
    LIMIT %s
) AS due
"""
ENDPOINTS: Final = """
SELECT count(*) FILTER (WHERE failing_since IS NULL), count(failing_since) FROM (
    SELECT failing_since FROM accounts_webhookendpoint WHERE state = 'enabled' LIMIT %s
) AS enabled
"""


@dataclass(frozen=True, slots=True)
class WebhookFigures:
    """deliveries: of the last day, by state. answering, failing: enabled endpoints."""

    deliveries: dict[str, int]
    oldest_due_s: float
    answering: int
    failing: int


def read() -> WebhookFigures:
    """Return the figures; the queries are bounded for any number of webhooks."""
    with connection.cursor() as cursor:
        cursor.execute(LAST_DAY, [MAX_COUNTED])
        counts = dict.fromkeys(WebhookDelivery.State.values, 0) | dict(cursor.fetchall())
        cursor.execute(OLDEST_DUE, [MAX_COUNTED])
        [oldest_s] = cursor.fetchone()
        cursor.execute(ENDPOINTS, [MAX_COUNTED])
        answering, failing = cursor.fetchone()
    return WebhookFigures(counts, float(oldest_s), answering, failing)


def _gauges() -> Iterator[GaugeMetricFamily]:
    found = read()
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


WEBHOOKS: Final = GaugeGroup("webhooks", _gauges, keep_s=15)
