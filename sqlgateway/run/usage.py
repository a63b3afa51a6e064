"""Usage of SQL by environment and hour, counted in the process and written every few seconds.

A process that is killed loses its counts since the last write. Batches have an id: if a commit was
not confirmed, the batch is written again, and is not counted twice.
"""

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from common.ids import uuid7
from common.principals import Scope
from sqlgateway.models import SqlUsage
from sqlgateway.run.record_writer import WRITER

FLUSH_S: Final = 5.0
HOUR: Final = timedelta(hours=1)
HOURS_PER_DAY: Final = 24

CLAIM_DAY: Final = "INSERT INTO sqlgateway_sqlstorageday (day) VALUES (%s) ON CONFLICT DO NOTHING"
ADD_STORAGE: Final = """
INSERT INTO sqlgateway_sqlusage (batch, organization_id, environment_pk, hour, storage_byte_hours)
SELECT gen_random_uuid(), organization_id, environment_id, %s, size_bytes * %s
FROM sqlgateway_database WHERE environment_id IS NOT NULL AND size_bytes > 0
"""
# Rows are read and deleted in the caller's transaction, which stores the sums.
TAKE: Final = """
WITH taken AS (DELETE FROM sqlgateway_sqlusage WHERE hour < %s RETURNING *)
SELECT organization_id, environment_pk, hour, sum(statements)::bigint AS statements,
    sum(milliseconds)::bigint AS milliseconds, sum(bytes_out)::bigint AS bytes_out,
    sum(storage_byte_hours) AS storage_byte_hours
FROM taken GROUP BY 1, 2, 3 ORDER BY 3, 1, 2
"""


@dataclass(slots=True)
class Counts:
    """Usage of one environment in one hour that has not been written. seconds: wall time."""

    organization_id: int
    statements: int = 0
    seconds: float = 0.0
    bytes_out: int = 0


class UsageMeter:
    """The counts of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, int], Counts] = {}
        # Rows of a batch that is not confirmed yet.
        self._unwritten: list[SqlUsage] = []
        self._begun_at = 0.0

    def add(
        self, scope: Scope, *, statements: int = 0, seconds: float = 0.0, bytes_out: int = 0
    ) -> None:
        """Count requests, or bytes of answers."""
        name = (scope.environment_pk, int(time.time()) // 3600)
        with self._lock:
            if not self._open:
                self._begun_at = time.monotonic()
            counts = self._open.get(name)
            if counts is None:
                counts = self._open[name] = Counts(scope.organization_id)
            counts.statements += statements
            counts.seconds += seconds
            counts.bytes_out += bytes_out
        WRITER.start()

    def flush(self) -> None:
        """Write the counts when they are FLUSH_S old."""
        with self._lock:
            is_due = WRITER.is_closing or time.monotonic() - self._begun_at >= FLUSH_S
            if not self._unwritten and self._open and is_due:
                self._unwritten, self._open = _rows(uuid7(), self._open), {}
        if self._unwritten:
            SqlUsage.objects.bulk_create(self._unwritten, ignore_conflicts=True)
            self._unwritten = []


def take(*, now: datetime, is_complete: bool = False) -> list[dict[str, Any]]:
    """Return the usage that was not taken before, by environment and hour, and delete its rows.

    The caller stores it in the same transaction. The size of databases at the first call of a day
    counts for the whole day.
    is_complete: include the current hour.
    """
    hour = now.replace(minute=0, second=0, microsecond=0)
    # Processes write the last counts of an hour some seconds after its end.
    before = (
        now + HOUR
        if is_complete
        else (now - timedelta(minutes=1)).replace(minute=0, second=0, microsecond=0)
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(CLAIM_DAY, [now.astimezone(UTC).date()])
        if cursor.rowcount:
            cursor.execute(ADD_STORAGE, [hour - HOUR, HOURS_PER_DAY])
        cursor.execute(TAKE, [before])
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _rows(batch: UUID, counted: dict[tuple[int, int], Counts]) -> list[SqlUsage]:
    return [
        SqlUsage(
            batch=batch,
            organization_id=counts.organization_id,
            environment_pk=environment_pk,
            hour=datetime.fromtimestamp(hour * 3600, UTC),
            statements=counts.statements,
            milliseconds=round(counts.seconds * 1000),
            bytes_out=counts.bytes_out,
        )
        for (environment_pk, hour), counts in counted.items()
    ]


METER: Final = UsageMeter()
WRITER.add_job(METER.flush)
