"""The bounded cache, and a memo of results by the identity of their argument.

It evicts entries that were not used recently, by the CLOCK algorithm: a use marks an entry, and a
marked entry is spared once at eviction. A linked list, as an exact LRU needs, would cost each entry
more than a hundred bytes, and a walk over a million of them would block the event loop for a
second.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from typing import Concatenate, Final, Generic, ParamSpec, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
A = TypeVar("A")
P = ParamSpec("P")
M = TypeVar("M")

# An owner that has been idle for this long loses its entries first.
IDLE_S: Final = 600.0
# Names of removed entries stay in an owner's queue until there are this many.
STALE_NAMES = 10_000
MAX_MEMO_ENTRIES: Final = 1024


def _one(_key: object, _value: object) -> int:
    return 1


class BoundedCache(Generic[K, V]):
    """Values by key. Not thread-safe.

    Where entries have owners and the cache is full, the owner with the most loses an entry. So a
    single owner may use all of the cache, several active ones converge to equal parts, and one that
    needs less than its part keeps it.
    """

    __slots__ = (
        "_clock",
        "_cost",
        "_largest",
        "_limit",
        "_marked",
        "_owner_of",
        "_owners",
        "_values",
        "used",
    )

    def __init__(
        self,
        limit: int,
        cost: Callable[[K, V], int] = _one,
        *,
        owner_of: Callable[[K, V], Hashable] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """limit: of all costs. cost, owner_of: of an entry; the same each time. clock: seconds."""
        self._limit = limit
        self._cost = cost
        self._owner_of = owner_of
        self._clock = clock
        self._largest: _Owner[K] = _Owner(None)
        self.clear()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def get(self, key: K) -> V | None:
        """Return a value and mark it as used."""
        value = self._values.get(key)
        if value is not None:
            self._marked.add(key)
            if self._owner_of is not None:
                self._owners[self._owner_of(key, value)].used_at = self._clock()
        return value

    def peek(self, key: K) -> V | None:
        """Return a value without marking it."""
        return self._values.get(key)

    def put(self, key: K, value: V) -> list[K]:
        """Store a value; return the evicted keys."""
        self.pop(key)
        name = self._name_of(key, value)
        owner = self._owners.get(name)
        if owner is None:
            owner = self._owners[name] = _Owner(name)
        cost = self._cost(key, value)
        self._values[key] = value
        owner.queue.append(key)
        owner.count += 1
        owner.cost += cost
        owner.used_at = self._clock()
        self.used += cost
        if owner.cost > self._largest.cost:
            self._largest = owner
        return self._make_room()

    def pop(self, key: K) -> V | None:
        value = self._values.pop(key, None)
        if value is None:
            return None
        name, cost = self._name_of(key, value), self._cost(key, value)
        owner = self._owners[name]
        owner.count -= 1
        owner.cost -= cost
        self.used -= cost
        self._marked.discard(key)
        if not owner.count:
            del self._owners[name]
        elif len(owner.queue) > 2 * owner.count + STALE_NAMES:
            owner.queue = deque(self._values if self._owner_of is None else self._keys_of(name))
        return value

    def names(self) -> list[K]:
        return list(self._values)

    def clear(self) -> None:
        self.used = 0
        self._values: dict[K, V] = {}
        self._marked: set[K] = set()
        self._owners: OrderedDict[Hashable, _Owner[K]] = OrderedDict()

    def _name_of(self, key: K, value: V) -> Hashable:
        return None if self._owner_of is None else self._owner_of(key, value)

    def _keys_of(self, name: Hashable) -> Iterator[K]:
        return (key for key, value in self._values.items() if self._name_of(key, value) == name)

    def _make_room(self) -> list[K]:
        gone: list[K] = []
        while self.used > self._limit:
            owner = self._victim()
            key = owner.queue.popleft()
            value = self._values.get(key)
            if value is None or self._name_of(key, value) != owner.name:
                continue
            if key in self._marked:
                self._marked.discard(key)
                owner.queue.append(key)
            else:
                self.pop(key)
                gone.append(key)
        return gone

    def _victim(self) -> "_Owner[K]":
        """Return an idle owner (one is checked at each call), otherwise the largest known one."""
        name, owner = next(iter(self._owners.items()))
        if len(self._owners) == 1 or owner.used_at < self._clock() - IDLE_S:
            return owner
        self._owners.move_to_end(name)
        # Only a put makes an owner larger, so the largest stays known until it has lost everything
        # above an equal part. Then the next owner above an equal part replaces it; there is one,
        # and to find the largest of thousands would take a millisecond.
        while self._largest.cost * len(self._owners) <= self._limit:
            name, self._largest = next(iter(self._owners.items()))
            self._owners.move_to_end(name)
        return self._largest


class _Owner(Generic[K]):
    """What an owner has. queue: its keys, and stale ones; those not used for the longest first."""

    __slots__ = ("cost", "count", "name", "queue", "used_at")

    def __init__(self, name: Hashable) -> None:
        self.name = name
        self.queue: deque[K] = deque()
        self.count = 0
        self.cost = 0
        self.used_at = 0.0


class Memo(Generic[A, P, M]):
    """Remembers a function's results for immutable values without a hash, or with a slow one."""

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[Concatenate[A, P], M]) -> None:
        """make: returns an equal result for the same value; results are never modified."""
        self._make = make
        self._known: BoundedCache[int, tuple[A, M]] = BoundedCache(MAX_MEMO_ENTRIES)

    def __call__(self, value: A, *args: P.args, **kwargs: P.kwargs) -> M:
        """Return the value's result; the other arguments follow from the value."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        made = self._make(value, *args, **kwargs)
        # The value is kept as well, so that no other one can get its identity.
        self._known.put(id(value), (value, made))
        return made
