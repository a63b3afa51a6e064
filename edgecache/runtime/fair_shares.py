"""Fair shares of a limited pool.

One rule for all pools: an organization holds at most half of what the others leave, one of its
buckets at most half of that, and one client of the bucket at most half of that. So a pool that one
organization has filled as far as it may serves another one immediately. A request beyond the rule
waits in a short queue, from which organizations are served in turn, then their buckets in turn.

A key names the holder of a permit, the widest level first: (organization, bucket, client).
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
    """A pool of permits, or of bytes, and a queue for them."""

    def __init__(
        self, limit: int, *, refusal: Callable[[], Exception], wait_s: float | None = 0.0
    ) -> None:
        """refusal: the error for the excess. wait_s: the longest wait; None without a limit."""
        self.limit: Final = limit
        self.taken = 0
        self.waiting = 0
        self._refusal = refusal
        self._wait_s = wait_s
        self._held: dict[ShareKey, int] = {}
        self._queue: Waiting[Waiter] = Waiting()

    def held(self, key: ShareKey) -> int:
        """Return what a key holds, with everything below it."""
        return self._held.get(key, 0)

    def try_take(self, key: ShareKey, amount: int = 1) -> bool:
        """Take permits now; False where others need them."""
        part, held = float(self.limit), self.taken
        for level in range(1, len(key) + 1):
            if held + amount > part:
                return False
            above, held = held, self._held.get(key[:level], 0)
            part = _part_below(part, above - held)
        if held + amount > part:
            return False
        self._add(key, amount)
        return True

    def give_back(self, key: ShareKey, amount: int = 1) -> None:
        """Release permits and grant them to waiters."""
        self._add(key, -amount)
        while self.waiting and self._grant():
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
        if self._wait_s == 0 and not has_no_timeout:
            raise self._refusal()
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self._queue.add(key, waiter)
        self.waiting += 1
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

    def _add(self, key: ShareKey, amount: int) -> None:
        self.taken += amount
        for level in range(1, len(key) + 1):
            above = key[:level]
            held = self._held.get(above, 0) + amount
            if held:
                self._held[above] = held
            else:
                self._held.pop(above, None)

    def _drop(self, key: ShareKey, waiter: Waiter) -> None:
        self._queue.remove(key, waiter)
        self.waiting -= 1

    def _grant(self) -> bool:
        """Assign one permit to the first waiter that may have it; False if none may."""
        found = self._next(self._queue, (), self.limit, self.taken)
        if found is None:
            return False
        key, waiter = found
        self._drop(key, waiter)
        self._add(key, 1)
        waiter.set_result(None)
        return True

    def _next(
        self, at: Waiting[Waiter], key: ShareKey, part: float, held: int
    ) -> tuple[ShareKey, Waiter] | None:
        """Return the next waiter of a node whose holder may have ``part`` and has ``held``."""
        if held + 1 > part:
            return None
        for waiter in at.here:
            # A cancelled one leaves the queue as soon as its task runs.
            if not waiter.done():
                return key, waiter
        for step, below in at.below.items():
            own = self._held.get((*key, step), 0)
            found = self._next(below, (*key, step), _part_below(part, held - own), own)
            if found is not None:
                # Move it behind those that have waited longer.
                at.below.move_to_end(step)
                return found
        return None


def _part_below(part: float, others: int) -> float:
    """Return the part of one holder in a level's part, of which others hold some.

    One permit is always possible, so that small pools have a part for each level.
    """
    return max((part - others) / 2, 1)


def _is_granted(waiter: Waiter) -> bool:
    return waiter.done() and not waiter.cancelled()
