"""Usage counters: counted in memory, written every ten seconds, never counted twice.

A batch is written in one transaction, with its id: a batch whose commit was not confirmed can be
written again without counting twice. A brain that is killed loses what it counted since the last
write.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

import structlog
from psycopg.types.json import Jsonb

from common.ids import uuid7
from edgecache.brain.core.background import PeriodicTask
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db.database import BrainDatabase, DatabaseTransaction
from edgecache.brain.metering.latencies import Latencies

log = structlog.get_logger(__name__)

SLICE_S: Final = 10
HOUR_S: Final = 3600
LAST_TRIES: Final = 3
# Held while lines and counters are written: the ids of lines then rise in the order in which they
# become visible, and readers that page by `id >` miss none.
LINES_LOCK: Final = 0x5A0C_0001

ADD_BATCH: Final[LiteralString] = (
    "INSERT INTO brain_usagebatch (id) VALUES (%s) ON CONFLICT DO NOTHING"
)
ADD_USAGE: Final[LiteralString] = """
    INSERT INTO brain_usagecounter (organization_id, environment_pk, bucket_id, node_id,
                                    is_creditable, hour, hits, misses, bytes_served)
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::uuid[], %s::boolean[],
                         %s::timestamptz[], %s::bigint[], %s::bigint[], %s::bigint[])
    ON CONFLICT (bucket_id, node_id, is_creditable, hour) DO UPDATE SET
        hits = brain_usagecounter.hits + excluded.hits,
        misses = brain_usagecounter.misses + excluded.misses,
        bytes_served = brain_usagecounter.bytes_served + excluded.bytes_served
"""
INSERT_MEASUREMENT: Final[LiteralString] = """
    INSERT INTO brain_measurement (brain_id, node_id, minute, hits, misses, bytes_served, latencies)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (brain_id, node_id, minute) DO UPDATE SET
        hits = brain_measurement.hits + excluded.hits,
        misses = brain_measurement.misses + excluded.misses,
        bytes_served = brain_measurement.bytes_served + excluded.bytes_served,
        latencies = excluded.latencies
"""

# Of buckets that exist. After a week without a failure its count begins anew.
ADD_FAILURES: Final[LiteralString] = """
    INSERT INTO brain_originfailure (bucket_id, cause, count, last_at)
    SELECT given.* FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::timestamptz[])
        AS given (bucket_id, cause, count, last_at)
    JOIN brain_bucket b ON b.id = given.bucket_id
    ON CONFLICT (bucket_id, cause) DO UPDATE SET
        count = excluded.count + CASE
            WHEN brain_originfailure.last_at > now() - interval '7 days'
            THEN brain_originfailure.count ELSE 0 END,
        last_at = greatest(brain_originfailure.last_at, excluded.last_at)
