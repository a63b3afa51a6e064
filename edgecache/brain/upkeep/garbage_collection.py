"""Garbage collection: unreferenced blobs, purges and writes of crashed brains, old records.

Every brain collects; skipped row locks and one advisory lock keep them apart.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import structlog

from edgecache.brain.core.background import PeriodicTask, wait_for_wakeup
from edgecache.brain.core.errors import NoSuchBucket
from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory.commits import noting
from edgecache.brain.directory.purges import PendingPurge, PurgeCount, Purges
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.nodes import node_jobs
from edgecache.brain.objects import upload_rows
from edgecache.brain.objects.origin_writes import OriginWrites
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.reachable_stores import Stores
from edgecache.brain.stores.upload_parts_limit import count_local_parts
from edgecache.brain.upkeep.eviction import evict, sweep
from edgecache.brain.upkeep.expired_responses import forget_excess, forget_expired
from edgecache.brain.upkeep.store_collection import StoreCollector
from edgecache.protocol.jobs import JobKind

log = structlog.get_logger(__name__)

EVERY_S: Final = 5.0
SWEEP_EVERY_S: Final = 3600.0
TRIM_EVERY_S: Final = 600.0
# Of the CDN, for each organization: clients that invent URLs must not fill the database.
MAX_RESPONSES: Final = 1_000_000
STEP_RELEASES: Final = 10
STEP_TIMEOUT_S: Final = 30.0

# ANY(ARRAY(…)) is computed once. In a plan that computes IN (…) for each row, the limit is of each.
TAKE: Final = (
    "DELETE FROM brain_release WHERE id = ANY(ARRAY"
    "(SELECT id FROM brain_release ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)) RETURNING blobs"
)
# Locked first and read by other statements: these see references made before the lock, and new
# references wait until the blobs are deleted.
LOCK: Final = "SELECT sha256 FROM brain_blob WHERE sha256 = ANY(%s) FOR UPDATE SKIP LOCKED"
# Blobs that others have locked are tried again, if they still exist.
PUT_BACK: Final = noting("SELECT sha256 FROM brain_blob WHERE sha256 = ANY(%s)")
NAMED: Final = (
    "SELECT sha256,"
    " EXISTS (SELECT FROM brain_cachedobject c WHERE c.blob_id = sha256) AS is_cached,"
    " EXISTS (SELECT FROM brain_storedobject s WHERE s.blob_id = sha256)"
    " OR EXISTS (SELECT FROM brain_noncurrentversion v WHERE v.blob_id = sha256) AS is_stored"
    " FROM unnest(%s::bytea[]) sha256"
)
UNDONE: Final = (
    "SELECT p.id, p.bucket_id, p.generation, p.pattern, p.tags FROM brain_purgerecord p"
    " WHERE NOT p.is_done AND p.id <> ALL(%s) AND (p.brain_id = %s OR NOT EXISTS"
    " (SELECT FROM brain_braininstance i WHERE i.id = p.brain_id"
    " AND i.lease_until > clock_timestamp() - interval '10 seconds'))"
)
LOOSE: Final = (
    "SELECT w.write_id, w.bucket_id, array_agg(w.key ORDER BY w.key) AS keys"
    " FROM brain_pendingwrite w WHERE w.write_id <> ALL(%s) AND (w.brain_id = %s OR NOT EXISTS"
    " (SELECT FROM brain_braininstance i WHERE i.id = w.brain_id"
    " AND i.lease_until > clock_timestamp() - interval '10 seconds'))"
    " GROUP BY w.write_id, w.bucket_id"
)
# Fetches that began before them have ended.
OLD_RECORDS: Final = (
    "DELETE FROM brain_purgerecord WHERE id IN (SELECT id FROM brain_purgerecord"
    " WHERE created_at < now() - interval '1 day' AND is_done LIMIT 10000)"
)
OLD_LEASES: Final = "DELETE FROM brain_filllease WHERE expires_at < now() - interval '1 hour'"


class GarbageCollector(PeriodicTask):
    """This brain's garbage collection; what it leaves another brain finds."""

    def __init__(
        self,
        database: BrainDatabase,
        coherence: Coherence,
        data_directory: DataDirectory,
        purges: Purges,
        writes: OriginWrites,
        stores: Stores,
    ) -> None:
        self._database = database
        self.stores = StoreCollector(database, stores)
        self._coherence = coherence
        self._data_directory = data_directory
        self._purges = purges
        self._writes = writes
        self._wakeup = asyncio.Event()
        # The first round comes immediately.
        self._wakeup.set()
        super().__init__(
            "garbage collection", self.round, lambda: wait_for_wakeup(self._wakeup, EVERY_S)
        )
        self._sweep_at = self._trim_at = 0.0
        coherence.subscribe("released", self._wakeup.set)

    async def round(self) -> None:
        """Run all steps once. Raises DatabaseUnavailable."""
        await self._finish_purges()
        await self._settle_writes()
        is_more = True
        while is_more:
            is_more = await self._collect()
        await self._database.run(OLD_RECORDS)
        await self._database.run(OLD_LEASES)
        await self.stores.round()
        await self.count_parts()
        await evict(self._data_directory, self._held)
        if time.monotonic() > self._trim_at:
            self._trim_at = time.monotonic() + TRIM_EVERY_S
            await forget_excess(self._coherence, MAX_RESPONSES)
        if time.monotonic() > self._sweep_at:
            self._sweep_at = time.monotonic() + SWEEP_EVERY_S
            await upload_rows.remove_expired(self._database)
            await forget_expired(self._coherence)
            await sweep(self._data_directory, self._database)

    async def count_parts(self) -> None:
        """Count the parts of uploads in the data directory. Raises DatabaseUnavailable."""
        await count_local_parts(self._database, self._data_directory)

    async def _finish_purges(self) -> None:
        rows = await self._database.all(
            UNDONE, [list(self._purges.active), self._coherence.brain_id]
        )
        for row in rows:
            log.info("purge_finished_for_another", bucket_id=row.bucket_id)
            await self._purges.delete_hidden(PendingPurge(*row), PurgeCount())

    async def _settle_writes(self) -> None:
        rows = await self._database.all(
            LOOSE, [list(self._writes.active), self._coherence.brain_id]
        )
        # A write may have begun while the query waited.
        for row in (row for row in rows if row.write_id not in self._writes.active):
            log.info("write_settled_for_another", bucket_id=row.bucket_id, keys=len(row.keys))
            try:
                await self._writes.settle(row.write_id, row.bucket_id, row.keys)
            except NoSuchBucket:
                continue

    async def _collect(self) -> bool:
        """Collect one step; True if there is more."""
        async with self._coherence.transaction(
            wait_for_acks=False, timeout_s=STEP_TIMEOUT_S
        ) as change:
            rows = await change.all(TAKE, [STEP_RELEASES])
            if not rows:
                return False
            released = {sha256 for row in rows for sha256 in row.blobs}
            locked = [row.sha256 for row in await change.all(LOCK, [list(released)])]
            if busy := released.difference(locked):
                await change.run(PUT_BACK, [list(busy)])
            named = await change.all(NAMED, [locked])
            await self._free_nodes(change, [row.sha256 for row in named if not row.is_cached])
            gone = [row.sha256 for row in named if not row.is_cached and not row.is_stored]
            await stored_blobs.drop_unneeded(change, locked)
            # While the rows are locked no new reference can be made.
            await change.run("DELETE FROM brain_blob WHERE sha256 = ANY(%s)", [gone])
        # A copy that is written again meanwhile may be lost.
        await self._data_directory.remove_copies(gone)
        return len(rows) == STEP_RELEASES

    async def _free_nodes(self, change: AnnouncingTransaction, blobs: Sequence[bytes]) -> None:
        freed = await change.all(
            "DELETE FROM brain_location WHERE blob_id = ANY(%s) RETURNING node_id, blob_id",
            [list(blobs)],
        )
        await node_jobs.add(change, JobKind.DELETE, [(row.node_id, row.blob_id) for row in freed])
        for sha256 in {row.blob_id for row in freed}:
            change.announce("blob", sha256.hex())

    async def _held(self, blobs: Sequence[bytes]) -> set[bytes]:
        """Return those of some blobs that nodes hold. Raises DatabaseUnavailable."""
        rows = await self._database.all(
            "SELECT DISTINCT blob_id FROM brain_location WHERE blob_id = ANY(%s)", [list(blobs)]
        )
        return {row.blob_id for row in rows}
