"""Rows in memory, as long as no brain changes one of them; concurrent readers share a look-up."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Final, Generic, TypeVar

from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.joined_reads import JoinedReads
from edgecache.runtime.futures import retrieve

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Beyond these the cache is emptied.
MAX_ENTRIES: Final = 10_000


class _Invalidations:
    """What was announced during a read. everything: announcements may have been missed."""

    __slots__ = ("everything", "rows")

    def __init__(self) -> None:
        self.rows: set[Hashable] = set()
        self.everything = False


class CoherentCache(Generic[K, V]):
    """Values by key. An announcement of the topic names the row whose value is forgotten.

    An announcement without a row is for the row None: a value that depends on all rows. A lost
    connection empties the cache.
    """

    def __init__(
        self, coherence: Coherence, topic: str, *, row_of: Callable[[V], Hashable]
    ) -> None:
        """row_of: the row's id, as announcements name it."""
        self._coherence = coherence
        self._row_of = row_of
        self._known: dict[K, V] = {}
        # The keys under which a row's value is known.
        self._keys: dict[Hashable, set[K]] = {}
        # What is announced during each read that runs.
        self._reads: set[_Invalidations] = set()
        self._loading: dict[K, asyncio.Task[V | None]] = {}
        self._joined: JoinedReads[K, V | None] = JoinedReads()
        coherence.subscribe(topic, self._forget)
        coherence.on_loss(self._forget_all)

    def known(self, key: K) -> V | None:
        """Return a value if it is in memory, and that is current."""
        return self._known.get(key) if self._coherence.is_current else None

    async def get(self, key: K, load: Callable[[], Coroutine[Any, Any, V | None]]) -> V | None:
        """Return a value; None if ``load`` returns None, which is not remembered.

        load: reads the value from the database. Raises what it raises.
        """
        if not self._coherence.is_current:
            # A running read may be outdated, and no announcement would say so.
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
        changed = _Invalidations()
        self._reads.add(changed)
        try:
            value = await load()
        finally:
            self._reads.discard(changed)
        if value is not None and self._coherence.is_current:
            row = self._row_of(value)
            if not changed.everything and row not in changed.rows:
                self._keep(key, row, value)
        return value

    def _keep(self, key: K, row: Hashable, value: V) -> None:
        if len(self._known) >= MAX_ENTRIES:
            self._known.clear()
            self._keys.clear()
        if key in self._known:
            # It may belong to another row: a bucket was deleted and another one created with its
            # name.
            self._keys[self._row_of(self._known[key])].discard(key)
        self._known[key] = value
        self._keys.setdefault(row, set()).add(key)

    def _loaded(self, key: K, loading: asyncio.Task[V | None]) -> None:
        if self._loading.get(key) is loading:
            del self._loading[key]
        retrieve(loading)

    def _forget(self, row: Hashable = None) -> None:
        for key in self._keys.pop(row, ()):
            self._known.pop(key, None)
        for read in self._reads:
            read.rows.add(row)
        # Later callers must not get what was read before.
        self._loading.clear()

    def _forget_all(self) -> None:
        self._known.clear()
        self._keys.clear()
        for read in self._reads:
            read.everything = True
        self._loading.clear()
