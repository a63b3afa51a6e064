"""One place in a pool for which several wait: whichever of them gets it first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from edgecache.http.futures import retrieve
from edgecache.http.shares import Path, Shares


class SharedPlace:
    """A place that is taken for all who want the same, in the share of one of them."""

    def __init__(self) -> None:
        self._waiting: dict[Path, asyncio.Task[None]] = {}
        self._granted: asyncio.Future[tuple[Shares, Path]] = (
            asyncio.get_running_loop().create_future()
        )
        # Even if no place is wanted any more.
        self._granted.add_done_callback(retrieve)

    def wait(self, shares: Shares, path: Path) -> None:
        """Wait in one more share, unless that is the case already."""
        if path in self._waiting or self._granted.done():
            return
        if shares.try_take(path):
            self._granted.set_result((shares, path))
        else:
            self._waiting[path] = asyncio.create_task(self._wait(shares, path))

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold the place while the block runs. Raises the refusal of the last share."""
        try:
            shares, path = await asyncio.shield(self._granted)
        except asyncio.CancelledError:
            # None may be granted any more, and one that was is not wanted.
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
            shares.give_back(path)

    async def _wait(self, shares: Shares, path: Path) -> None:
        try:
            await shares.take(path)
        except Exception as exc:  # noqa: BLE001 - the fetch raises it
            del self._waiting[path]
            if not self._waiting and not self._granted.done():
                self._granted.set_exception(exc)
            return
        if self._granted.done():
            shares.give_back(path)
        else:
            self._granted.set_result((shares, path))
