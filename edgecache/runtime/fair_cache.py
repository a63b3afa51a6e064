"""A bounded cache that organizations share: the largest user evicts its own values."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# An owner that has been idle for this long loses its values first.
IDLE_S: Final = 600.0


class FairCache(Generic[K, V]):
    """Values by key, each with an owner. limit: of their costs.

    When it is full, the owner with the most loses its least recently used value. So a single owner
    may use all of the cache, several active ones converge to equal parts, and one that needs less
    than its part keeps it. Not thread-safe.
    """

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Hold nothing yet. clock: seconds."""
        self._limit = limit
        self._clock = clock
        self._used = 0
        self._entries: dict[K, _Entry[K, V]] = {}
        self._owners: OrderedDict[Hashable, _Owner[K]] = OrderedDict()
        self._largest: _Owner[K] = _Owner(None, 0.0)

    def __contains__(self, key: K) -> bool:
        """True if there is a value."""
        return key in self._entries

    def get(self, key: K) -> V | None:
        """Return a value and count the use, or None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.held.keys.move_to_end(key)
        entry.held.used_at = self._clock()
        return entry.value

    def put(self, owner: Hashable, key: K, value: V, *, cost: int = 1) -> None:
        """Store a value, evicting others if there is no room."""
        self.pop(key)
        held = self._owners.get(owner)
        if held is None:
            held = self._owners[owner] = _Owner(owner, self._clock())
        self._entries[key] = _Entry(value, cost, held)
        held.keys[key] = None
        held.used_at = self._clock()
        held.cost += cost
        self._used += cost
        if held.cost > self._largest.cost:
            self._largest = held
        while self._used > self._limit:
            self.pop(next(iter(self._victim().keys)))

    def pop(self, key: K) -> V | None:
        """Remove a value and return it, or None."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        held = entry.held
        del held.keys[key]
        held.cost -= entry.cost
        self._used -= entry.cost
        if not held.keys:
            del self._owners[held.owner]
        return entry.value

    def _victim(self) -> "_Owner[K]":
        """Return an idle owner (one is checked at each call), otherwise the largest known one."""
        owner, held = next(iter(self._owners.items()))
        if held.used_at < self._clock() - IDLE_S:
            return held
        self._owners.move_to_end(owner)
        # Only a put makes an owner larger, so the largest stays known until it has lost everything
        # above an equal part. Then the next owner above an equal part replaces it; there is one,
        # and to find the largest of thousands would take a millisecond.
        while self._largest.cost * len(self._owners) <= self._limit:
            owner, self._largest = next(iter(self._owners.items()))
            self._owners.move_to_end(owner)
        return self._largest


class _Owner(Generic[K]):
    """What an owner holds. keys: those not used for the longest time first."""

    __slots__ = ("cost", "keys", "owner", "used_at")

    def __init__(self, owner: Hashable, now: float) -> None:
        self.owner = owner
        self.keys: OrderedDict[K, None] = OrderedDict()
        self.cost = 0
        self.used_at = now


class _Entry(NamedTuple, Generic[K, V]):
    """A value and its owner."""

    value: V
    cost: int
    held: _Owner[K]
