"""A node's row, and the statements that change it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from edgecache.brain.db.coherence import AnnouncingTransaction
from edgecache.brain.db.database import BrainDatabase, DatabaseTransaction
from edgecache.brain.nodes.health import by_heartbeat, offline_after_s
from edgecache.protocol.heartbeats import Heartbeat, Problem

TOPIC: Final = "node"
# The statuses from which a node may change to another one.
MAY_FOLLOW: Final = {
    "active": ("pending", "quarantined", "draining"),
    "quarantined": ("pending", "active", "draining"),
    "draining": ("active",),
    "removed": ("draining",),
}

SELECT: Final = """
    SELECT id, organization_id, endpoint, region, capacity_bytes, status, secret_hash, created_at,
           status_reason, status_at, used_bytes, object_count, evictions, load, incarnation,
           inventory_of, proved_at, removed_at, last_seen_at, created_by, creator_id,
           extract(epoch FROM clock_timestamp() - last_seen_at)::float8 AS age_s
    FROM brain_node WHERE status <> 'removed'
"""
BEAT: Final = """
    UPDATE brain_node AS node SET
        incarnation = beat.incarnation, sequence = beat.sequence, used_bytes = beat.used_bytes,
        object_count = beat.object_count, evictions = beat.evictions, load = beat.load,
        -- An operator's node may only report less: placement weighs by its capacity.
        capacity_bytes = CASE WHEN node.organization_id IS NULL THEN beat.capacity_bytes
                              ELSE least(node.capacity_bytes, beat.capacity_bytes) END,
        -- A worker that stops counts as silent from now on.
        last_seen_at = clock_timestamp() - make_interval(secs => beat.silence_s)
    FROM (VALUES (%s::uuid, %s::text, %s::bigint, %s::bigint, %s::bigint, %s::bigint, %s::float8,
                  %s::bigint, %s::float8))
      AS beat (id, incarnation, sequence, used_bytes, object_count, evictions, load,
               capacity_bytes, silence_s)
    WHERE node.id = beat.id AND node.status <> 'removed'
      AND (node.incarnation <> beat.incarnation OR node.sequence < beat.sequence)
    RETURNING node.status
"""
ADD_QUARANTINE: Final = """
    INSERT INTO brain_quarantineevent (node_id, organization_id, reason, began_at)
    SELECT id, organization_id, status_reason, status_at FROM brain_node
    WHERE id = %s AND organization_id IS NOT NULL
"""
QUARANTINES: Final = """
    SELECT id, node_id, organization_id, reason, began_at
    FROM brain_quarantineevent WHERE id > %s ORDER BY id LIMIT %s
