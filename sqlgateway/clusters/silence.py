"""Clusters that did not answer in time, so that the next callers do not wait for them as well."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg

# Longest wait for a connection to a tenants' cluster.
CONNECT_TIMEOUT_S: Final = 3
# After a failed attempt, another one is made when this time has passed.
RETRY_S: Final = 1.0
# How often psycopg checks for signals while it waits.
WAKE_S: Final = 0.1


class ClusterSilent(psycopg.errors.ConnectionTimeout):
    """The cluster has just not answered; no attempt was made."""


class SilentClusters:
    """The clusters of which this process's last attempt to connect timed out.

    A refused connection is an answer, for which no caller waits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # When the next attempt may be made (time.monotonic()), by the cluster's key.
        self._retry_at: dict[int, float] = {}

    def __contains__(self, cluster_id: int) -> bool:
        return cluster_id in self._retry_at

    def refuses(self, cluster_id: int) -> bool:
        """True if an attempt would be refused now."""
        return self._retry_at.get(cluster_id, 0.0) > time.monotonic()

    @contextmanager
    def attempt(self, cluster_id: int) -> Iterator[None]:
        """Connect in the block; how that ends says whether the cluster is silent.

        Raises ClusterSilent while it is, but for one caller at a time.
        """
        self._begin(cluster_id)
        try:
            yield
        except psycopg.errors.ConnectionTimeout:
            self._retry_at[cluster_id] = time.monotonic() + RETRY_S
            raise
        except psycopg.Error:
            self._retry_at.pop(cluster_id, None)
            raise
        self._retry_at.pop(cluster_id, None)

    def _begin(self, cluster_id: int) -> None:
        with self._lock:
            retry_at = self._retry_at.get(cluster_id)
            if retry_at is None:
                return
            now = time.monotonic()
            if now < retry_at:
                raise ClusterSilent("The server does not answer.")
            # Others are refused until this attempt has ended.
            self._retry_at[cluster_id] = now + CONNECT_TIMEOUT_S + RETRY_S


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


SILENT_CLUSTERS: Final = SilentClusters()


def _after_fork() -> None:
    SILENT_CLUSTERS.__init__()  # type: ignore[misc]  # another thread may have held the lock


os.register_at_fork(after_in_child=_after_fork)
