"""Limit the number of large results that a process buffers.

A request that buffers more than SMALL_BYTES takes one share of ZSQL_RESULTS_BYTES, which is enough
for any request. It never takes a second one, so requests cannot deadlock. While no share is free,
it stops reading, and TCP slows the server down.

A streamed result holds its share while its client reads. So for each share that an organization
holds, RESERVE shares must be free before it gets another one.
"""

import threading
import time
from typing import Final

from django.conf import settings

from common.fair_limiter import FairLimiter
from sqlgateway.errors import SqlBusy
from sqlgateway.run import admission

# Every request may buffer this much, in libpq or in its answer, without a share.
SMALL_BYTES: Final = 2**20
# Shares that must be free for each share that an organization holds, if it is to get another one.
RESERVE: Final = 3


class LargeResults:
    """Shares of ZSQL_RESULTS_BYTES."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._shares = FairLimiter(0, reserve=RESERVE)

    @property
    def taken(self) -> int:
        """The number of shares in use."""
        return self._shares.taken

    def take(self, organization_id: int | None, until: float) -> None:
        """Take a share, waiting until ``until`` (time.monotonic()). Raises SqlBusy."""
        with self._condition:
            self._shares.limit = max(1, settings.SQL.results_bytes // settings.SQL.request_bytes)
            if not self._condition.wait_for(
                lambda: self._shares.try_take(organization_id), max(0.0, until - time.monotonic())
            ):
                raise SqlBusy("Too many large results at once.")

    def give_back(self, organization_id: int | None) -> None:
        """Return a share."""
        with self._condition:
            self._shares.give_back(organization_id)
            # All waiting requests check: not every organization may take the share.
            self._condition.notify_all()


class LargeResult:
    """The share of one request; the caller must ``release`` it at the end."""

    def __init__(
        self, shares: LargeResults, deadline: float, *, organization_id: int | None
    ) -> None:
        self._shares = shares
        self._organization_id = organization_id
        self._deadline = deadline
        self._has_share = False

    def hold(self, size_bytes: int) -> None:
        """Take a share if this many bytes need one and the request does not have it yet.

        Raises SqlBusy if no share becomes free within QUEUE_WAIT_S, or before the deadline.
        """
        if size_bytes <= SMALL_BYTES or self._has_share:
            return
        waits_until = time.monotonic() + admission.QUEUE_WAIT_S
        self._shares.take(self._organization_id, min(waits_until, self._deadline))
        self._has_share = True

    def release(self) -> None:
        """Return the share, if one was taken."""
        if self._has_share:
            self._has_share = False
            self._shares.give_back(self._organization_id)


LARGE_RESULTS: Final = LargeResults()
