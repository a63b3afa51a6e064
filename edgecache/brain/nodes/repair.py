"""Repair: restores the number of replicas after nodes were lost, came back, drain or were added.

One brain at a time (the one with the smallest id) walks over all blobs by hash, a thousand at a
step, whenever the set of usable nodes changed, and every ten minutes; blobs that may have too
many or too few replicas are checked immediately (``request_check``). Where replicas are missing, a
node is asked to fetch one; superfluous and misplaced replicas are dropped.
"""

import asyncio
import time
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

import structlog

from edgecache.brain.core.background import PeriodicTask
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase, Row
from edgecache.brain.nodes import node_jobs, node_rows
from edgecache.brain.nodes.health import Health
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.replica_plan import TOPIC, BlobReplicas, ReplicaPlan, plan
from edgecache.brain.nodes.replication import Replication
from edgecache.protocol.jobs import JobKind

log = structlog.get_logger(__name__)

STEP: Final = 1000
# Blobs waiting for a check; beyond that all are checked.
DUE: Final = 20_000
PAUSE_S: Final = 0.05
REPEAT_S: Final = 600.0
# Missed heartbeats after which a node's replicas count as lost.
LOST_AFTER_HEARTBEATS: Final = 8
DRAIN_LIMIT_S: Final = 3600.0
CLEAR_STEP: Final = 5000
MAX_BUCKETS_CHECKED: Final = 50

# All blobs by hash, with their holders, running transfers, the buckets that refer to them, and the
# nodes that were asked for a transfer three times.
BYTES: Final[LiteralString] = """
    SELECT blob.sha256, blob.size, coalesce(blob.hot_until > now(), false) AS is_hot,
           ARRAY(SELECT node_id FROM brain_location WHERE blob_id = blob.sha256) AS holders,
           ARRAY(SELECT node_id FROM brain_nodejob
                 WHERE sha256 = blob.sha256 AND kind = 'replicate' AND attempts < 3) AS coming,
           named.bucket_id, named.organizations, named.is_public,
           ARRAY(SELECT node_id FROM brain_nodejob
                 WHERE sha256 = blob.sha256 AND kind = 'replicate' AND attempts >= 3) AS failing
    FROM brain_blob blob
    CROSS JOIN LATERAL (
        SELECT min(c.bucket_id) AS bucket_id,
               array_agg(DISTINCT b.organization_id) AS organizations,
               coalesce(bool_or(b.is_public), false) AS is_public
        FROM (SELECT bucket_id FROM brain_cachedobject WHERE blob_id = blob.sha256 LIMIT %s) c
        JOIN brain_bucket b ON b.id = c.bucket_id) named
"""
PAGE: Final[LiteralString] = BYTES + " WHERE blob.sha256 > %s ORDER BY blob.sha256 LIMIT %s"
SOME: Final[LiteralString] = BYTES + " WHERE blob.sha256 = ANY(%s)"
DROP: Final[LiteralString] = """
    DELETE FROM brain_location l USING unnest(%s::uuid[], %s::bytea[]) AS gone (node_id, blob_id)
    WHERE l.node_id = gone.node_id AND l.blob_id = gone.blob_id
"""
# A removed node's rows are deleted in steps.
CLEAR: Final[LiteralString] = """
    DELETE FROM brain_location WHERE id IN (
        SELECT l.id FROM brain_location l JOIN brain_node n ON n.id = l.node_id
        WHERE n.status = 'removed' LIMIT %s)
"""
FETCHES: Final[LiteralString] = (
    "SELECT EXISTS (SELECT FROM brain_nodejob WHERE kind = 'replicate' AND attempts < 3"
    " AND node_id = ANY(%s)) AS are_left"
)


class UsableNodes(NamedTuple):
    """The nodes at one moment: those that can be read, and those of them that can store more."""

    readable: dict[UUID, NodeRow]
    online: frozenset[UUID]

    def mark(self) -> object:
        """Return a value that changes when another walk is necessary."""
        rows = self.readable.values()
        return frozenset((row.id, row.status, row.removed_at) for row in rows), self.online


