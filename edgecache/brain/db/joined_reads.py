"""Reads of the database that callers share, without announcements of outdated values.

A caller joins a read that has not begun yet, never one that is running. So the result is never
older than the call, and a thousand concurrent callers cost two reads.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from edgecache.runtime.futures import retrieve

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class JoinedReads(Generic[K, V]):
    """Reads by key, one of each at a time."""

    def __init__(self) -> None:
        # Not begun; and the latest of each key, begun or not.
        self._waiting: dict[K, asyncio.Task[V]] = {}
        self._latest: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, read: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Return what a read returns that begins after this call. Raises what it raises."""
        task = self._waiting.get(key)
        if task is None:
            task = asyncio.create_task(self._read(key, read, self._latest.get(key)))
            self._waiting[key] = self._latest[key] = task
            task.add_done_callback(partial(self._done, key))
        # A cancelled caller must not cancel the read for the others.
        return await asyncio.shield(task)

    async def _read(
        self, key: K, read: Callable[[], Coroutine[Any, Any, V]], before: asyncio.Task[V] | None
    ) -> V:
        if before is not None:
            await asyncio.wait({before})
        del self._waiting[key]
        return await read()

    def _done(self, key: K, task: asyncio.Task[V]) -> None:
        if self._latest.get(key) is task:
            del self._latest[key]
        retrieve(task)
