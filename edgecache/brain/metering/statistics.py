"""Statistics of the cluster: written counts plus this brain's unwritten ones.

Totals are of all time. Latencies are of the last hour, to the first byte of brains' responses.
"""

import time
from datetime import UTC, datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.metering.latencies import Latencies
from edgecache.brain.metering.meters import Measure, Meters
from edgecache.brain.nodes.health import Health
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.node_rows import NodeRow

# Counting a million objects takes a while: the result is kept this many times as long.
COUNT_KEPT: Final = 20
# Ten million take nearly as long as a statement may: above this the last ANALYZE counts.
MAX_COUNTED: Final = 2_000_000
# Rows older than this lose their latencies and become one an hour.
DETAIL_DAYS: Final = 2
ROLLED_UP: Final = UUID(int=0)
ROLL_UP_LOCK: Final = 0x5A0C_0002

TOTALS: Final[LiteralString] = (
    "SELECT coalesce(sum(hits), 0)::bigint AS hits, coalesce(sum(misses), 0)::bigint AS misses,"
    " coalesce(sum(bytes_served), 0)::bigint AS bytes_served"
    " FROM brain_measurement WHERE node_id IS NOT DISTINCT FROM %s"
)
LAST_HOUR: Final[LiteralString] = (
    "SELECT latencies FROM brain_measurement WHERE node_id IS NOT DISTINCT FROM %s"
    " AND minute > now() - interval '1 hour'"
)
OBJECTS: Final[LiteralString] = "SELECT count(*) AS objects FROM brain_cachedobject"
ESTIMATED: Final[LiteralString] = (
    "SELECT reltuples::bigint AS objects FROM pg_class WHERE oid = 'brain_cachedobject'::regclass"
)
ROLL_UP: Final[LiteralString] = """
    WITH gone AS (
        DELETE FROM brain_measurement
        WHERE brain_id <> %(all)s AND minute < now() - make_interval(days => %(days)s)
        RETURNING node_id, date_trunc('hour', minute) AS hour, hits, misses, bytes_served)
    INSERT INTO brain_measurement (brain_id, node_id, minute, hits, misses, bytes_served, latencies)
    SELECT %(all)s, node_id, hour, sum(hits), sum(misses), sum(bytes_served), '{}'
    FROM gone GROUP BY node_id, hour
    ON CONFLICT (brain_id, node_id, minute) DO UPDATE SET
        hits = brain_measurement.hits + excluded.hits,
        misses = brain_measurement.misses + excluded.misses,
        bytes_served = brain_measurement.bytes_served + excluded.bytes_served
"""


class Statistics:
    """Answers ``/v1/status`` and ``/v1/metrics``."""

    def __init__(self, database: BrainDatabase, nodes: KnownNodes, meters: Meters) -> None:
        """Count nothing yet."""
        self._database = database
        self._nodes = nodes
        self._meters = meters
        self._object_count = 0
        self._counted_until = 0.0

    async def status(self) -> dict[str, Any]:
        """Return the interface's status fields. Raises DatabaseUnavailable."""
        rows = self._nodes.nodes()
        return {
            "brain_healthy": True,
            "total_nodes": len(rows),
            "online_nodes": len(self._active(rows)),
            "total_cache_bytes": sum(row.capacity_bytes for row in self._active(rows)),
            "used_cache_bytes": sum(row.used_bytes for row in self._active(rows)),
            "hit_ratio": _ratio(await self._measure(None)),
        }

    async def cluster(self) -> dict[str, Any]:
        """Return the interface's cluster-wide metrics. Raises DatabaseUnavailable."""
        rows = self._nodes.nodes()
        active = self._active(rows)
        return {
            **_measured(await self._measure(None)),
            "bytes_stored": sum(row.used_bytes for row in active),
            "bytes_capacity": sum(row.capacity_bytes for row in active),
            "object_count": await self._objects(),
            "evictions": sum(row.evictions for row in rows),
            "active_nodes": len(active),
            "collected_at": datetime.now(UTC).isoformat(),
        }

    async def of_node(self, row: NodeRow) -> dict[str, Any]:
        """Return the same fields of one node, and its load. Raises DatabaseUnavailable."""
        return {
            "node_id": str(row.id),
            **_measured(await self._measure(row.id)),
            "bytes_stored": row.used_bytes,
            "bytes_capacity": row.capacity_bytes,
            "object_count": row.object_count,
            "evictions": row.evictions,
            "active_nodes": len(self._active([row])),
            "load": row.load,
            "collected_at": datetime.now(UTC).isoformat(),
        }

    async def roll_up(self) -> None:
        """Make one row an hour of old minutes. Raises DatabaseUnavailable."""
        async with self._database.transaction() as connection:
            lock = await connection.one(
                "SELECT pg_try_advisory_xact_lock(%s) AS is_mine", [ROLL_UP_LOCK]
            )
            if lock is not None and lock.is_mine:
                await connection.run(ROLL_UP, {"all": ROLLED_UP, "days": DETAIL_DAYS})

    def _active(self, rows: list[NodeRow]) -> list[NodeRow]:
        return [row for row in rows if self._nodes.health(row) in {Health.ONLINE, Health.SUSPECT}]

    async def _measure(self, node_id: UUID | None) -> Measure:
        async with self._meters.writing:
            totals = await self._database.one(TOTALS, [node_id])
            rows = await self._database.all(LAST_HOUR, [node_id])
            unwritten = self._meters.unwritten(node_id)
        found = Measure(latencies=Latencies.merged(Latencies.from_json(r.latencies) for r in rows))
        if totals is not None:
            found.hits, found.misses, found.bytes_served = totals
        found.merge(unwritten)
        return found

    async def _objects(self) -> int:
        now = time.monotonic()
        if now >= self._counted_until:
            row = await self._database.one(ESTIMATED)
            if row is None or row.objects <= MAX_COUNTED:
                row = await self._database.one(OBJECTS)
            taken_s = time.monotonic() - now
            # A count that takes a few milliseconds is made each time, so it is never old.
            kept_s = taken_s * COUNT_KEPT if taken_s > 0.02 else 0.0
            self._object_count = row.objects if row else 0
            self._counted_until = now + kept_s
        return self._object_count


def _ratio(measure: Measure) -> float:
    asked = measure.hits + measure.misses
    return round(measure.hits / asked, 6) if asked else 0.0


def _measured(measure: Measure) -> dict[str, Any]:
    return {
        "total_hits": measure.hits,
        "total_misses": measure.misses,
        "hit_ratio": _ratio(measure),
        "bytes_served": measure.bytes_served,
        "avg_latency_ms": measure.latencies.mean_ms(),
        "p95_latency_ms": measure.latencies.quantile_ms(0.95),
        "p99_latency_ms": measure.latencies.quantile_ms(0.99),
    }