"""
FAILURES: Final[LiteralString] = (
    "SELECT cause, count, last_at FROM brain_originfailure"
    " WHERE bucket_id = %s AND last_at > now() - interval '7 days'"
    " ORDER BY last_at DESC, cause LIMIT 50"
)

# A read: its tenant, bucket, node, client's address, bytes and Unix time.
IsCreditable = Callable[[EnvironmentKey, int, UUID, str, int, float], bool]


@dataclass(frozen=True, slots=True)
class OriginFailure:
    """Why responses of a bucket failed, how often and when last."""

    cause: str
    count: int
    last_at: datetime


class UsageKey(NamedTuple):
    """The key of a count. node_id: None if the bytes did not come from a worker.

    is_creditable: False if the node's operator earns nothing.
    """

    organization_id: int
    environment_pk: int
    bucket_id: int
    node_id: UUID | None
    is_creditable: bool = True


@dataclass(slots=True)
class UsageCount:
    hits: int = 0
    misses: int = 0
    bytes_served: int = 0

    def add(self, *, is_hit: bool, bytes_served: int) -> None:
        if is_hit:
            self.hits += 1
        else:
            self.misses += 1
        self.bytes_served += bytes_served


@dataclass(slots=True)
class Measure(UsageCount):
    """Counts and latencies of one usage key, of one node, of all nodes, or of the brain itself."""

    latencies: Latencies = field(default_factory=Latencies)

    def merge(self, other: "Measure") -> None:
        self.hits += other.hits
        self.misses += other.misses
        self.bytes_served += other.bytes_served
        self.latencies.merge(other.latencies)


@dataclass(slots=True)
class MeterCounts:
    """Counts of ten seconds, until they are written.

    own: the measures of ``lines`` by bucket, without a node.
    by_node: the others by bucket, node and is_creditable.
    failures: how often, and when last (Unix time), by bucket and cause.

    So each response needs one look-up, with an existing key.
    """

    began_at: datetime
    id: UUID = field(default_factory=uuid7)
    lines: dict[UsageKey, Measure] = field(default_factory=dict)
    own: dict[int, Measure] = field(default_factory=dict)
    by_node: dict[tuple[int, UUID, bool], Measure] = field(default_factory=dict)
    failures: dict[tuple[int, str], tuple[int, float]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.lines and not self.failures

    def begin(self, key: UsageKey) -> Measure:
        """Return the measure of a key that was not counted yet."""
        measure = self.lines[key] = Measure()
        if key.node_id is None:
            self.own[key.bucket_id] = measure
        else:
            self.by_node[key.bucket_id, key.node_id, key.is_creditable] = measure
        return measure

    def measures(self) -> dict[UUID | None, Measure]:
        """Return the sums by the worker that the bytes came from, None for the brain.

        Adding up here is cheaper than counting each response twice.
        """
        found: dict[UUID | None, Measure] = defaultdict(Measure)
        for key, measure in self.lines.items():
            found[key.node_id].merge(measure)
        return found

    def all(self) -> Measure:
        found = Measure()
        for measure in self.lines.values():
            found.merge(measure)
        return found


def _always(*_read: object) -> bool:
    return True


class Meters:
    """The counters of one brain."""

    def __init__(
        self,
        database: BrainDatabase,
        brain_id: UUID,
        *,
        is_creditable: IsCreditable = _always,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """is_creditable: asked for each read through a node. clock: Unix seconds."""
        self._is_creditable = is_creditable
        self._database = database
        self._brain_id = brain_id
        self._clock = clock
        self._open = MeterCounts(slice_of(clock()))
        self._unwritten: MeterCounts | None = None
        # Held during a write: only without it do written and unwritten counts add up.
        self.writing = asyncio.Lock()
        self._periodic = PeriodicTask("meters", self.flush, self._until_the_slice_ends)
        self._written = Measure()

    def record(
        self,
        tenant: EnvironmentKey,
        bucket_id: int,
        node_id: UUID | None,
        *,
        is_hit: bool,
        bytes_served: int,
        seconds: float,
        client: str = "",
    ) -> None:
        """Count one response with an object's bytes, after it has ended.

        node_id: the worker that gave them, None when it was the brain or the origin. is_hit: the
        origin was not needed. bytes_served: that left for the client. seconds: to the first byte.
        client: its address, for reads through a node.
        """
        is_creditable = True
        if node_id is None:
            measure = self._open.own.get(bucket_id)
        else:
            read = (tenant, bucket_id, node_id, client, bytes_served, self._clock())
            is_creditable = self._is_creditable(*read)
            measure = self._open.by_node.get((bucket_id, node_id, is_creditable))
        if measure is None:
            names = (tenant.organization_id, tenant.environment_pk, bucket_id, node_id)
            measure = self._open.begin(UsageKey(*names, is_creditable))
        # Without calling ``add``: a call takes a tenth of the time of all of this.
        if is_hit:
            measure.hits += 1
        else:
            measure.misses += 1
        measure.bytes_served += bytes_served
        measure.latencies.add(seconds)

    def record_failure(self, bucket_id: int, cause: str) -> None:
        """Count a response of a bucket that failed. cause: its word."""
        count, _ = self._open.failures.get((bucket_id, cause), (0, 0.0))
        self._open.failures[bucket_id, cause] = (count + 1, self._clock())

    async def failures(self, bucket_id: int) -> list[OriginFailure]:
        """Return why a bucket's responses failed in the last week, the last one first.

        What happened in the last ten seconds may be missing. Raises DatabaseUnavailable.
        """
        rows = await self._database.all(FAILURES, [bucket_id])
        return [OriginFailure(*row) for row in rows]

    def since_start(self) -> Measure:
        """Return the counts since the brain started: they only rise."""
        found = self.unwritten()
        found.merge(self._written)
        return found

    def unwritten(self, node_id: UUID | None = None) -> Measure:
        """Return the counts of one node, or of all, that are not written yet."""
        found = Measure()
        for batch in (self._unwritten, self._open):
            if batch is None:
                continue
            for key, measure in batch.lines.items():
                if node_id is None or node_id == key.node_id:
                    found.merge(measure)
        return found

    async def start(self) -> None:
        """Start writing every ten seconds."""
        await self._periodic.start()

    async def stop(self) -> None:
        await self._periodic.stop()
        for _ in range(LAST_TRIES):
            try:
                await self.flush()
            except DatabaseUnavailable:
                continue
            return
        log.error("brain_usage_lost", lines=len(self._open.lines))

    async def flush(self) -> None:
        """Write the counts. Raises DatabaseUnavailable; they are then written later."""
        async with self.writing:
            # A batch that could not be written comes first; newer counts are collected in the
            # meantime.
            for _ in range(2):
                if self._unwritten is None and not self._open.is_empty:
                    self._unwritten, self._open = self._open, MeterCounts(slice_of(self._clock()))
                if self._unwritten is None:
                    return
                await self._write(self._unwritten)
                self._written.merge(self._unwritten.all())
                self._unwritten = None

    async def _until_the_slice_ends(self) -> None:
        await asyncio.sleep(SLICE_S - self._clock() % SLICE_S)

    async def _write(self, batch: MeterCounts) -> None:
        async with self._database.transaction() as connection:
            await connection.run("SELECT pg_advisory_xact_lock(%s)", [LINES_LOCK])
            if not await connection.run(ADD_BATCH, [batch.id]):
                # An earlier attempt had been committed after all.
                return
            if batch.failures:
                await connection.run(ADD_FAILURES, _failure_columns(batch))
            if not batch.lines:
                return
            await add_usage(connection, hour_of(batch.began_at.timestamp()), batch.lines)
            # In the table a null node means all nodes.
            for node_id, measure in (batch.measures() | {None: batch.all()}).items():
                await connection.run(
                    INSERT_MEASUREMENT,
                    [
                        self._brain_id,
                        node_id,
                        batch.began_at,
                        measure.hits,
                        measure.misses,
                        measure.bytes_served,
                        Jsonb(measure.latencies.as_json()),
                    ],
                )


async def add_usage(
    connection: DatabaseTransaction, hour: datetime, lines: Mapping[UsageKey, UsageCount]
) -> None:
    """Add counts to the counters of an hour, in one order for all writers."""
    rows = [
        (*key, hour, count.hits, count.misses, count.bytes_served)
        for key, count in sorted(lines.items(), key=str)
    ]
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
    await connection.run(ADD_USAGE, columns)


def _failure_columns(batch: MeterCounts) -> list[list[Any]]:
    rows = [
        (bucket_id, cause, count, datetime.fromtimestamp(last_at, UTC))
        for (bucket_id, cause), (count, last_at) in sorted(batch.failures.items())
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def slice_of(now: float) -> datetime:
    """Return the beginning of the ten seconds that a moment (Unix seconds) belongs to."""
    return datetime.fromtimestamp(int(now) // SLICE_S * SLICE_S, UTC)


def hour_of(now: float) -> datetime:
    """Return the hour that a moment (Unix seconds) belongs to."""
    return datetime.fromtimestamp(int(now) // HOUR_S * HOUR_S, UTC)
