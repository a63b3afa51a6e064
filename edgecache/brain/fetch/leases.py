"""Fetch leases: one brain fetches a key, the others wait for what it stores."""

import asyncio
from typing import Final
from uuid import UUID

from edgecache.brain.database import Database
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.directory.index import Name
from edgecache.brain.errors import DatabaseAway

LEASE_S: Final = 10
RENEW_S: Final = 3.0
# A lost announcement delays a waiter by no more than this.
LOOK_S: Final = 1.0

# A lease ends with its time, or with the brain that holds it.
ACQUIRE: Final = (
    "INSERT INTO brain_filllease AS held (bucket_id, key, variant, brain_id, expires_at)"
    " VALUES (%s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s))"
    " ON CONFLICT (bucket_id, key, variant) DO UPDATE SET brain_id = EXCLUDED.brain_id,"
    " expires_at = EXCLUDED.expires_at WHERE held.expires_at < clock_timestamp() OR NOT EXISTS"
    " (SELECT FROM brain_braininstance i WHERE i.id = held.brain_id"
    " AND i.lease_until > clock_timestamp())"
    " RETURNING id"
)
RENEW: Final = (
    "UPDATE brain_filllease SET expires_at = clock_timestamp() + make_interval(secs => %s)"
    " WHERE bucket_id = %s AND key = %s AND variant = %s AND brain_id = %s"
)
RELEASE: Final = (
    "DELETE FROM brain_filllease"
    " WHERE bucket_id = %s AND key = %s AND variant = %s AND brain_id = %s"
)


class Leases:
    """This brain's leases. A single brain takes none."""

    def __init__(self, database: Database, coherence: Coherence, brain_id: UUID) -> None:
        self._database = database
        self._coherence = coherence
        self._brain_id = brain_id
        self._waiting: dict[Name, set[asyncio.Event]] = {}
        coherence.subscribe("fill", self._on_fill)

    async def acquire(self, name: Name) -> "Lease | None":
        """Return the lease, or None when another brain holds it.

        Raises DatabaseAway.
        """
        row = await self._database.one(ACQUIRE, [*name, self._brain_id, LEASE_S])
        return None if row is None else Lease(self, name)

    async def wait(self, name: Name) -> None:
        """Wait until the holder announces the release, for at most a second."""
        event = asyncio.Event()
        self._waiting.setdefault(name, set()).add(event)
        try:
            async with asyncio.timeout(LOOK_S):
                await event.wait()
        except TimeoutError:
            return
        finally:
            waiting = self._waiting[name]
            waiting.discard(event)
            if not waiting:
                del self._waiting[name]

    async def renew(self, name: Name) -> None:
        """Extend the lease.

        Raises DatabaseAway.
        """
        await self._database.run(RENEW, [LEASE_S, *name, self._brain_id])

    async def release(self, name: Name) -> None:
        """End the lease and announce it.

        Raises DatabaseAway; the lease then expires.
        """
        async with self._coherence.change(waits=False) as change:
            await change.run(RELEASE, [*name, self._brain_id])
            change.announce("fill", *name)

    def _on_fill(self, bucket_id: int, key: str, variant: str) -> None:
        for event in self._waiting.get((bucket_id, key, variant), ()):
            event.set()


class Lease:
    """A lease that is renewed while its block runs."""

    def __init__(self, leases: Leases, name: Name) -> None:
        self._leases = leases
        self._name = name
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        """Start renewing."""
        self._task = asyncio.create_task(self._keep())

    async def __aexit__(self, *_exc: object) -> None:
        """Release the lease."""
        if self._task is not None:
            self._task.cancel()
        try:
            await self._leases.release(self._name)
        except DatabaseAway:
            # It expires by itself.
            return

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                await self._leases.renew(self._name)
            except DatabaseAway:
                continue
