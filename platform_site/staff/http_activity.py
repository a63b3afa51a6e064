"""HTTP requests of all web processes by ten minutes, for the admin's dashboard.

Each process adds its counts to the row of the ten minutes every few seconds. A request costs no
query, and a killed process loses the counts since its last write.
"""

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString

import structlog
from django.db import Error, connection

from common.metrics import publishing
from common.metrics.http_tally import BOUNDS_MS, TALLY
from environments import request_activity
from platform_site.models import HttpSample

WRITE_EVERY_S: Final = 15.0
HTTP_RETENTION: Final = timedelta(days=8)
DAY: Final = timedelta(days=1)
ADD: Final[LiteralString] = """
INSERT INTO platform_site_httpsample AS t (begins_at, requests, errors, counts)
VALUES (%s, %s, %s, %s)
ON CONFLICT (begins_at) DO UPDATE SET requests = t.requests + excluded.requests,
    errors = t.errors + excluded.errors,
    counts = ARRAY(SELECT a + b FROM unnest(t.counts, excluded.counts)
        WITH ORDINALITY AS both_of(a, b, place) ORDER BY place)
"""

log = structlog.get_logger(__name__)


def write() -> None:
    """Write this process's counts; if the database is unavailable, keep them for the next time."""
    publishing.publish()
    taken = TALLY.take()
    if not taken:
        return
    try:
        with connection.cursor() as cursor:
            for begins_s, slot in sorted(taken.items()):
                at = datetime.fromtimestamp(begins_s, tz=UTC)
                cursor.execute(ADD, [at, slot.requests, slot.errors, slot.counts])
    except Error as exc:
        log.warning("http_activity_not_written", error=type(exc).__name__)
        TALLY.put_back(taken)


def keep_writing() -> None:
    """Start a thread that writes these counts, and those of organizations, every few seconds."""
    threading.Thread(target=_write_forever, name="http-activity", daemon=True).start()


def _write_forever() -> None:
    while True:
        time.sleep(WRITE_EVERY_S)
        try:
            write()
            request_activity.write()
            # Returns the connection to the pool, or closes the thread's own.
            connection.close()
        except Exception:
            # The thread must not end, because nothing restarts it.
            log.exception("http_activity_failed")


def http_samples(*, now: datetime) -> list[HttpSample]:
    """Return the last day's samples, oldest first."""
    return list(HttpSample.objects.filter(begins_at__gt=now - DAY).order_by("begins_at"))


def delete_old(*, now: datetime) -> None:
    """Delete samples that no chart shows."""
    HttpSample.objects.filter(begins_at__lt=now - HTTP_RETENTION).delete()


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return a percentile of the response times in milliseconds; None without requests.

    Requests between two bounds are assumed to be evenly distributed.
    """
    wanted = share * sum(counts)
    if not wanted:
        return None
    below = 0
    for place, count in enumerate(counts[:-1]):
        if count and below + count >= wanted:
            low = BOUNDS_MS[place - 1] if place else 0
            return low + (BOUNDS_MS[place] - low) * (wanted - below) / count
        below += count
    return float(BOUNDS_MS[-1])
