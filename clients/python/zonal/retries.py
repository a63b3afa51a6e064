"""Which requests are sent again, and after how long.

A 429 or 503 with ``Retry-After`` is the platform's word that nothing ran: every request is
repeated. A lost answer says nothing: only a request that may happen twice is repeated. That is
one of an idempotent method, one with an Idempotency-Key, a read-only query, a numbered statement.
"""

import random
from dataclasses import dataclass
from typing import Optional

import httpx

from zonal.errors import ProblemError

IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})
# Nothing ran. Another request of the same key or transaction runs, which may be this one's first
# sending; or a machine was asked that does not own the transaction, and another one is next.
NOT_NOW = frozenset({"idempotency_key_in_use", "transaction_busy", "transaction_elsewhere"})
FIRST_PAUSE_S = 0.25


@dataclass(frozen=True)
class Retries:
    """How often and how long to wait.

    most: repetitions after the first attempt. longest_pause_s: a Retry-After beyond it is not
    waited for; the error is raised with its ``retry_after_s``.
    """

    most: int = 3
    longest_pause_s: float = 30.0

    def pause_after_problem(
        self, problem: ProblemError, *, attempt: int, is_repeatable: bool
    ) -> Optional[float]:
        """Return the seconds to wait, None to raise. attempt: 0 for the first."""
        if attempt >= self.most:
            return None
        if problem.status in {429, 503} and problem.retry_after_s is not None:
            is_platforms = not problem.code.startswith("http_")
            if not is_platforms and not is_repeatable:
                return None
            wait = problem.retry_after_s
            return _spread(wait) if wait <= self.longest_pause_s else None
        if is_repeatable and (problem.status in {502, 503, 504} or problem.code in NOT_NOW):
            return _backoff(attempt)
        return None

    def pause_after_failure(
        self, failure: httpx.TransportError, *, attempt: int, is_repeatable: bool
    ) -> Optional[float]:
        """Return the seconds to wait, None to raise."""
        is_unsent = isinstance(failure, (httpx.ConnectError, httpx.ConnectTimeout))
        if attempt >= self.most or not (is_repeatable or is_unsent):
            return None
        return _backoff(attempt)


def _backoff(attempt: int) -> float:
    return _spread(FIRST_PAUSE_S * 2**attempt)


def _spread(pause_s: float) -> float:
    """Add up to a fifth: clients that were refused together do not come back together."""
    return pause_s * (1 + random.random() / 5)  # noqa: S311 - nothing secret
