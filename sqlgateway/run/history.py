"""The history of SQL requests: written by a background thread in batches, and kept within limits.

A request adds an entry to a bounded queue; ``flush`` writes all entries with one statement. The
number of entries of each organization is limited, so that an organization with too many requests
loses only its own entries. The control database keeps the newest MAX_ROWS rows of each
organization, for ZSQL_HISTORY_DAYS.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any, Final
from uuid import UUID

import orjson
import structlog
from django.conf import settings
from django.db import connection
from django.db.models import Count, QuerySet

from common.errors import PlatformError
from common.ids import uuid7
from sqlgateway import metrics, models
from sqlgateway.errors import QueryCancelled
from sqlgateway.models import SqlRecord
from sqlgateway.run.record_writer import WRITER
from sqlgateway.run.requests import Caller, SqlRequest
from sqlgateway.run.sql_text import redacted
from sqlgateway.run.usage import METER

log = structlog.get_logger(__name__)

# The newest requests of an organization.
MAX_ROWS: Final = 10_000
# Rows that one statement deletes, so that locks are short.
BATCH: Final = 5000
MAX_ENTRIES: Final = 4000
MAX_ENTRIES_OF_ORGANIZATION: Final = 1000
# Rows of an organization that this process writes before it deletes those above the limit.
TRIM_EVERY: Final = 500
# Without rows of environments that have been deleted. One JSON parameter is faster than thirteen
# arrays, of which psycopg would quote each value.
INSERT: Final = """
INSERT INTO sqlgateway_sqlrecord (id, organization_id, environment_id, user_id, actor, role,
    request_id, at, text, statements, elapsed_ms, outcome, sqlstate, row_count,
    explain)
SELECT given.id, environment.organization_id, environment.id, given.user_id, given.actor,
    given.role, given.request_id, given.at, given.text, given.statements, given.elapsed_ms,
    given.outcome, given.sqlstate, given.row_count,
    given.explain
FROM json_to_recordset(%s::json) AS given(id uuid, environment_id bigint, user_id uuid, actor text,
    role text, request_id text, at timestamptz, text text, statements int, elapsed_ms float8,
    outcome text, sqlstate text, row_count bigint, explain text)
