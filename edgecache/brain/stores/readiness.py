"""Whether the next request would find the database and the store."""

import asyncio
from contextlib import suppress
from typing import Final

from edgecache.brain.core.errors import BrainError, StoreMissing
from edgecache.brain.core.share_key import use_share_of_platform
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.stores.object_store import ObjectStore
from edgecache.brain.stores.reachable_stores import Stores

# Checked again after this time, however many ask.
FRESH_S: Final = 1.0
# How long a caller waits for a check; less where the last one failed.
WAIT_S: Final = 1.0
WAIT_AFTER_FAILURE_S: Final = 0.25
# Below it is nothing in a store.
PROBE: Final = "readiness"


class Readiness:
    """What is missing: ``database``, ``store``, ``ending`` (SIGTERM), or "" for nothing."""

    def __init__(self, database: BrainDatabase, stores: Stores) -> None:
        self._database = database
        self._stores = stores
        self._checking: asyncio.Task[str] | None = None
        self._began_at = 0.0
        self._asking = self._last = ""
        self._is_ending = False

    def end(self) -> None:
        """Note that this process ends."""
        self._is_ending = True

    async def missing(self) -> str:
        """Return what is missing, after a second at most: what does not answer is missing."""
        if self._is_ending:
            return "ending"
        now = asyncio.get_running_loop().time()
        task = self._checking
        if task is None or (task.done() and now - self._began_at >= FRESH_S):
            task = self._checking = asyncio.create_task(self._check())
            self._began_at = now
        wait_s = WAIT_AFTER_FAILURE_S if self._last else WAIT_S
        if not task.done():
            await asyncio.wait({task}, timeout=max(0.0, self._began_at + wait_s - now))
        self._last = task.result() if task.done() else self._asking
        return self._last

    async def _check(self) -> str:
        use_share_of_platform()
        try:
            self._asking = "database"
            await self._database.one("SELECT 1")
            self._asking = "store"
            await self._ask_store()
        except BrainError:
            return self._asking
        return ""

    async def _ask_store(self) -> None:
        """Raises StoreUnavailable."""
        with self._stores.open_write() as target:
            if isinstance(target.store, ObjectStore):
                # A question about one object does not tell a bucket that is gone.
                async for _ in target.store.list(PROBE):
                    return
            else:
                with suppress(StoreMissing):
                    await target.store.size(PROBE)
