"""API requests per organization and hour: counted in the process, added to rows at intervals.

A request costs no query. A killed process loses the counts since its last write.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString

import orjson
import structlog
from django.db import Error, connection

from common.machine.reasons import reason
from common.metrics import publishing
from common.metrics.organization_tally import ORGANIZATIONS, Answers, Key
from common.scoping import unscoped
from environments.models import RequestHour

RETENTION: Final = timedelta(days=8)
HOURS: Final = 24
# Rows are written in one order, so that processes cannot deadlock. Counts of an organization that
# was deleted in the meantime are discarded.
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
    """Write this process's counts; if the database is unavailable, keep them for the next time."""
    publishing.publish()
    taken = ORGANIZATIONS.take()
    if not taken:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute(ADD, [orjson.dumps(_rows(taken)).decode()])
    except Error as exc:
        log.warning("request_activity_not_written", error=reason(exc))
        ORGANIZATIONS.put_back(taken)


def first_hour(*, now: datetime) -> datetime:
    """Return the beginning of the first of the 24 shown hours."""
    return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)


def hours(organization_id: int, *, since: datetime) -> list[RequestHour]:
    """Return an organization's hours with requests, oldest first."""
    rows = RequestHour.objects.filter(organization_id=organization_id, hour__gte=since)
    return list(rows.order_by("hour"))


def delete_old(*, now: datetime) -> None:
    """Delete rows that are no longer shown."""
    with unscoped("upkeep for every organization"):
        RequestHour.objects.filter(hour__lt=now - RETENTION).delete()


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