JOIN environments_environment AS environment ON environment.id = given.environment_id
"""


@dataclass(slots=True)
class HistoryEntry:
    """One request.

    outcome: ``success`` or the error's code.
    row_count: of the last statement.
    explain: ``plan`` or ``analyze``, if that was asked for all texts.
    size_bytes: the result's size, as in the answer; only for metrics.
    """

    caller: Caller
    request_id: str
    text: str
    statements: int
    at: datetime
    elapsed_ms: float = 0.0
    outcome: str = "success"
    sqlstate: str = ""
    row_count: int | None = None
    explain: str = ""
    size_bytes: int = 0

    def row(self) -> dict[str, Any]:
        """Return the row for INSERT. Called in the background, because it takes time."""
        caller = self.caller
        return {
            "id": uuid7(),
            "environment_id": caller.scope.environment_pk,
            "user_id": caller.user_id,
            "actor": caller.name[:254],
            "role": caller.role,
            "request_id": self.request_id,
            "at": self.at,
            "text": redacted(self.text),
            "statements": self.statements,
            "elapsed_ms": self.elapsed_ms,
            "outcome": self.outcome,
            "sqlstate": self.sqlstate,
            "row_count": self.row_count,
            "explain": self.explain,
        }


@contextmanager
def recorded_request(
    caller: Caller, request: SqlRequest, *, request_id: str
) -> Iterator[HistoryEntry]:
    """Record the request that the block runs, with its duration and error.

    The block sets row_count and size_bytes.
    """
    entry = HistoryEntry(
        caller=caller,
        request_id=request_id,
        text=request.text[: models.HISTORY_TEXT_CHARS],
        statements=len(request.texts),
        at=datetime.now(UTC),
    )
    if len(asked := {sql_text.explain for sql_text in request.texts}) == 1:
        entry.explain = asked.pop()
    started = perf_counter()
    try:
        yield entry
    except PlatformError as error:
        entry.outcome = error.code
        entry.sqlstate = str(error.extra.get("sqlstate", ""))
        raise
    except GeneratorExit:
        # The client of a streamed result disconnected.
        entry.outcome = QueryCancelled.code
        raise
    except BaseException:
        entry.outcome = "internal_error"
        raise
    finally:
        seconds = perf_counter() - started
        METER.add(caller.scope, statements=entry.statements, seconds=seconds)
        metrics.observe(
            entry.outcome, seconds, rows=entry.row_count or 0, size_bytes=entry.size_bytes
        )
        if settings.SQL.history_days:
            entry.elapsed_ms = round(seconds * 1000, 1)
            RECORDER.add(entry)


class Recorder:
    """The queue of this process. dropped: the number of entries that did not fit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[HistoryEntry] = []
        self._shares: Counter[int] = Counter()
        self._untrimmed: Counter[int] = Counter()
        self.dropped = 0

    def add(self, entry: HistoryEntry) -> None:
        """Queue an entry."""
        organization_id = entry.caller.scope.organization_id
        with self._lock:
            is_full = (
                len(self._entries) >= MAX_ENTRIES
                or self._shares[organization_id] >= MAX_ENTRIES_OF_ORGANIZATION
            )
            if is_full:
                self.dropped += 1
                return
            self._entries.append(entry)
            self._shares[organization_id] += 1
        WRITER.start()

    def flush(self) -> None:
        """Write the queued entries and delete rows above the limit."""
        with self._lock:
            entries, self._entries = self._entries, []
            shares, self._shares = self._shares, Counter()
            dropped, self.dropped = self.dropped, 0
        if dropped:
            log.warning("sql_history_dropped", entries=dropped)
        if not entries:
            return
        with connection.cursor() as cursor:
            rows = orjson.dumps([entry.row() for entry in entries])
            cursor.execute(INSERT, [rows.decode()])
        self._trim(shares)

    def _trim(self, written: Counter[int]) -> None:
        self._untrimmed.update(written)
        for organization_id, rows in list(self._untrimmed.items()):
            if rows >= TRIM_EVERY:
                del self._untrimmed[organization_id]
                trim(organization_id)


def trim(organization_id: int) -> int:
    """Delete an organization's rows past MAX_ROWS, oldest first; return their number."""
    deleted = 0
    while True:
        newest = _all().filter(organization_id=organization_id).order_by("-pk")
        surplus = newest.values("pk")[MAX_ROWS : MAX_ROWS + BATCH]
        number, _ = _all().filter(pk__in=surplus).delete()
        deleted += number
        if number < BATCH:
            return deleted


def prune(*, now: datetime) -> int:
    """Delete rows older than ZSQL_HISTORY_DAYS or above the limit; return their number."""
    oldest = first_id(now - timedelta(days=settings.SQL.history_days))
    deleted = 0
    while True:
        old = _all().filter(pk__lt=oldest).order_by("pk").values("pk")[:BATCH]
        number, _ = _all().filter(pk__in=old).delete()
        deleted += number
        if number < BATCH:
            break
    return deleted + sum(trim(organization_id) for organization_id in _overfull())


def first_id(moment: datetime) -> UUID:
    """Return the smallest UUID of version 7 of a moment (RFC 9562 §5.7): ids are in time order."""
    milliseconds = int(moment.timestamp() * 1000)
    return UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62)


def _overfull() -> Iterable[int]:
    counts = _all().values("organization_id").annotate(rows=Count("pk"))
    found = counts.filter(rows__gt=MAX_ROWS)
    return list(found.values_list("organization_id", flat=True))


def _all() -> QuerySet[SqlRecord]:
    return SqlRecord.objects.all()


RECORDER: Final = Recorder()


WRITER.add_job(RECORDER.flush)
