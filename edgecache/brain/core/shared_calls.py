"""Calls that concurrent callers share.

A caller joins a call that has not begun yet, never one that is running. So the result is never
older than the caller's request, and a thousand concurrent callers cost two calls.

To make one call for several items, callers add theirs to a collection before they share it, and the
call takes the whole collection when it begins.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.runtime.futures import retrieve

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SharedCalls(Generic[K, T]):
    """Calls by key, one of each at a time."""

    def __init__(self) -> None:
        # Not begun; and the latest of each key, begun or not.
        self._waiting: dict[K, asyncio.Task[T]] = {}
        self._latest: dict[K, asyncio.Task[T]] = {}

    async def share(self, key: K, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what a call returns that begins after this; it continues without its callers.

        Raises what it raises.
        """
        task = self._waiting.get(key)
        if task is None:
            task = asyncio.create_task(self._run(key, call, self._latest.get(key)))
            self._waiting[key] = self._latest[key] = task
            task.add_done_callback(partial(self._done, key))
        # A cancelled caller must not cancel the call for the others.
        return await asyncio.shield(task)

    async def _run(
        self, key: K, call: Callable[[], Coroutine[Any, Any, T]], before: asyncio.Task[T] | None
    ) -> T:
        # A client's own share would delay the others.
        SHARE_KEY.set(SHARE_KEY.get()[:2])
        if before is not None:
            await asyncio.wait({before})
        del self._waiting[key]
        return await call()

    def _done(self, key: K, task: asyncio.Task[T]) -> None:
        if self._latest.get(key) is task:
            del self._latest[key]
        retrieve(task)
