"""Metrics of mail and SMS, read from their rows, so that they cover all processes and machines.

Bounded: a scrape reads at most about ten thousand rows, even after a long outage of a provider.
"""

from collections.abc import Iterator
from typing import Final

import structlog
from django.db import DatabaseError, connection
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

MAX_ROWS: Final = 10_000

# Uses the index of unfinished rows.
_WAITING: Final = """
SELECT kind, state, count(*), min(created_at)
FROM (
    SELECT kind, state, created_at FROM accounts_delivery
    WHERE state IN ('queued', 'sending', 'failed') LIMIT %s
) AS waiting
GROUP BY kind, state
"""
# Uses the index of the time of completion.
_FINISHED: Final = """
SELECT kind, state, count(*)
FROM (
    SELECT kind, state FROM accounts_delivery
    WHERE finished_at > now() - interval '1 hour' LIMIT %s
) AS finished
GROUP BY kind, state
"""

log = structlog.get_logger(__name__)


class Deliveries(Collector):
    """Unfinished deliveries and their age, and the deliveries finished in the last hour."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the gauges; none while the database is down, which ``/readyz`` reports."""
        try:
            with connection.cursor() as cursor:
                cursor.execute(_WAITING, [MAX_ROWS])
                waiting = cursor.fetchall()
                cursor.execute(_FINISHED, [MAX_ROWS])
                finished = cursor.fetchall()
        except DatabaseError as exc:
            log.warning("deliveries_not_counted", error=type(exc).__name__)
            connection.close()
            return
        unfinished = GaugeMetricFamily(
            "zonal_deliveries_unfinished",
            f"Mail and SMS not sent yet, at most {MAX_ROWS}; failed ones wait for an operator.",
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
            f"Mail and SMS that were sent, failed or were given up, at most {MAX_ROWS}.",
            labels=["kind", "state"],
        )
        for kind, state, number in finished:
            ended.add_metric([kind, state], number)
        yield from (unfinished, oldest, ended)
