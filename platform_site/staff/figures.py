"""The dashboard's figures that every installation has; each function runs one query."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Min, Q
from django.db.models.functions import TruncDate

from environments.models import Organization
from outbox.models import Delivery
from platform_site.models import ActiveOrganization, ActivitySample

DAY: Final = timedelta(days=1)
CHART_DAYS: Final = 30
# Maximum rows to count; more rows make no difference to staff.
MAX_COUNTED: Final = 10_000
QUEUE: Final = """
SELECT
    (SELECT count(*) FROM (SELECT FROM procrastinate_jobs WHERE status = 'todo'
        AND (scheduled_at IS NULL OR scheduled_at <= now()) LIMIT %(counted)s) AS waiting),
    (SELECT count(*) FROM (SELECT FROM procrastinate_jobs WHERE status = 'failed'
        LIMIT %(counted)s) AS failed),
    (SELECT coalesce(job.scheduled_at, min(event.at)) FROM procrastinate_jobs AS job
        LEFT JOIN procrastinate_events AS event ON event.job_id = job.id
        WHERE job.id = (SELECT min(id) FROM procrastinate_jobs WHERE status = 'todo'
            AND (scheduled_at IS NULL OR scheduled_at <= now())) GROUP BY job.id)
"""


@dataclass(frozen=True, slots=True)
class Organizations:
    """Numbers of organizations: all, new ones, and active ones by day (oldest first)."""

    total: int
    new: int
    new_of_week: int
    by_day: list[tuple[date, int]]
    new_by_day: dict[date, int]


def organizations(*, now: datetime) -> Organizations:
    """Return the figures about organizations."""
    counts = Organization.objects.aggregate(
        total=Count("pk"),
        new=Count("pk", filter=Q(created_at__gt=now - DAY)),
        week=Count("pk", filter=Q(created_at__gt=now - 7 * DAY)),
    )
    first = (now - (CHART_DAYS - 1) * DAY).date()
    active = ActiveOrganization.objects.filter(day__gte=first).values_list("day")
    recent = Organization.objects.filter(created_at__date__gte=first)
    created = recent.annotate(day=TruncDate("created_at")).values_list("day")
    return Organizations(
        counts["total"],
        counts["new"],
        counts["week"],
        list(active.annotate(number=Count("pk")).order_by("day")),
        dict(created.annotate(number=Count("pk")).order_by("day")),
    )


def samples(*, now: datetime) -> list[ActivitySample]:
    """Return the last day's samples, oldest first."""
    return list(ActivitySample.objects.filter(begins_at__gt=now - DAY).order_by("begins_at"))


@dataclass(frozen=True, slots=True)
class Queue:
    """Background tasks. oldest: since when the oldest waiting task waits."""

    waiting: int
    failed: int
    oldest: datetime | None


def queue() -> Queue:
    """Return the state of the task queue."""
    with connection.cursor() as cursor:
        cursor.execute(QUEUE, {"counted": MAX_COUNTED})
        return Queue(*cursor.fetchone())


def failed_deliveries(*, now: datetime) -> dict[str, Any]:
    """Return the failed mails and SMS: those waiting for staff, and those given up within a day."""
    states = Delivery.State
    rows = Delivery.objects.filter(
        Q(state=states.FAILED) | Q(state=states.GIVEN_UP, finished_at__gt=now - DAY)
    )
    return rows.aggregate(
        failed=Count("pk", filter=Q(state=states.FAILED)),
        given_up=Count("pk", filter=Q(state=states.GIVEN_UP)),
        oldest=Min("created_at", filter=Q(state=states.FAILED)),
    )