"""
INSERT: Final = """
    INSERT INTO brain_node (id, organization_id, endpoint, region, capacity_bytes, status,
                            secret_hash, created_by, creator_id)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (endpoint) WHERE removed_at IS NULL DO NOTHING
    RETURNING id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node's row. secret_hash: SHA-256 of its credential.

    age_s: seconds since its last heartbeat by the database's clock, None before the first.
    """

    id: UUID
    organization_id: int | None
    endpoint: str
    region: str
    capacity_bytes: int
    status: str
    secret_hash: bytes = field(repr=False)
    created_at: datetime
    status_reason: str = ""
    status_at: datetime | None = None
    used_bytes: int = 0
    object_count: int = 0
    evictions: int = 0
    load: float = 0.0
    incarnation: str = ""
    inventory_of: str = ""
    proved_at: datetime | None = None
    removed_at: datetime | None = None
    last_seen_at: datetime | None = None
    created_by: str = ""
    creator_id: UUID | None = None
    age_s: float | None = None

    def health(self, *, interval_s: float, later_s: float = 0.0) -> str:
        """Return the health of an approved node, the status of any other.

        later_s: seconds since the row was read.
        """
        if self.status in {"pending", "quarantined"}:
            return self.status
        age_s = None if self.age_s is None else self.age_s + later_s
        return by_heartbeat(age_s, interval_s=interval_s)

    def removed_for_s(self) -> float:
        """Return the seconds since its removal was requested; 0 if it was not."""
        return (
            0.0
            if self.removed_at is None
            else (datetime.now(UTC) - self.removed_at).total_seconds()
        )

    def may_hold(self, organization_id: int, *, is_public: bool) -> bool:
        """True if objects of this organization's bucket may be there.

        Objects of private buckets may be on the platform's and the owner's nodes only.
        """
        return is_public or self.organization_id in {None, organization_id}


async def read_all(database: BrainDatabase) -> list[NodeRow]:
    """Return all nodes that are not removed."""
    return [NodeRow(**row._asdict()) for row in await database.all(SELECT)]


async def read_one(
    database: BrainDatabase | DatabaseTransaction, node_id: UUID, *, locks: bool = False
) -> NodeRow | None:
    """Return one node. locks: lock the row until the transaction ends."""
    sql: LiteralString = SELECT + " AND id = %s" + (" FOR UPDATE" if locks else "")
    row = await database.one(sql, [node_id])
    return NodeRow(**row._asdict()) if row else None


async def is_known(database: BrainDatabase, node_id: UUID, secret_hash: bytes) -> bool:
    """True if a node with this credential ever existed, removed ones included."""
    sql: LiteralString = "SELECT 1 FROM brain_node WHERE id = %s AND secret_hash = %s"
    return await database.one(sql, [node_id, secret_hash]) is not None


async def write_heartbeat(
    database: BrainDatabase, node_id: UUID, beat: Heartbeat, *, interval_s: float
) -> bool:
    """Store a heartbeat; False for one that arrived out of order, which is ignored."""
    is_leaving = Problem.DRAINING in beat.problems
    values = (
        node_id,
        beat.incarnation,
        beat.sequence,
        beat.used_bytes,
        beat.object_count,
        beat.evictions,
        beat.load,
        beat.capacity_bytes,
        offline_after_s(interval_s) if is_leaving else 0.0,
    )
    return await database.one(BEAT, values) is not None


async def insert(change: AnnouncingTransaction, row: NodeRow) -> bool:
    """Insert a node; False if its endpoint is taken."""
    values = (
        row.id,
        row.organization_id,
        row.endpoint,
        row.region,
        row.capacity_bytes,
        row.status,
        row.secret_hash,
        row.created_by,
        row.creator_id,
    )
    if await change.one(INSERT, values) is None:
        return False
    change.announce(TOPIC, row.id.hex)
    return True


async def set_status(
    change: AnnouncingTransaction, node_id: UUID, status: str, *, reason: str = ""
) -> bool:
    """Set a node's status; False if it may not follow the current one."""
    done = await change.run(
        # A full inventory is requested, because its files may have changed.
        "UPDATE brain_node SET status = %s, status_reason = %s, status_at = now(),"
        " inventory_of = ''"
        " WHERE id = %s AND status = ANY(%s)",
        [status, reason[:255], node_id, list(MAY_FOLLOW[status])],
    )
    if done and status == "quarantined":
        # One transaction after another, so that readers who page by id miss none.
        await change.run("LOCK TABLE brain_quarantineevent IN SHARE ROW EXCLUSIVE MODE")
        await change.run(ADD_QUARANTINE, [node_id])
    if done:
        change.announce(TOPIC, node_id.hex)
    return bool(done)


async def quarantines(database: BrainDatabase, after: int, limit: int) -> list[dict[str, Any]]:
    """Return the quarantines of operators' nodes after an id, oldest first."""
    return [row._asdict() for row in await database.all(QUARANTINES, [after, limit])]


async def move(change: AnnouncingTransaction, node_id: UUID, endpoint: str) -> None:
    """Store a node's new endpoint. Raises psycopg.errors.UniqueViolation if another node has it."""
    await change.run("UPDATE brain_node SET endpoint = %s WHERE id = %s", [endpoint, node_id])
    change.announce(TOPIC, node_id.hex)
