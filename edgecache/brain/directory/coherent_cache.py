"""Rows in memory, as long as no brain changes one of them; concurrent readers share a look-up."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Final, Generic, TypeVar

from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.directory.joined_reads import JoinedReads

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Beyond these the memory is emptied.
KEPT: Final = 10_000


class CoherentCache(Generic[K, V]):
    """Values by key. An announcement of the topic, or a lost connection, empties it."""

    def __init__(self, coherence: Coherence, topic: str) -> None:
        self._coherence = coherence
        self._known: dict[K, V] = {}
        self._loading: dict[K, asyncio.Task[V | None]] = {}
        self._joined: JoinedReads[K, V | None] = JoinedReads()
        self._changes = 0
        coherence.subscribe(topic, self._forget)
        coherence.on_loss(self._forget)

    def known(self, key: K) -> V | None:
        """Return a value if it is in memory, and that is current."""
        return self._known.get(key) if self._coherence.is_current else None

    async def get(self, key: K, load: Callable[[], Coroutine[Any, Any, V | None]]) -> V | None:
        """Return a value; None, which is not remembered, where there is none.

        load: reads it from the database. Raises what it raises.
        """
        if not self._coherence.is_current:
            # A read that has begun may be outdated, and no announcement would say so.
            return await self._joined.get(key, load)
        known = self._known.get(key)
        if known is not None:
            return known
        loading = self._loading.get(key)
        if loading is None:
            loading = self._loading[key] = asyncio.create_task(self._load(key, load))
            loading.add_done_callback(partial(self._loaded, key))
        # A cancelled caller must not cancel the read for the others.
        return await asyncio.shield(loading)

    async def _load(self, key: K, load: Callable[[], Coroutine[Any, Any, V | None]]) -> V | None:
        changes = self._changes
        value = await load()
        if value is not None and self._coherence.is_current and changes == self._changes:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[key] = value
        return value

    def _loaded(self, key: K, loading: asyncio.Task[V | None]) -> None:
        if self._loading.get(key) is loading:
            del self._loading[key]
        if not loading.cancelled():
            # Retrieve the exception, so that asyncio does not report it as never retrieved.
            loading.exception()

    def _forget(self, *_announced: object) -> None:
        self._changes += 1
        self._known.clear()
        # Later callers must not get what was read before.
        self._loading.clear()
