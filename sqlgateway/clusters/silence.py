"""Clusters that did not answer in time, so that the next callers do not wait for them as well."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg

# Longest wait for a connection to a tenants' cluster.
CONNECT_TIMEOUT_S: Final = 3
# A failed attempt to connect that took this long was not refused: the host, the network or the
# server is gone. A server that refuses a login slowly has answered.
LATE_S: Final = 1.0
ANSWERED: Final = "FATAL"
# No attempt is made for this long afterwards.
RETRY_S: Final = 2.0
# How often psycopg checks for signals while it waits.
WAKE_S: Final = 0.1

# When the next attempt may be made (time.monotonic()), by the cluster's key.
_RETRY_AT: Final[dict[int, float]] = {}


def is_silent(cluster_id: int) -> bool:
    """True if this process's last attempt to connect to a cluster has just failed late."""
    return _RETRY_AT.get(cluster_id, 0.0) > time.monotonic()


@contextmanager
def attempt(cluster_id: int) -> Iterator[None]:
    """Connect in the block. Raises psycopg.OperationalError if the cluster is silent."""
    if is_silent(cluster_id):
        raise psycopg.OperationalError("the server has just not answered")
    started = time.monotonic()
    if cluster_id in _RETRY_AT:
        # One caller tries again; the others do not wait for that.
        _RETRY_AT[cluster_id] = started + CONNECT_TIMEOUT_S + RETRY_S
    try:
        yield
    except psycopg.Error as exc:
        _RETRY_AT.pop(cluster_id, None)
        if time.monotonic() - started >= LATE_S and ANSWERED not in str(exc):
            _RETRY_AT[cluster_id] = time.monotonic() + RETRY_S
        raise
    _RETRY_AT.pop(cluster_id, None)


class BoundedConnection(psycopg.Connection):
    """A connection that is closed when an answer takes too long; libpq has no limit for that.

    answers_within_s: how long the server may be silent after a query.
    """

    answers_within_s: float

    def wait(self, gen: Any, interval: float = WAKE_S, timeout: float | None = None) -> Any:
        """Wait as psycopg does, but not for longer than ``answers_within_s``.

        Raises psycopg.OperationalError.
        """
        try:
            return super().wait(gen, interval, timeout or self.answers_within_s)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status != psycopg.pq.TransactionStatus.ACTIVE:
                raise
        # The query still runs: the limit has passed.
        self.pgconn.finish()
        raise psycopg.OperationalError(f"no answer for {self.answers_within_s:g} s")
