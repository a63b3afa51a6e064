"""The platform's activity by ten minutes, for the admin's dashboard.

Each process adds its counts of HTTP requests to the row of the ten minutes every few seconds. A
request costs no query, and a killed process loses the counts since its last write.

The roll-up adds one row about sign-ins and SQL of all tenants. It only uses indexes on time, so
that it only reads the rows since the last one.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

import structlog
from django.db import Error, connection, transaction

from accounts.audit_tags import AccountTag
from common.machine.reasons import reason
from common.metrics import publishing
from common.metrics.http_tally import BOUNDS_MS, TALLY
from environments import request_activity
from platform_site.models import ActiveOrganization, ActivitySample, HttpSample

log = structlog.get_logger(__name__)

WRITE_EVERY_S: Final = 15.0
SLOT: Final = timedelta(minutes=10)
# How far a first roll-up, or one after an outage, goes back.
MAX_CATCH_UP: Final = timedelta(days=1)
RETENTION: Final = timedelta(days=8)
DAY: Final = timedelta(days=1)
ACTIVE_DAYS_RETENTION: Final = timedelta(days=31)
ADD_HTTP_SAMPLE: Final[LiteralString] = """
INSERT INTO platform_site_httpsample AS t (begins_at, requests, errors, counts)
VALUES (%s, %s, %s, %s)
ON CONFLICT (begins_at) DO UPDATE SET requests = t.requests + excluded.requests,
    errors = t.errors + excluded.errors,
    counts = ARRAY(SELECT a + b FROM unnest(t.counts, excluded.counts)
        WITH ORDINALITY AS both_of(a, b, place) ORDER BY place)
"""
ADD_ACTIVITY_SAMPLES: Final[LiteralString] = """
WITH sign_in AS (
    SELECT date_bin(%(slot)s, at, %(since)s) AS slot,
        count(*) FILTER (WHERE outcome = 'success') AS done,
        count(*) FILTER (WHERE outcome = 'refused') AS refused
    FROM audit_auditevent WHERE at >= %(since)s AND at < %(until)s AND tag = %(tag)s
    GROUP BY 1),
request AS (
    SELECT date_bin(%(slot)s, at, %(since)s) AS slot, count(*) AS done,
        count(*) FILTER (WHERE outcome <> 'success') AS failed,
        percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY elapsed_ms) AS elapsed_ms
    FROM sqlgateway_sqlrecord WHERE id >= %(first_id)s AND at >= %(since)s AND at < %(until)s
    GROUP BY 1)
INSERT INTO platform_site_activitysample (begins_at, sign_ins, sign_ins_refused, sql_requests,
    sql_errors, sql_p50_ms, sql_p95_ms)
SELECT slot, coalesce(sign_in.done, 0), coalesce(sign_in.refused, 0), coalesce(request.done, 0),
    coalesce(request.failed, 0), request.elapsed_ms[1], request.elapsed_ms[2]
FROM generate_series(%(since)s, %(until)s - %(slot)s, %(slot)s) AS slot
LEFT JOIN sign_in USING (slot) LEFT JOIN request USING (slot)
ON CONFLICT DO NOTHING
"""
ADD_ACTIVE_ORGANIZATIONS: Final[LiteralString] = """
INSERT INTO platform_site_activeorganization (day, organization_id)
SELECT DISTINCT (at AT TIME ZONE 'UTC')::date, organization_id FROM (
    SELECT at, organization_id FROM audit_auditevent
    WHERE at >= %(since)s AND at < %(until)s AND tag = %(tag)s AND outcome = 'success'
        AND organization_id IS NOT NULL
    UNION ALL
    SELECT at, organization_id FROM sqlgateway_sqlrecord
    WHERE id >= %(first_id)s AND at >= %(since)s AND at < %(until)s) AS used
ON CONFLICT DO NOTHING
"""


def write_http_samples() -> None:
    """Write this process's counts; if the database is unavailable, keep them for the next time."""
    publishing.publish()
    taken = TALLY.take()
    if not taken:
        return
    try:
        with connection.cursor() as cursor:
            for begins_s, slot in sorted(taken.items()):
                at = datetime.fromtimestamp(begins_s, tz=UTC)
                cursor.execute(ADD_HTTP_SAMPLE, [at, slot.requests, slot.errors, slot.counts])
    except Error as exc:
        log.warning("http_activity_not_written", error=reason(exc))
        TALLY.put_back(taken)


def write_and_disconnect() -> None:
    """Write these counts, and those of organizations, in a thread of its own."""
    try:
        write_http_samples()
        request_activity.write()
    finally:
        # Returns the connection to the pool, or closes the thread's own.
        connection.close()


def http_samples(*, now: datetime) -> list[HttpSample]:
    """Return the last day's samples, oldest first."""
    return list(HttpSample.objects.filter(begins_at__gt=now - DAY).order_by("begins_at"))


def delete_old(*, now: datetime) -> None:
    """Delete samples that no chart shows."""
    HttpSample.objects.filter(begins_at__lt=now - RETENTION).delete()


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return a percentile of the response times in milliseconds; None without requests.

    Requests between two bounds are assumed to be evenly distributed.
    """
    wanted = share * sum(counts)
    if not wanted:
        return None
    below = 0
    for index, count in enumerate(counts[:-1]):
        if count and below + count >= wanted:
            low = BOUNDS_MS[index - 1] if index else 0
            return low + (BOUNDS_MS[index] - low) * (wanted - below) / count
        below += count
    return float(BOUNDS_MS[-1])


def roll_up(*, now: datetime) -> None:
    """Add the samples of all full ten minutes since the last one, and delete the oldest."""
    until = _start_of_slot(now)
    last = ActivitySample.objects.order_by("-begins_at").values_list("begins_at", flat=True).first()
    since = max(until - MAX_CATCH_UP, last + SLOT) if last else until - MAX_CATCH_UP
    if since < until:
        with transaction.atomic(), connection.cursor() as cursor:
            values = _values(since, until)
            cursor.execute(ADD_ACTIVITY_SAMPLES, values)
            cursor.execute(ADD_ACTIVE_ORGANIZATIONS, values)
    delete_old(now=now)
    request_activity.delete_old(now=now)
    ActivitySample.objects.filter(begins_at__lt=until - RETENTION).delete()
    ActiveOrganization.objects.filter(day__lt=(until - ACTIVE_DAYS_RETENTION).date()).delete()


def _values(since: datetime, until: datetime) -> dict[str, Any]:
    return {
        "since": since,
        "until": until,
        "slot": SLOT,
        "tag": str(AccountTag.SESSION_CREATE),
        # Ids begin with the time, and are created after the request's start.
        "first_id": UUID(int=int(since.timestamp() * 1000) << 80),
    }


def _start_of_slot(now: datetime) -> datetime:
    seconds = int(SLOT.total_seconds())
    return datetime.fromtimestamp(int(now.timestamp()) // seconds * seconds, tz=UTC)
