"""One place in a pool that several clients wait for; the first quota that allows it is charged."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from edgecache.runtime.futures import retrieve
from edgecache.runtime.shares import ShareKey, Shares


class SharedPlace:
    """A place in a pool that several clients share, in the quota of one of them."""

    def __init__(self) -> None:
        self._waiting: dict[ShareKey, asyncio.Task[None]] = {}
        self._granted: asyncio.Future[tuple[Shares, ShareKey]] = (
            asyncio.get_running_loop().create_future()
        )
        # The place may not be needed any more.
        self._granted.add_done_callback(retrieve)

    def wait(self, shares: Shares, key: ShareKey) -> None:
        """Wait in one more quota, unless it is waited for already."""
        if key in self._waiting or self._granted.done():
            return
        if shares.try_take(key):
            self._granted.set_result((shares, key))
        else:
            self._waiting[key] = asyncio.create_task(self._wait(shares, key))

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold the place while the block runs. Raises the refusal of the last share."""
        try:
            shares, key = await asyncio.shield(self._granted)
        except asyncio.CancelledError:
            # Prevent a later grant; return a place that was granted.
            if not self._granted.cancel() and self._granted.exception() is None:
                granted_by, granted_to = self._granted.result()
                granted_by.give_back(granted_to)
            raise
        finally:
            for task in self._waiting.values():
                task.cancel()
        try:
            yield
        finally:
            shares.give_back(key)

    async def _wait(self, shares: Shares, key: ShareKey) -> None:
        try:
            await shares.take(key)
        except Exception as exc:  # noqa: BLE001 - the fetch raises it
            del self._waiting[key]
            if not self._waiting and not self._granted.done():
                self._granted.set_exception(exc)
            return
        if self._granted.done():
            shares.give_back(key)
        else:
            self._granted.set_result((shares, key))
