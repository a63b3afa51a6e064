"""The ceiling of results in flight: how many large ones a process holds at once.

A request that holds little costs nothing here. One that comes to hold more takes a whole share of
ZSQL_RESULTS_BYTES, all that a request may hold, once: so no request waits for a second part while
holding a first. While none is free the request reads no further, which the server feels as a full
socket; that is cheaper than to refuse it.
"""

import os
import threading
import time
from typing import Final

from django.conf import settings

from sqlgateway.errors import SqlBusy

# What any request may hold, in libpq or in its answer.
SMALL_BYTES: Final = 2**20


class LargeResults:
    """Shares of the ceiling."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._taken = 0

    def take(self, until: float) -> None:
        """Take a share, waiting for one up to this moment (time.monotonic).

        Raises SqlBusy.
        """
        shares = max(1, settings.SQL.results_bytes // settings.SQL.request_bytes)
        with self._condition:
            if not self._condition.wait_for(
                lambda: self._taken < shares, max(0.0, until - time.monotonic())
            ):
                raise SqlBusy("Too many large results at once.")
            self._taken += 1

    def give_back(self) -> None:
        """Return a share."""
        with self._condition:
            self._taken -= 1
            self._condition.notify()


class LargeResult:
    """What one request holds; ``release`` it at its end."""

    def __init__(self, shares: LargeResults, deadline: float) -> None:
        self._shares = shares
        self._deadline = deadline
        self._has_share = False

    def hold(self, size_bytes: int) -> None:
        """Take a share if so many bytes need one.

        Raises SqlBusy if none becomes free in ZSQL_QUEUE_WAIT_MS, or before the deadline.
        """
        if size_bytes <= SMALL_BYTES or self._has_share:
            return
        waits_until = time.monotonic() + settings.SQL.queue_wait_ms / 1000
        self._shares.take(min(waits_until, self._deadline))
        self._has_share = True

    def release(self) -> None:
        """Return the share, if one was taken."""
        if self._has_share:
            self._has_share = False
            self._shares.give_back()


LARGE_RESULTS: Final = LargeResults()


def _after_fork() -> None:
    LARGE_RESULTS.__init__()  # type: ignore[misc]  # a child holds none of its parent's results


os.register_at_fork(after_in_child=_after_fork)
