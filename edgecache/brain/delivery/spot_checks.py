"""Of the reads that need no worker, one in 64 asks one all the same.

So the bytes are checked again and again, and workers learn what is asked for. Of the same bytes ten
a second do for both, however many thousands are read.
"""

import random
import time
from collections.abc import Callable
from typing import Final

SHARE: Final = 1 / 64
APART_S: Final = 0.1
REMEMBERED: Final = 10_000


class Samples:
    """Draws by hash, so that a draw holds for the next delivery of the same bytes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds."""
        self._clock = clock
        self._drawn: set[bytes] = set()
        # When each was a sample last.
        self._last: dict[bytes, float] = {}

    def draw(self, sha256: bytes) -> bool:
        """Draw before there is a delivery; if it is one, the next delivery is the sample."""
        if random.random() >= SHARE:  # noqa: S311 - a sample
            return False
        now = self._clock()
        if now - self._last.get(sha256, -APART_S) < APART_S:
            return False
        if len(self._last) >= REMEMBERED:
            self._last.clear()
            # Those whose delivery never came.
            self._drawn.clear()
        self._last[sha256] = now
        self._drawn.add(sha256)
        return True

    def take(self, sha256: bytes) -> bool:
        """Tell whether a delivery is a sample: it was drawn before, or is now."""
        is_drawn = sha256 in self._drawn or self.draw(sha256)
        if is_drawn:
            self._drawn.discard(sha256)
        return is_drawn
