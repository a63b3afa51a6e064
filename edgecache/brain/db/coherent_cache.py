"""Rows in memory, as long as no brain changes one of them; concurrent readers share a look-up."""

from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, Generic, TypeVar

from edgecache.brain.core.shared_calls import SharedCalls
from edgecache.brain.db.coherence import Coherence
from edgecache.runtime.bounded_cache import BoundedCache

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_ENTRIES: Final = 10_000


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
        self._known: BoundedCache[K, V] = BoundedCache(MAX_ENTRIES)
        # The rows that are announced during each read that runs, by the read.
        self._reads: dict[object, set[Hashable]] = {}
        self._loads: SharedCalls[K, V | None] = SharedCalls()
        coherence.subscribe(topic, self._forget)
        coherence.on_loss(self._forget_all)

    def known(self, key: K) -> V | None:
        """Return a value if it is in memory, and that is current."""
        return self._known.get(key) if self._coherence.is_current else None

    async def get(self, key: K, load: Callable[[], Coroutine[Any, Any, V | None]]) -> V | None:
        """Return a value; None if ``load`` returns None, which is not remembered.

        load: reads the value from the database. Raises what it raises.
        """
        known = self.known(key)
        if known is not None:
            return known
        return await self._loads.share(key, lambda: self._load(key, load))

    async def _load(self, key: K, load: Callable[[], Coroutine[Any, Any, V | None]]) -> V | None:
        # What was read while announcements could be missed may be outdated.
        may_keep = self._coherence.is_current
        read = object()
        changed = self._reads[read] = set()
        try:
            value = await load()
        finally:
            # A loss removes it.
            may_keep = self._reads.pop(read, None) is not None and may_keep
        may_keep = may_keep and self._coherence.is_current
        if value is not None and may_keep and self._row_of(value) not in changed:
            self._known.put(key, value)
        return value

    def _forget(self, row: Hashable = None) -> None:
        # Rows change rarely: a walk over all values takes a millisecond.
        for key in self._known.names():
            value = self._known.peek(key)
            if value is not None and self._row_of(value) == row:
                self._known.pop(key)
        for rows in self._reads.values():
            rows.add(row)
        # Later callers need not wait for what was read before.
        self._loads = SharedCalls()

    def _forget_all(self) -> None:
        self._known.clear()
        self._reads.clear()
        self._loads = SharedCalls()