class Repair(PeriodicTask):
    """The walk over all blobs, which also ends drains."""

    def __init__(
        self,
        database: BrainDatabase,
        coherence: Coherence,
        nodes: KnownNodes,
        replication: Replication,
        *,
        brain_id: UUID,
    ) -> None:
        """brain_id: this brain's, to decide which brain walks."""
        self._database = database
        self._coherence = coherence
        self._nodes = nodes
        self._replication = replication
        self._id = brain_id
        self._walked_at = 0.0
        # The nodes at the end of the last complete walk.
        self._seen: object = None
        self._due: set[bytes] = set()
        coherence.subscribe(TOPIC, self._check_again)
        coherence.on_loss(self._check_again)
        super().__init__("repair", self._round, lambda: asyncio.sleep(nodes.interval_s / 2))

    async def request_walk(self) -> None:
        """Request a walk after a change of what may be stored where. Raises DatabaseUnavailable."""
        async with self._coherence.transaction(wait_for_acks=False) as change:
            change.announce(TOPIC)

    async def check(self, sha256: bytes) -> int:
        """Check one blob now; return the number of replicas that were ordered or dropped.

        Raises DatabaseUnavailable.
        """
        return await self._check([sha256], self._usable())

    async def walk(self) -> int:
        """Check all blobs once; return the number of replicas that were ordered or dropped.

        Raises DatabaseUnavailable.
        """
        cursor, changes = b"", 0
        while True:
            rows = await self._database.all(PAGE, [MAX_BUCKETS_CHECKED, cursor, STEP])
            changes += await self._repair(rows, self._usable())
            if len(rows) < STEP:
                return changes
            cursor = rows[-1].sha256
            await asyncio.sleep(PAUSE_S)

    async def _check(self, hashes: list[bytes], usable: UsableNodes) -> int:
        rows = await self._database.all(SOME, [MAX_BUCKETS_CHECKED, hashes])
        return await self._repair(rows, usable)

    async def _repair(self, rows: Sequence[Row], usable: UsableNodes) -> int:
        blobs = (BlobReplicas(*row) for row in rows)
        return await self._carry_out(plan(blobs, *usable, self._replication.copies))

    async def _round(self) -> None:
        if not all(self._id < peer for peer in self._coherence.peers):
            self._check_again()
            return
        await self._database.run(CLEAR, [CLEAR_STEP])
        usable = self._usable()
        if usable.mark() == self._seen and time.monotonic() - self._walked_at < REPEAT_S:
            await self._check_due(usable)
            return
        # Taken before the walk: changes during it are handled by the next one.
        self._seen = usable.mark()
        self._due.clear()
        is_done = False
        try:
            changes = await self.walk()
            self._walked_at = time.monotonic()
            is_done = await self._end_drains(usable.readable, is_quiet=not changes)
        finally:
            if not is_done:
                self._seen = None

    async def _check_due(self, usable: UsableNodes) -> None:
        due = list(islice(self._due, STEP))
        if not due:
            return
        # Removed before the check: later requests cause another check.
        self._due.difference_update(due)
        try:
            await self._check(due, usable)
        except BaseException:
            self._due.update(due)
            raise

    def _check_again(self, *hashes: str) -> None:
        """Check some blobs in the next round, all if none are given."""
        self._due.update(map(bytes.fromhex, hashes))
        if not hashes or len(self._due) > DUE:
            self._seen = None
            self._due.clear()

    def _usable(self) -> UsableNodes:
        lost_after_s = LOST_AFTER_HEARTBEATS * self._nodes.interval_s
        readable = {
            row.id: row
            for row in self._nodes.nodes_including_removed()
            if row.status in {"active", "draining"}
            and self._nodes.health(row) != "quarantined"
            and self._nodes.silence_s(row) < lost_after_s
        }
        active = (row for row in readable.values() if row.status == "active")
        online = frozenset(row.id for row in active if self._nodes.health(row) == Health.ONLINE)
        return UsableNodes(readable, online)

    async def _carry_out(self, wanted: ReplicaPlan) -> int:
        if not wanted:
            return 0
        async with self._coherence.transaction(wait_for_acks=False) as change:
            await node_jobs.add(change, JobKind.REPLICATE, wanted.fetches)
            await node_jobs.add(change, JobKind.DELETE, wanted.drops)
            # The location ends now; the node deletes the file later.
            nodes, blobs = [row[0] for row in wanted.drops], [row[1] for row in wanted.drops]
            await change.run(DROP, [nodes, blobs])
            for sha256 in blobs:
                change.announce("blob", sha256.hex())
        for request in wanted.requests:
            self._replication.want(request)
        log.info("repair", fetches=len(wanted.fetches), drops=len(wanted.drops))
        return len(wanted.fetches) + len(wanted.drops)

    async def _end_drains(self, readable: Collection[UUID], *, is_quiet: bool) -> bool:
        """Remove drained nodes; return True if no drain is left.

        is_quiet: the walk found nothing to do. A drain that takes an hour is ended; objects lost
        with it are fetched from the origin again.
        """
        leaving = [
            row for row in self._nodes.nodes_including_removed() if row.removed_at is not None
        ]
        if not leaving:
            return True
        row = await self._database.one(FETCHES, [list(readable)])
        is_over = is_quiet and row is not None and not row.are_left
        left = False
        for node in leaving:
            if is_over or node.id not in readable or node.removed_for_s() > DRAIN_LIMIT_S:
                async with self._coherence.transaction(wait_for_acks=False) as change:
                    await node_rows.set_status(change, node.id, "removed", reason="removal")
                log.info("node_removed", node_id=str(node.id))
            else:
                left = True
        await self._nodes.refresh()
        return not left
