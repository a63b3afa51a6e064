"""Requests that a process begins in turn: one organization's at a time, then its clients' in turn.

Everything a process serves runs on one event loop, on which a small request takes some tenths of a
millisecond. Begun as they come, those of an organization with many busy connections would all be
between another's request and its answer.
"""

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final

from edgecache.runtime.fair_shares import ShareKey, Waiting

Begin = Callable[[], None]
Leave = Callable[[], None]

# Requests begun in one event loop iteration: 16 if one organization is active, otherwise 2. After
# several were active, the lower value is kept for SHARED_ITERATIONS iterations.
BEGUN_PER_ITERATION_ALONE: Final = 16
BEGUN_PER_ITERATION: Final = 2
SHARED_ITERATIONS: Final = 100


class LoopTurns:
    """The turns of one event loop, for all servers that run on it."""

    def __init__(self) -> None:
        self._waiting: Waiting[Begin] = Waiting()
        self._begun = 0
        self._last: Hashable = None
        # The iterations for which the loop still counts as shared.
        self._shared = 0

    def take(self, share_key: Callable[[], ShareKey], begin: Begin) -> Leave | None:
        """Begin a request now if the loop is free, otherwise in its turn.

        share_key: returns the queue key, the widest level first; called only if the request has to
        wait.

        Returns a function that removes the request from the queue, None if it has begun.
        """
        if not self._begun:
            self._begin(begin)
            return None
        key = share_key()
        if key[0] != self._last:
            self._last, self._shared = key[0], SHARED_ITERATIONS
        self._waiting.add(key, begin)
        return partial(self._waiting.remove, key, begin)

    def _begin(self, begin: Begin) -> None:
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._next_round)
        self._begun += 1
        begin()

    def _next_round(self) -> None:
        """Begin the next few requests: the loop has polled the network since the last ones."""
        limit = BEGUN_PER_ITERATION if self._shared else BEGUN_PER_ITERATION_ALONE
        self._shared = max(0, self._shared - 1)
        self._begun = 0
        while self._begun < limit and (begin := _pop(self._waiting)) is not None:
            self._begin(begin)


def _pop(waiting: Waiting[Begin]) -> Begin | None:
    """Remove the next in turn and return it; None if nothing waits."""
    if waiting.here:
        return waiting.here.popitem(last=False)[0]
    if not waiting.below:
        return None
    step, below = next(iter(waiting.below.items()))
    following = _pop(below)
    if below.is_empty:
        del waiting.below[step]
    else:
        waiting.below.move_to_end(step)
    return following
