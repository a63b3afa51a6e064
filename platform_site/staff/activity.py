"""The roll-up for the dashboard: one row about all tenants every ten minutes.

It only uses indexes on time, so that a roll-up only reads the rows since the last one.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

from django.db import connection, transaction

from accounts.audit_tags import AccountTag
from environments import request_activity
from platform_site.models import ActiveOrganization, ActivitySample
from platform_site.staff import http_activity

SLOT: Final = timedelta(minutes=10)
# How far a first roll-up, or one after an outage, goes back.
CAUGHT_UP: Final = timedelta(days=1)
RETENTION: Final = timedelta(days=8)
DAYS_KEPT: Final = timedelta(days=31)

SAMPLES: Final[LiteralString] = """
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
ACTIVE: Final[LiteralString] = """
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


def roll_up(*, now: datetime) -> None:
    """Add the samples of all full ten minutes since the last one, and delete the oldest."""
    until = _start_of_slot(now)
    last = ActivitySample.objects.order_by("-begins_at").values_list("begins_at", flat=True).first()
    since = max(until - CAUGHT_UP, last + SLOT) if last else until - CAUGHT_UP
    if since < until:
        with transaction.atomic(), connection.cursor() as cursor:
            values = _values(since, until)
            cursor.execute(SAMPLES, values)
            cursor.execute(ACTIVE, values)
    http_activity.delete_old(now=now)
    request_activity.delete_old(now=now)
    ActivitySample.objects.filter(begins_at__lt=until - RETENTION).delete()
    ActiveOrganization.objects.filter(day__lt=(until - DAYS_KEPT).date()).delete()


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
