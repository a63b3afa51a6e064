"""Caches in memory: a bounded one, and a memo of results by the identity of their argument.

The bounded cache evicts entries that were not used recently, by the CLOCK algorithm: a hit marks an
entry, and a marked entry is spared once at eviction. A linked list, as an exact LRU needs, would
cost each entry more than a hundred bytes, and a walk over a million of them would block the event
loop for a second.
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Concatenate, Final, Generic, ParamSpec, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
A = TypeVar("A")
P = ParamSpec("P")
M = TypeVar("M")

# Names of removed entries stay in the queue until there are this many.
STALE_NAMES = 10_000

# Beyond these the memo is emptied.
MAX_MEMO_ENTRIES: Final = 1024


class BoundedCache(Generic[K, V]):
    """Values by key. limit: of their costs. cost: of one entry; the same each time it is asked."""

    __slots__ = ("_cost", "_limit", "_marked", "_queue", "_values", "used")

    def __init__(self, limit: int, cost: Callable[[K, V], int]) -> None:
        self._limit = limit
        self._cost = cost
        self.used = 0
        self._values: dict[K, V] = {}
        self._queue: deque[K] = deque()
        self._marked: set[K] = set()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return a value and mark it as used."""
        value = self._values.get(key)
        if value is not None:
            self._marked.add(key)
        return value

    def peek(self, key: K) -> V | None:
        """Return a value without marking it."""
        return self._values.get(key)

    def put(self, key: K, value: V) -> list[K]:
        """Store a value; return the evicted keys."""
        self.pop(key)
        self._values[key] = value
        self._queue.append(key)
        self.used += self._cost(key, value)
        return self._make_room()

    def pop(self, key: K) -> V | None:
        value = self._values.pop(key, None)
        if value is not None:
            self.used -= self._cost(key, value)
            self._marked.discard(key)
            if len(self._queue) > 2 * len(self._values) + STALE_NAMES:
                self._queue = deque(self._values)
        return value

    def names(self) -> list[K]:
        return list(self._values)

    def clear(self) -> None:
        self._values.clear()
        self._queue.clear()
        self._marked.clear()
        self.used = 0

    def _make_room(self) -> list[K]:
        gone: list[K] = []
        while self.used > self._limit and self._queue:
            key = self._queue.popleft()
            if key in self._marked:
                self._marked.discard(key)
                self._queue.append(key)
            elif self.pop(key) is not None:
                gone.append(key)
        return gone


class Memo(Generic[A, P, M]):
    """Remembers a function's results for immutable values without a hash, or with a slow one."""

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[Concatenate[A, P], M]) -> None:
        """make: returns an equal result for the same value; results are never modified."""
        self._make = make
        self._known: dict[int, tuple[A, M]] = {}

    def __call__(self, value: A, *args: P.args, **kwargs: P.kwargs) -> M:
        """Return the value's result; the other arguments follow from the value."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        made = self._make(value, *args, **kwargs)
        if len(self._known) >= MAX_MEMO_ENTRIES:
            self._known.clear()
        # The value is kept as well, so that no other one can get its identity.
        self._known[id(value)] = (value, made)
        return made
