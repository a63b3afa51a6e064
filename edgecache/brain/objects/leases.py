"""Fetch leases: one brain fetches a key, the others wait for what it stores.

A lease is valid as long as its brain is (``coherence``), so that a fetch that waits for a slow
origin renews nothing. Leases of a bucket that are wanted together are taken with one statement. The
transaction that stores the response ends its lease.
"""

import asyncio
import contextlib
from functools import partial
from typing import Final
from uuid import UUID

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.core.shared_calls import SharedCalls
from edgecache.brain.core.values import Name
from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase

# Longer than any fetch: a lease ends when it is released, or when its brain ends.
LEASE_S: Final = 7 * 3600
# A lost announcement, or a crashed brain, delays a waiting fetch by this much at most.
POLL_S: Final = 1.0

ACQUIRE: Final = (
    "INSERT INTO brain_filllease AS held (bucket_id, key, variant, brain_id, expires_at)"
    " SELECT bucket_id, key, variant, %s, clock_timestamp() + make_interval(secs => %s)"
    " FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS wanted (bucket_id, key, variant)"
    " ON CONFLICT (bucket_id, key, variant) DO UPDATE SET brain_id = EXCLUDED.brain_id,"
    " expires_at = EXCLUDED.expires_at WHERE NOT (held.expires_at > clock_timestamp()"
    " AND EXISTS (SELECT FROM brain_braininstance i WHERE i.id = held.brain_id"
    " AND i.lease_until > clock_timestamp())) RETURNING bucket_id, key, variant,"
    " nextval('brain_generation') AS generation"
)
# In the same order as other brains acquire them.
RELEASE: Final = (
    "DELETE FROM brain_filllease WHERE id IN (SELECT held.id FROM brain_filllease held"
    " JOIN unnest(%s::bigint[], %s::text[], %s::text[]) AS done (bucket_id, key, variant)"
    " USING (bucket_id, key, variant) WHERE held.brain_id = %s"
    " ORDER BY bucket_id, key, variant FOR UPDATE OF held)"
)


class Leases:
    """This brain's leases. A single brain takes none."""

    def __init__(self, database: BrainDatabase, coherence: Coherence, brain_id: UUID) -> None:
        self._database = database
        self._coherence = coherence
        self._brain_id = brain_id
        self._waiting: dict[Name, set[asyncio.Event]] = {}
        # By bucket, what waits for a statement.
        self._wanted: dict[int, set[Name]] = {}
        self._acquiring: SharedCalls[int, dict[Name, int]] = SharedCalls()
        self._ended: dict[int, set[Name]] = {}
        self._releasing: SharedCalls[int, None] = SharedCalls()
        self._tasks = BackgroundTasks()
        coherence.subscribe("fill", self._on_release)

    async def stop(self) -> None:
        """Stop; leases that could not be released end with this brain."""
        await self._tasks.stop()

    async def acquire(self, name: Name) -> int | None:
        """Take the lease, and return a generation above all earlier ones.

        None when another fetch holds it, or is about to. Raises DatabaseUnavailable.
        """
        acquiring = self._tasks.add(self._acquire(name), has_caller=True)
        try:
            return await asyncio.shield(acquiring)
        except asyncio.CancelledError:
            acquiring.add_done_callback(partial(self._give_up, name))
            raise

    async def wait(self, name: Name) -> None:
        """Wait until the lease may be free. Another fetch may already hold it again."""
        event = asyncio.Event()
        self._waiting.setdefault(name, set()).add(event)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await event.wait()
        finally:
            waiting = self._waiting[name]
            waiting.discard(event)
            if not waiting:
                del self._waiting[name]

    async def release_in(self, change: AnnouncingTransaction, name: Name) -> None:
        """End the lease with a transaction, of which this must be the last statement."""
        await self._release_names(change, {name})

    async def release(self, name: Name) -> None:
        """End the lease and announce it; if the database is unreachable, in the background."""
        try:
            await self._release(name)
        except DatabaseUnavailable:
            self._tasks.add(self._release_later(name))

    async def _acquire(self, name: Name) -> int | None:
        wanted = self._wanted.setdefault(name[0], set())
        if name in wanted:
            return None
        wanted.add(name)
        taken = await self._acquiring.share(name[0], lambda: self._acquire_all(name[0]))
        return taken.get(name)

    async def _acquire_all(self, bucket_id: int) -> dict[Name, int]:
        names = self._wanted.pop(bucket_id)
        rows = await self._database.all(ACQUIRE, [self._brain_id, LEASE_S, *_columns(names)])
        return {(row.bucket_id, row.key, row.variant): row.generation for row in rows}

    def _give_up(self, name: Name, acquiring: "asyncio.Task[int | None]") -> None:
        """Release the lease of a fetch that was cancelled while it was acquired."""
        if acquiring.cancelled() or acquiring.exception() is not None:
            return
        if acquiring.result() is not None:
            self._tasks.add(self.release(name))

    async def _release(self, name: Name) -> None:
        self._ended.setdefault(name[0], set()).add(name)
        await self._releasing.share(name[0], lambda: self._release_all(name[0]))

    async def _release_all(self, bucket_id: int) -> None:
        names = self._ended.pop(bucket_id)
        async with self._coherence.transaction(wait_for_acks=False) as change:
            await self._release_names(change, names)

    async def _release_names(self, change: AnnouncingTransaction, names: set[Name]) -> None:
        await change.run(RELEASE, [*_columns(names), self._brain_id])
        for name in names:
            change.announce("fill", *name)

    async def _release_later(self, name: Name) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            with contextlib.suppress(DatabaseUnavailable):
                await self._release(name)
                return

    def _on_release(self, bucket_id: int, key: str, variant: str) -> None:
        for event in self._waiting.get((bucket_id, key, variant), ()):
            event.set()


def _columns(names: set[Name]) -> list[list[int | str]]:
    # In order, because concurrent inserts of the same name wait for each other.
    return [list(each) for each in zip(*sorted(names), strict=True)]
