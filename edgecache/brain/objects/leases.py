"""Fetch leases: one brain fetches a key, the others wait for what it stores.

A lease is valid as long as its brain is (``coherence``), so that a fetch that waits for a slow
origin renews nothing.
"""

import asyncio
import contextlib
from functools import partial
from typing import Final
from uuid import UUID

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.core.values import Name
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase

# Longer than any fetch: a lease ends when it is released, or when its brain ends.
LEASE_S: Final = 7 * 3600
# A lost announcement, or a crashed brain, delays a waiting fetch by this much at most.
POLL_S: Final = 1.0

ACQUIRE: Final = (
    "INSERT INTO brain_filllease AS held (bucket_id, key, variant, brain_id, expires_at)"
    " VALUES (%s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s))"
    " ON CONFLICT (bucket_id, key, variant) DO UPDATE SET brain_id = EXCLUDED.brain_id,"
    " expires_at = EXCLUDED.expires_at WHERE NOT (held.expires_at > clock_timestamp()"
    " AND EXISTS (SELECT FROM brain_braininstance i WHERE i.id = held.brain_id"
    " AND i.lease_until > clock_timestamp()))"
)
RELEASE: Final = (
    "DELETE FROM brain_filllease"
    " WHERE bucket_id = %s AND key = %s AND variant = %s AND brain_id = %s"
)


class Leases:
    """This brain's leases. A single brain takes none."""

    def __init__(self, database: BrainDatabase, coherence: Coherence, brain_id: UUID) -> None:
        self._database = database
        self._coherence = coherence
        self._brain_id = brain_id
        self._waiting: dict[Name, set[asyncio.Event]] = {}
        self._tasks = BackgroundTasks()
        coherence.subscribe("fill", self._on_release)

    async def stop(self) -> None:
        """Stop; leases that could not be released end with this brain."""
        await self._tasks.stop()

    async def acquire(self, name: Name) -> bool:
        """Take the lease; False when another fetch holds it. Raises DatabaseUnavailable."""
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

    async def release(self, name: Name) -> None:
        """End the lease and announce it; if the database is unreachable, in the background."""
        try:
            await self._release(name)
        except DatabaseUnavailable:
            self._tasks.add(self._release_later(name))

    async def _acquire(self, name: Name) -> bool:
        return bool(await self._database.run(ACQUIRE, [*name, self._brain_id, LEASE_S]))

    def _give_up(self, name: Name, acquiring: "asyncio.Task[bool]") -> None:
        """Release the lease of a fetch that was cancelled while it was acquired."""
        if not acquiring.cancelled() and acquiring.exception() is None and acquiring.result():
            self._tasks.add(self.release(name))

    async def _release(self, name: Name) -> None:
        async with self._coherence.transaction(wait_for_acks=False) as change:
            await change.run(RELEASE, [*name, self._brain_id])
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
