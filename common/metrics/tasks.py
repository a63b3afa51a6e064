"""Metrics of the task queue."""

from collections.abc import Iterator
from typing import Final

from django.db import connection
from prometheus_client.core import GaugeMetricFamily

from common.metrics.figures import GaugeGroup, gauge

# Maximum rows to count; more rows make no difference to an administrator.
MAX_COUNTED: Final = 10_000
# The oldest come first, so that their age is correct for any number of rows.
WAITING: Final = """
SELECT queue_name, waiting, extract(epoch FROM clock_timestamp() - coalesce(
    (SELECT scheduled_at FROM procrastinate_jobs WHERE id = oldest),
    (SELECT min(at) FROM procrastinate_events WHERE job_id = oldest)))
FROM (SELECT queue_name, count(*) AS waiting, min(id) AS oldest
    FROM (SELECT id, queue_name FROM procrastinate_jobs WHERE status = 'todo'
        AND (scheduled_at IS NULL OR scheduled_at <= now()) ORDER BY id LIMIT %s) AS due
    GROUP BY queue_name) AS queues
"""
# A running worker reports every ten seconds.
STATE: Final = """
SELECT
    (SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing'),
    (SELECT count(*) FROM (SELECT FROM procrastinate_jobs WHERE status = 'failed' LIMIT %s) AS f),
    (SELECT count(*) FROM procrastinate_workers
        WHERE last_heartbeat > now() - interval '30 seconds')
"""


def _read() -> Iterator[GaugeMetricFamily]:
    with connection.cursor() as cursor:
        cursor.execute(WAITING, [MAX_COUNTED])
        queues = cursor.fetchall()
        cursor.execute(STATE, [MAX_COUNTED])
        running, failed, workers = cursor.fetchone()
    waiting = GaugeMetricFamily(
        "zonal_tasks_waiting", f"Tasks that are due, at most {MAX_COUNTED}.", labels=["queue"]
    )
    oldest = GaugeMetricFamily(
        "zonal_tasks_oldest_seconds", "For how long the first of them has waited.", labels=["queue"]
    )
    for queue, number, age_s in queues or [("default", 0, 0)]:
        waiting.add_metric([queue], number)
        oldest.add_metric([queue], float(age_s or 0))
    yield waiting
    yield oldest
    yield gauge("zonal_tasks_running", "Tasks that run now.", running)
    yield gauge(
        "zonal_tasks_failed", f"Tasks that failed permanently, at most {MAX_COUNTED}.", failed
    )
    yield gauge("zonal_task_workers", "Task workers that reported recently.", workers)


TASKS: Final = GaugeGroup("tasks", _read, keep_s=5)
