"""Fair shares of a limited pool: what one organization takes, the others can still get.

A path names who takes a place, the widest first: (organization, bucket, client). The rule is that
``spare`` times as much as all levels of a path hold together is left free for others. With 1 an
organization gets at most half of the pool, one of its buckets a third, one client of it a quarter,
and the next organization half of the rest; with 4 they get 1/5, 1/9 and 1/13, and it takes twenty
greedy organizations to leave a hundredth. There is no list of organizations, and no fixed part that
would be idle most of the time.
Source: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches".
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)
Path = tuple[Hashable, ...]
Turn = asyncio.Future[None]


class Waiting(Generic[T]):
    """Those who wait: for one path, or by the next step of it."""

    __slots__ = ("below", "here")

    def __init__(self) -> None:
        self.below: OrderedDict[Hashable, Waiting[T]] = OrderedDict()
        # In their order. A deque would search for the one that leaves.
        self.here: OrderedDict[T, None] = OrderedDict()

    @property
    def is_empty(self) -> bool:
        """True if nobody waits here."""
        return not self.here and not self.below

    def add(self, path: Path, item: T) -> None:
        """Append one to those who wait for a path."""
        at = self
        for step in path:
            below = at.below.get(step)
            if below is None:
                below = at.below[step] = Waiting()
            at = below
        at.here[item] = None

    def remove(self, path: Path, item: T) -> None:
        """Remove one, and the steps on which nobody waits any more."""
        if not path:
            del self.here[item]
            return
        below = self.below[path[0]]
        below.remove(path[1:], item)
        if below.is_empty:
            del self.below[path[0]]


class Shares:
    """A pool of places, or of bytes, and a short queue for them.

    Free places go to the waiting organizations in turn, then to their buckets in turn, and so on.
    """

    def __init__(
        self,
        limit: int,
        *,
        refusal: Callable[[], Exception],
        spare: float = 1,
        queue: int = 0,
        wait_s: float | None = 0.0,
    ) -> None:
        """refusal: the error for the excess. queue: places to wait in, shared by the same rule.

        wait_s: the longest wait; None without a limit.
        """
        self.limit: Final = limit
        self.taken = 0
        self._refusal = refusal
        self._spare = spare
        self._wait_s = wait_s
        self._held: dict[Path, int] = {}
        self._waiting: Waiting[Turn] = Waiting()
        self._queue = Shares(queue, refusal=refusal, spare=spare) if queue else None

    @property
    def waiting(self) -> int:
        """Return how many wait."""
        return 0 if self._queue is None else self._queue.taken

    def held(self, path: Path) -> int:
        """Return what a path holds, with everything below it."""
        return self._held.get(path, 0)

    def holders(self) -> dict[Hashable, int]:
        """Return what each organization holds: each first level of a path."""
        return {path[0]: held for path, held in self._held.items() if len(path) == 1}

    def try_take(self, path: Path, amount: int = 1) -> bool:
        """Take places now; False where others need them."""
        wanted = amount
        for level in range(1, len(path) + 1):
            wanted += self._held.get(path[:level], 0)
        if not self._is_fair(wanted, amount):
            return False
        self._add(path, amount)
        return True

    def give_back(self, path: Path, amount: int = 1) -> None:
        """Release places; those who wait get them."""
        self._add(path, -amount)
        while self._queue is not None and self._queue.taken and self._grant():
            pass

    def correct(self, path: Path, amount: int) -> None:
        """Note what the last level of a path holds, as something else has counted it."""
        self._add(path, amount - self._held.get(path, 0))

    async def take(self, path: Path, *, is_patient: bool = False) -> None:
        """Take one place, in the queue if necessary; a cancelled caller leaves the queue.

        is_patient: wait without a limit. Raises the refusal.
        """
        if self.try_take(path):
            return
        if self._queue is None or not self._queue.try_take(path):
            raise self._refusal()
        turn: Turn = asyncio.get_running_loop().create_future()
        self._waiting.add(path, turn)
        try:
            async with asyncio.timeout(None if is_patient else self._wait_s):
                await turn
        except TimeoutError:
            if not _is_granted(turn):
                self._drop(path, turn)
                raise self._refusal() from None
        except asyncio.CancelledError:
            if _is_granted(turn):
                self.give_back(path)
            else:
                self._drop(path, turn)
            raise

    @asynccontextmanager
    async def place(self, path: Path, *, is_patient: bool = False) -> AsyncIterator[None]:
        """Hold one place while the block runs, taken as ``take`` does. Raises the refusal."""
        await self.take(path, is_patient=is_patient)
        try:
            yield
        finally:
            self.give_back(path)

    def _is_fair(self, wanted: int, amount: int = 1) -> bool:
        free = self.limit - self.taken
        return max(self._spare * wanted, amount) <= free or wanted == 1 <= free

    def _add(self, path: Path, amount: int) -> None:
        self.taken += amount
        for level in range(1, len(path) + 1):
            above = path[:level]
            held = self._held.get(above, 0) + amount
            if held:
                self._held[above] = held
            else:
                self._held.pop(above, None)

    # --- the queue --------------------------------------------------------------------------

    def _drop(self, path: Path, turn: Turn) -> None:
        self._waiting.remove(path, turn)
        if self._queue is not None:
            self._queue.give_back(path)

    def _grant(self) -> bool:
        """Assign one place to the first turn that may have it; False if there is none."""
        found = self._next(self._waiting, (), 1)
        if found is None:
            return False
        path, turn = found
        self._drop(path, turn)
        self._add(path, 1)
        turn.set_result(None)
        return True

    def _next(self, at: Waiting[Turn], path: Path, wanted: int) -> tuple[Path, Turn] | None:
        wanted += self._held.get(path, 0) if path else 0
        if not self._is_fair(wanted):
            return None
        for turn in at.here:
            # A cancelled one leaves the queue as soon as its task runs.
            if not turn.done():
                return path, turn
        for step, below in at.below.items():
            found = self._next(below, (*path, step), wanted)
            if found is not None:
                # It goes behind those that have waited longer for their turn.
                at.below.move_to_end(step)
                return found
        return None


def _is_granted(turn: Turn) -> bool:
    return turn.done() and not turn.cancelled()
