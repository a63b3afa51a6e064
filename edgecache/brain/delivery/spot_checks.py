"""Spot checks: one in 64 of the reads that need no worker is served by a worker.

They keep checking the workers' bytes, and tell workers what is read often. One blob is checked at
most ten times a second.
"""

import random
import time
from collections.abc import Callable
from typing import Final

SHARE: Final = 1 / 64
INTERVAL_S: Final = 0.1
MAX_CHECK_TIMES: Final = 10_000


class SpotChecks:
    """Chooses reads at random, each blob at most once in INTERVAL_S."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds."""
        self._clock = clock
        self._checked_at: dict[bytes, float] = {}

    def is_due(self, sha256: bytes) -> bool:
        """True if this read of a blob is a spot check."""
        if random.random() >= SHARE:  # noqa: S311 - a sample
            return False
        now = self._clock()
        if now - self._checked_at.get(sha256, -INTERVAL_S) < INTERVAL_S:
            return False
        if len(self._checked_at) >= MAX_CHECK_TIMES:
            self._checked_at.clear()
        self._checked_at[sha256] = now
        return True
