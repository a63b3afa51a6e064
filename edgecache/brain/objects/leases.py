"""Fetch leases: one brain fetches a key, the others wait for what it stores.

A lease is valid as long as its brain is (``coherence``), so that a fetch that waits for a slow
origin renews nothing. Leases of a bucket that are wanted together are taken with one statement, and
one query a second checks all names that a brain waits for.
"""

import asyncio
from functools import partial
from typing import Final
from uuid import UUID

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.core.values import Name
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.db.grouped_calls import GroupedCalls

# Longer than any fetch: a lease ends when it is released, or when its brain ends.
LEASE_S: Final = 7 * 3600
# A lost announcement, or a crashed brain, delays a waiting fetch by this much at most.
POLL_S: Final = 1.0

LIVES: Final = (
    "held.expires_at > clock_timestamp() AND EXISTS (SELECT FROM brain_braininstance i"
    " WHERE i.id = held.brain_id AND i.lease_until > clock_timestamp())"
)
# Ordered by name, because concurrent inserts of the same name wait for each other.
ACQUIRE: Final = (
    "INSERT INTO brain_filllease AS held (bucket_id, key, variant, brain_id, expires_at)"  # noqa: S608 - constants
    " SELECT bucket_id, key, variant, %s, clock_timestamp() + make_interval(secs => %s)"
    " FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS wanted (bucket_id, key, variant)"
    " ORDER BY bucket_id, key, variant"
    " ON CONFLICT (bucket_id, key, variant) DO UPDATE SET brain_id = EXCLUDED.brain_id,"
    f" expires_at = EXCLUDED.expires_at WHERE NOT ({LIVES}) RETURNING bucket_id, key, variant"
)
# In the same order as other brains acquire them.
RELEASE: Final = (
    "DELETE FROM brain_filllease WHERE id IN (SELECT held.id FROM brain_filllease held"
    " JOIN unnest(%s::bigint[], %s::text[], %s::text[]) AS done (bucket_id, key, variant)"
    " USING (bucket_id, key, variant) WHERE held.brain_id = %s"
    " ORDER BY bucket_id, key, variant FOR UPDATE OF held)"
)
HELD: Final = (
    "SELECT held.bucket_id, held.key, held.variant FROM brain_filllease held"  # noqa: S608 - constants
    " JOIN unnest(%s::bigint[], %s::text[], %s::text[]) AS wanted (bucket_id, key, variant)"
    f" USING (bucket_id, key, variant) WHERE {LIVES}"
)


class Leases:
    """This brain's leases. A single brain takes none."""

    def __init__(self, database: BrainDatabase, coherence: Coherence, brain_id: UUID) -> None:
        self._database = database
        self._coherence = coherence
        self._brain_id = brain_id
        self._acquiring: GroupedCalls[Name, bool] = GroupedCalls(self._acquire)
        # A lease is for one fetch, also among those of this brain that want it together.
        self._wanted: set[Name] = set()
        self._ended: GroupedCalls[Name, bool] = GroupedCalls(self._release)
        self._waiting: dict[Name, set[asyncio.Event]] = {}
        self._poll_task: asyncio.Task[None] | None = None
        self._releasing = BackgroundTasks()
        coherence.subscribe("fill", self._on_release)

    async def stop(self) -> None:
        """Stop polling; leases that could not be released end with this brain."""
        if self._poll_task is not None:
            self._poll_task.cancel()
            await asyncio.gather(self._poll_task, return_exceptions=True)
        await self._releasing.stop()

    async def acquire(self, name: Name) -> bool:
        """Take the lease; False when another fetch holds it, or is about to.

        Raises DatabaseUnavailable.
        """
        if name in self._wanted:
            return False
        self._wanted.add(name)
        acquiring = asyncio.create_task(self._acquiring.get(name))
        acquiring.add_done_callback(lambda _: self._wanted.discard(name))
        try:
            return bool(await asyncio.shield(acquiring))
        except asyncio.CancelledError:
            acquiring.add_done_callback(partial(self._give_up, name))
            raise

    async def wait(self, name: Name) -> None:
        """Wait until the lease is released. Another fetch may already hold it again."""
        event = asyncio.Event()
        self._waiting.setdefault(name, set()).add(event)
        if self._poll_task is None:
            self._poll_task = asyncio.create_task(self._poll())
        try:
            await event.wait()
        finally:
            waiting = self._waiting[name]
            waiting.discard(event)
            if not waiting:
                del self._waiting[name]

    async def release(self, name: Name) -> None:
        """End the lease and announce it.

        If the database is unreachable, retry in the background.
        """
        try:
            await self._ended.get(name)
        except DatabaseUnavailable:
            self._releasing.add(self._release_later(name))

    async def _acquire(self, names: list[Name]) -> dict[Name, bool]:
        rows = await self._database.all(ACQUIRE, [self._brain_id, LEASE_S, *_columns(names)])
        return {(row.bucket_id, row.key, row.variant): True for row in rows}

    def _give_up(self, name: Name, acquiring: "asyncio.Task[bool | None]") -> None:
        """Release the lease of a fetch that was cancelled while it was acquired."""
        if not acquiring.cancelled() and acquiring.exception() is None and acquiring.result():
            self._releasing.add(self.release(name))

    async def _release(self, names: list[Name]) -> dict[Name, bool]:
        async with self._coherence.transaction(wait_for_acks=False) as change:
            await change.run(RELEASE, [*_columns(names), self._brain_id])
            for name in names:
                change.announce("fill", *name)
        return {}

    async def _release_later(self, name: Name) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            try:
                await self._ended.get(name)
            except DatabaseUnavailable:
                continue
            return

    async def _poll(self) -> None:
        """Wake waiting fetches whose lease is free, until none waits."""
        while True:
            await asyncio.sleep(POLL_S)
            names = list(self._waiting)
            if not names:
                self._poll_task = None
                return
            try:
                rows = await self._database.all(HELD, _columns(names))
            except DatabaseUnavailable:
                # Each waiting fetch then decides what to do without the lease.
                rows = []
            held = {(row.bucket_id, row.key, row.variant) for row in rows}
            for name in names:
                if name not in held:
                    self._on_release(*name)

    def _on_release(self, bucket_id: int, key: str, variant: str) -> None:
        for event in self._waiting.get((bucket_id, key, variant), ()):
            event.set()


def _columns(names: list[Name]) -> list[list[int | str]]:
    return [list(each) for each in zip(*names, strict=True)]
