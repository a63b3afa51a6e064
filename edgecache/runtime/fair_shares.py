"""Fair shares of a limited pool: every organization leaves room for others.

A key names the holder of a permit, the widest level first: (organization, bucket, client). Each
holder must leave free ``headroom`` times what all levels of its key hold together. With 1 an
organization gets at most half of the pool, one of its buckets a third, one client of it a quarter,
and the next organization half of the rest. With 4 they get 1/5, 1/9 and 1/13, and only twenty
greedy organizations can reduce the rest to a hundredth. There is no list of organizations, and no
fixed part that would be idle most of the time.
Source: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches".
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)
ShareKey = tuple[Hashable, ...]
Waiter = asyncio.Future[None]


class Waiting(Generic[T]):
    """A node of a tree of waiters.

    here: waiters whose share key ends at this node, in order of arrival.
    below: nodes by the next part of the key.
    """

    __slots__ = ("below", "here")

    def __init__(self) -> None:
        self.below: OrderedDict[Hashable, Waiting[T]] = OrderedDict()
        # A dictionary removes a waiter without a search.
        self.here: OrderedDict[T, None] = OrderedDict()

    @property
    def is_empty(self) -> bool:
        return not self.here and not self.below

    def add(self, key: ShareKey, item: T) -> None:
        """Append a waiter to those of a share key."""
        at = self
        for step in key:
            below = at.below.get(step)
            if below is None:
                below = at.below[step] = Waiting()
            at = below
        at.here[item] = None

    def remove(self, key: ShareKey, item: T) -> None:
        """Remove a waiter, and the nodes that become empty."""
        if not key:
            del self.here[item]
            return
        below = self.below[key[0]]
        below.remove(key[1:], item)
        if below.is_empty:
            del self.below[key[0]]


class Shares:
    """A pool of permits, or of bytes, and a short queue for them.

    Free permits go to the waiting organizations in turn, then to their buckets in turn, and so on.
    """

    def __init__(
        self,
        limit: int,
        *,
        refusal: Callable[[], Exception],
        headroom: float = 1,
        queue: int = 0,
        wait_s: float | None = 0.0,
    ) -> None:
        """refusal: the error for the excess. queue: how many may wait, shared by the same rule.

        wait_s: the longest wait; None without a limit.
        """
        self.limit: Final = limit
        self.taken = 0
        self._refusal = refusal
        self._headroom = headroom
        self._wait_s = wait_s
        self._held: dict[ShareKey, int] = {}
        self._waiting: Waiting[Waiter] = Waiting()
        self._queue = Shares(queue, refusal=refusal, headroom=headroom) if queue else None

    @property
    def waiting(self) -> int:
        return 0 if self._queue is None else self._queue.taken

    def held(self, key: ShareKey) -> int:
        """Return what a key holds, with everything below it."""
        return self._held.get(key, 0)

    def holders(self) -> dict[Hashable, int]:
        """Return what each organization holds: each first level of a key."""
        return {key[0]: held for key, held in self._held.items() if len(key) == 1}

    def try_take(self, key: ShareKey, amount: int = 1) -> bool:
        """Take permits now; False where others need them."""
        wanted = amount
        for level in range(1, len(key) + 1):
            wanted += self._held.get(key[:level], 0)
        if not self._is_fair(wanted, amount):
            return False
        self._add(key, amount)
        return True

    def give_back(self, key: ShareKey, amount: int = 1) -> None:
        """Release permits and grant them to waiters."""
        self._add(key, -amount)
        while self._queue is not None and self._queue.taken and self._grant():
            pass

    def correct(self, key: ShareKey, amount: int) -> None:
        """Set what the last level of a key holds, as counted elsewhere."""
        self._add(key, amount - self._held.get(key, 0))

    async def take(self, key: ShareKey, *, has_no_timeout: bool = False) -> None:
        """Take one permit, in the queue if necessary; a cancelled caller leaves the queue.

        has_no_timeout: wait without a limit. Raises the refusal.
        """
        if self.try_take(key):
            return
        if self._queue is None or not self._queue.try_take(key):
            raise self._refusal()
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(key, waiter)
        try:
            async with asyncio.timeout(None if has_no_timeout else self._wait_s):
                await waiter
        except TimeoutError:
            if not _is_granted(waiter):
                self._drop(key, waiter)
                raise self._refusal() from None
        except asyncio.CancelledError:
            if _is_granted(waiter):
                self.give_back(key)
            else:
                self._drop(key, waiter)
            raise

    @asynccontextmanager
    async def permit(self, key: ShareKey, *, has_no_timeout: bool = False) -> AsyncIterator[None]:
        """Hold one permit while the block runs, taken as ``take`` does. Raises the refusal."""
        await self.take(key, has_no_timeout=has_no_timeout)
        try:
            yield
        finally:
            self.give_back(key)

    def _is_fair(self, wanted: int, amount: int = 1) -> bool:
        """True if an amount fits, and ``headroom`` times what its holder would hold stays free.

        A holder of nothing may always take one free permit.
        """
        free = self.limit - self.taken
        return max(self._headroom * wanted, amount) <= free or wanted == 1 <= free

    def _add(self, key: ShareKey, amount: int) -> None:
        self.taken += amount
        for level in range(1, len(key) + 1):
            above = key[:level]
            held = self._held.get(above, 0) + amount
            if held:
                self._held[above] = held
            else:
                self._held.pop(above, None)

    # --- the queue --------------------------------------------------------------------------

    def _drop(self, key: ShareKey, waiter: Waiter) -> None:
        self._waiting.remove(key, waiter)
        if self._queue is not None:
            self._queue.give_back(key)

    def _grant(self) -> bool:
        """Assign one permit to the first waiter that may have it; False if none may."""
        found = self._next(self._waiting, (), 1)
        if found is None:
            return False
        key, waiter = found
        self._drop(key, waiter)
        self._add(key, 1)
        waiter.set_result(None)
        return True

    def _next(
        self, at: Waiting[Waiter], key: ShareKey, wanted: int
    ) -> tuple[ShareKey, Waiter] | None:
        wanted += self._held.get(key, 0) if key else 0
        if not self._is_fair(wanted):
            return None
        for waiter in at.here:
            # A cancelled one leaves the queue as soon as its task runs.
            if not waiter.done():
                return key, waiter
        for step, below in at.below.items():
            found = self._next(below, (*key, step), wanted)
            if found is not None:
                # Move it behind those that have waited longer.
                at.below.move_to_end(step)
                return found
        return None


def _is_granted(waiter: Waiter) -> bool:
    return waiter.done() and not waiter.cancelled()
