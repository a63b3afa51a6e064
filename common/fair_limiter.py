"""A fair limit on shared resources: a single holder cannot use up the pool."""

import threading
from collections.abc import Hashable


class FairLimiter:
    """A pool of slots or bytes; a holder's share is limited by what remains free.

    A holder gets an amount if ``reserve`` times its new holding is at most what is free. With
    reserve 1 the first holder can get half of the pool and the next one half of the rest; with
    reserve 3 a quarter, and so on. A holder without anything gets its first amount while there is
    any, so it is only kept out after many holders have filled the pool. edgecache/runtime/shares.py
    has the same rule for several levels of holders, in asyncio.
    Source: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
    switches".
    """

    def __init__(self, limit: int, *, reserve: int = 1) -> None:
        self.limit = limit
        self.taken = 0
        self._reserve = reserve
        self._amounts: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    def try_take(self, key: Hashable | None, amount: int = 1) -> bool:
        """Take an amount; False if it is reserved for others. key: None for no share's limit."""
        with self._lock:
            free, own = self.limit - self.taken, self._amounts.get(key, 0)
            is_fair = key is None or not own or self._reserve * (own + amount) <= free
            if amount > free or not is_fair:
                return False
            self._take(key, amount)
            return True

    def take(self, key: Hashable, amount: int = 1) -> None:
        """Take an amount that the same holder has just returned."""
        with self._lock:
            self._take(key, amount)

    def give_back(self, key: Hashable | None, amount: int = 1) -> None:
        """Return an amount."""
        with self._lock:
            self.taken -= amount
            self._amounts[key] -= amount
            if not self._amounts[key]:
                del self._amounts[key]

    def _take(self, key: Hashable | None, amount: int) -> None:
        self.taken += amount
        self._amounts[key] = self._amounts.get(key, 0) + amount
