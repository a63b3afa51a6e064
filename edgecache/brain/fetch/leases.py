"""Fetch leases: one brain fetches a key, the others wait for what it stores.

A lease is valid as long as its brain is (``coherence``), so that a fetch that waits for a slow
origin renews nothing. And one statement a second looks for all waiters of a brain together, however
many they are.
"""

import asyncio
from typing import Final
from uuid import UUID

from edgecache.brain.background import BackgroundTasks
from edgecache.brain.database import Database
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.directory.index import Name
from edgecache.brain.errors import DatabaseUnavailable

# Longer than a fetch may last: it ends with its release, or with its brain.
LEASE_S: Final = 7 * 3600
# A lost announcement, or a brain that died, delays a waiter by no more than this.
LOOK_S: Final = 1.0

LIVES: Final = (
    "held.expires_at > clock_timestamp() AND EXISTS (SELECT FROM brain_braininstance i"
    " WHERE i.id = held.brain_id AND i.lease_until > clock_timestamp())"
)
ACQUIRE: Final = (
    "INSERT INTO brain_filllease AS held (bucket_id, key, variant, brain_id, expires_at)"  # noqa: S608 - constants
    " VALUES (%s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s))"
    " ON CONFLICT (bucket_id, key, variant) DO UPDATE SET brain_id = EXCLUDED.brain_id,"
    f" expires_at = EXCLUDED.expires_at WHERE NOT ({LIVES}) RETURNING id"
)
RELEASE: Final = (
    "DELETE FROM brain_filllease"
    " WHERE bucket_id = %s AND key = %s AND variant = %s AND brain_id = %s"
)
HELD: Final = (
    "SELECT held.bucket_id, held.key, held.variant FROM brain_filllease held"  # noqa: S608 - constants
    " JOIN unnest(%s::bigint[], %s::text[], %s::text[]) AS wanted (bucket_id, key, variant)"
    f" USING (bucket_id, key, variant) WHERE {LIVES}"
)


class Leases:
    """This brain's leases. A single brain takes none."""

    def __init__(self, database: Database, coherence: Coherence, brain_id: UUID) -> None:
        self._database = database
        self._coherence = coherence
        self._brain_id = brain_id
        self._waiting: dict[Name, set[asyncio.Event]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._releasing = BackgroundTasks()
        coherence.subscribe("fill", self._on_fill)

    async def stop(self) -> None:
        """Stop looking; leases that could not be released end with this brain."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._releasing.stop()

    async def acquire(self, name: Name) -> "Lease | None":
        """Return the lease, or None when another brain holds it.

        Raises DatabaseUnavailable.
        """
        row = await self._database.one(ACQUIRE, [*name, self._brain_id, LEASE_S])
        return None if row is None else Lease(self, name)

    async def wait(self, name: Name) -> None:
        """Wait until the lease is free, or was a moment ago."""
        event = asyncio.Event()
        self._waiting.setdefault(name, set()).add(event)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            await event.wait()
        finally:
            waiting = self._waiting[name]
            waiting.discard(event)
            if not waiting:
                del self._waiting[name]

    async def release(self, name: Name) -> None:
        """End the lease and announce it; while the database is away, try again behind."""
        try:
            await self._release(name)
        except DatabaseUnavailable:
            self._releasing.add(self._release_later(name))

    async def _release(self, name: Name) -> None:
        async with self._coherence.change(waits=False) as change:
            await change.run(RELEASE, [*name, self._brain_id])
            change.announce("fill", *name)

    async def _release_later(self, name: Name) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                return await self._release(name)
            except DatabaseUnavailable:
                continue

    async def _look(self) -> None:
        """Wake those whose lease is free, until none waits."""
        while True:
            await asyncio.sleep(LOOK_S)
            names = list(self._waiting)
            if not names:
                self._looking = None
                return
            try:
                rows = await self._database.all(
                    HELD, [list(each) for each in zip(*names, strict=True)]
                )
            except DatabaseUnavailable:
                # Those who wait find out by themselves what they can do without it.
                rows = []
            held = {(row.bucket_id, row.key, row.variant) for row in rows}
            for name in names:
                if name not in held:
                    self._on_fill(*name)

    def _on_fill(self, bucket_id: int, key: str, variant: str) -> None:
        for event in self._waiting.get((bucket_id, key, variant), ()):
            event.set()


class Lease:
    """A lease that is held while its block runs."""

    def __init__(self, leases: Leases, name: Name) -> None:
        self._leases = leases
        self._name = name

    async def __aenter__(self) -> None:
        """Hold it."""

    async def __aexit__(self, *_exc: object) -> None:
        """Release it."""
        await self._leases.release(self._name)
