"""Threads for blocking work, shared fairly by organizations.

Work that is too short for a thread takes turns on the event loop instead.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from edgecache.runtime.fair_shares import ShareKey, Shares

T = TypeVar("T")


class FairThreads:
    """Some threads, and a queue for them, in fair shares."""

    def __init__(self, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._shares = Shares(count, refusal=TimeoutError, wait_s=None)
        self._on_loop = Shares(1, refusal=TimeoutError, wait_s=None)

    def begin(self, share_key: ShareKey, work: Callable[[], T]) -> asyncio.Future[T]:
        """Begin some work, now or in its turn; return a future of its result.

        Started work continues when the result is no longer wanted.
        """
        begun = self.try_begin(share_key, work)
        return asyncio.ensure_future(self._wait(share_key, work)) if begun is None else begun

    def try_begin(self, share_key: ShareKey, work: Callable[[], T]) -> asyncio.Future[T] | None:
        """Begin some work now; None if it would have to wait."""
        return self._start(share_key, work) if self._shares.try_take(share_key) else None

    async def run(self, share_key: ShareKey, work: Callable[[], T]) -> T:
        """Return what some work returns; a cancelled caller leaves the queue."""
        await self._shares.take(share_key)
        return await self._start(share_key, work)

    async def owned(
        self, share_key: ShareKey, work: Callable[[], T], close: Callable[[T], object]
    ) -> T:
        """Return what some work opens; if the caller is cancelled before that, close it.

        Raises as ``run`` does.
        """
        opening = self.begin(share_key, work)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(partial(_close, close))
            raise

    @asynccontextmanager
    async def on_loop(self, share_key: ShareKey) -> AsyncIterator[None]:
        """Hold the turn on the event loop while the block runs, for some tenths of a millisecond.

        The next block begins after everything else that is ready, so that a hundred of them delay a
        short request by two of them.
        """
        await self._on_loop.take(share_key)
        try:
            yield
        finally:
            asyncio.get_running_loop().call_soon(self._on_loop.give_back, share_key)

    def stop(self, *, waits: bool = False) -> None:
        """Begin nothing new. waits: for all that has a thread, or its turn to get one."""
        self._pool.shutdown(wait=waits, cancel_futures=not waits)

    async def _wait(self, share_key: ShareKey, work: Callable[[], T]) -> T:
        await self._shares.take(share_key)
        return await asyncio.shield(self._start(share_key, work))

    def _start(self, share_key: ShareKey, work: Callable[[], T]) -> asyncio.Future[T]:
        try:
            running = asyncio.get_running_loop().run_in_executor(self._pool, work)
        except BaseException:
            self._shares.give_back(share_key)
            raise
        running.add_done_callback(lambda _: self._shares.give_back(share_key))
        return running


def _close(close: Callable[[T], object], opening: asyncio.Future[T]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        close(opening.result())
