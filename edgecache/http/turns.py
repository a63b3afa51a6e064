"""Requests that a process begins in turn: one organization's at a time, then its clients' in turn.

Everything a process serves runs on one event loop, on which a small request takes some tenths of a
millisecond. Begun as they come, those of an organization with many busy connections would all be
between another's request and its answer.
"""

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final

from edgecache.http.shares import ShareKey, Waiting

Begin = Callable[[], None]
Leave = Callable[[], None]

# Begun between two looks at the network. Where one organization alone has requests, many: a look
# costs it throughput. Once another has some, few, and for so many looks more: what comes next waits
# for those that have begun.
AT_ONCE_ALONE: Final = 16
AT_ONCE: Final = 2
SHARED_LOOKS: Final = 100


class LoopTurns:
    """The turns of one event loop, for all servers that run on it."""

    def __init__(self) -> None:
        self._waiting: Waiting[Begin] = Waiting()
        self._begun = 0
        self._last: Hashable = None
        # The looks at the network for which the loop still counts as shared.
        self._shared = 0

    def take(self, share_key: Callable[[], ShareKey], begin: Begin) -> Leave | None:
        """Begin a request: now if the loop is free, else in its turn.

        share_key: whose turn it is, the widest first; called only if the request has to wait. Then
        a function is returned by which it leaves the queue.
        """
        if not self._begun:
            self._begin(begin)
            return None
        key = share_key()
        if key[0] != self._last:
            self._last, self._shared = key[0], SHARED_LOOKS
        self._waiting.add(key, begin)
        return partial(self._waiting.remove, key, begin)

    def _begin(self, begin: Begin) -> None:
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._next_round)
        self._begun += 1
        begin()

    def _next_round(self) -> None:
        """Begin the next few: the loop has looked at the network since the last ones."""
        limit = AT_ONCE if self._shared else AT_ONCE_ALONE
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
