"""Requests of each organization by hour: counted in the process, added to rows at intervals.

An answer costs no query. A process that is killed loses what it counted since its last write.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString

import orjson
import structlog
from django.db import Error, connection

from environments.models import RequestHour
from platform_site.lib.metrics import publishing
from platform_site.lib.metrics.organization_tally import ORGANIZATIONS, Answers, Key

RETENTION: Final = timedelta(days=8)
HOURS: Final = 24
# In one order, so that two processes wait for each other at most. Counts of an organization that
# was deleted meanwhile are dropped.
ADD: Final[LiteralString] = """
INSERT INTO environments_requesthour AS t (organization_id, hour, requests, refused, failed)
SELECT given.organization_id, given.hour, given.requests, given.refused, given.failed
FROM json_to_recordset(%s::json) AS given(organization_id bigint, hour timestamptz,
    requests bigint, refused bigint, failed bigint)
JOIN environments_organization o ON o.id = given.organization_id AND o.deleted_at IS NULL
ORDER BY 1, 2
ON CONFLICT (organization_id, hour) DO UPDATE SET requests = t.requests + excluded.requests,
    refused = t.refused + excluded.refused, failed = t.failed + excluded.failed
"""

log = structlog.get_logger(__name__)


def write() -> None:
    """Add what this process counted; without the database it is kept for the next time."""
    publishing.publish()
    taken = ORGANIZATIONS.take()
    if not taken:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute(ADD, [orjson.dumps(_rows(taken)).decode()])
    except Error as exc:
        log.warning("request_activity_not_written", error=type(exc).__name__)
        ORGANIZATIONS.put_back(taken)


def first_hour(*, now: datetime) -> datetime:
    """Return the beginning of the first of the 24 hours that are shown."""
    return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)


def hours(organization_id: int, *, since: datetime) -> list[RequestHour]:
    """Return an organization's hours with requests, oldest first."""
    rows = RequestHour.scoped.within_organization(organization_id).filter(hour__gte=since)
    return list(rows.order_by("hour"))


def delete_old(*, now: datetime) -> None:
    """Delete what is not shown any more."""
    # unscoped: the retention is the same for all.
    RequestHour.unscoped.filter(hour__lt=now - RETENTION).delete()


def _rows(taken: dict[Key, Answers]) -> list[dict[str, object]]:
    return [
        {
            "organization_id": organization_id,
            "hour": datetime.fromtimestamp(begins_s, UTC),
            "requests": answers.requests,
            "refused": answers.refused,
            "failed": answers.failed,
        }
        for (organization_id, begins_s), answers in taken.items()
    ]
