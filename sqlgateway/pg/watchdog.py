"""Cancel requests at their deadline, and when their client disconnects.

Deadlines are enforced from outside the connection, so that a tenant cannot evade them by settings
or by catching errors. A thread of the process for each cluster sends cancels, each on a separate
connection: a cluster that is silent keeps its thread waiting. A backend that still runs after
GRACE_MS is terminated by the administrator, which checks MAX_POLLS times whether it has ended.
"""

import atexit
import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import psycopg
import structlog

from common.web import client_presence
from sqlgateway.clusters.servers import said
from sqlgateway.pg import session_settings
from sqlgateway.pg.administrator import Administrator
from sqlgateway.pg.tenant_connection import TenantConnection

CANCEL_S: Final = 2.0
# How long a request may take to notice that it was cancelled, or its backend terminated.
REACTION_S: Final = 3.0
# SQLSTATEs of a cancelled statement and of a terminated backend.
ENDED_SQLSTATES: Final = frozenset({"57014", "57P01"})
POLL_S: Final = 1.0
MAX_POLLS: Final = 30
# The heap is rebuilt when it contains more watches that have ended than this.
MAX_FINISHED: Final = 1000

log = structlog.get_logger(__name__)


def give_up_at(deadline: float) -> float:
    """Return when the server is treated as lost, for a request with this deadline.

    Both are time.monotonic(). Before that the watchdog cancels, and then terminates the backend.
    """
    return deadline + session_settings.GRACE_MS / 1000 + REACTION_S


class Watch:
    """One request with a deadline.

    has_fired: the request was cancelled, at its deadline or before.
    is_abandoned: it was cancelled because its client disconnected.
    was_open: the backend was terminated inside a transaction, which was rolled back.
    """

    __slots__ = ("connection", "has_fired", "is_abandoned", "polls", "was_open", "watchdog")

    def __init__(self, connection: TenantConnection, watchdog: "StatementWatchdog") -> None:
        self.watchdog = watchdog
        self.connection: TenantConnection | None = connection
        self.has_fired = self.is_abandoned = False
        self.was_open = False
        self.polls = 0


class StatementWatchdog:
    """The thread, its heap of deadlines, and the action at each."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._heap: list[tuple[float, int, Callable[[Watch], None], Watch]] = []
        self._numbers = itertools.count()
        # About how many watches in the heap have ended.
        self._finished = 0
        self._wakes_at = 0.0
        self._thread: threading.Thread | None = None
        self._administrator = Administrator()

    def watch(self, connection: TenantConnection, deadline: float) -> Watch:
        """Cancel a request at its deadline (time.monotonic()), or when its client disconnects."""
        watch = Watch(connection, self)
        self._push(deadline, self._cancel, watch)
        client_fd = client_presence.client_fd()
        if client_fd is not None:
            connection.watch_client(client_fd, partial(self._abandon, watch))
        return watch

    def cancel(self, watch: Watch) -> None:
        """Cancel a request now, as at its deadline; do nothing if it has ended."""
        self._push(time.monotonic(), self._cancel, watch)

    def _abandon(self, watch: Watch) -> None:
        """Cancel a request because its client has disconnected."""
        watch.is_abandoned = True
        self.cancel(watch)

    def finish(self, watch: Watch) -> bool:
        """End the watch; True if the request was cancelled: its connection must be closed."""
        with self._condition:
            if watch.connection is not None:
                watch.connection.forget_client()
            if not watch.has_fired:
                watch.connection = None
                self._finished += 1
            return watch.has_fired

    def _push(self, moment: float, action: Callable[[Watch], None], watch: Watch) -> None:
        with self._condition:
            self._drop_finished()
            heapq.heappush(self._heap, (moment, next(self._numbers), action, watch))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sql-watchdog", daemon=True)
                self._thread.start()
            elif moment < self._wakes_at:
                self._condition.notify()

    def _drop_finished(self) -> None:
        """Remove requests that have ended from the heap."""
        while self._heap and self._heap[0][3].connection is None:
            heapq.heappop(self._heap)
            self._finished -= 1
        if self._finished > max(MAX_FINISHED, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if entry[3].connection is not None]
            heapq.heapify(self._heap)
            self._finished = 0

    def _run(self) -> None:
        while True:
            action, watch = self._wait()
            try:
                action(watch)
            except Exception:
                # An error at one request must not stop the deadlines of the others.
                log.exception("sql_watchdog_failed")

    def _wait(self) -> tuple[Callable[[Watch], None], Watch]:
        """Wait for the next action that is due, and return it."""
        with self._condition:
            while True:
                self._drop_finished()
                now = time.monotonic()
                if self._heap and self._heap[0][0] <= now:
                    _, _, action, watch = heapq.heappop(self._heap)
                    return action, watch
                self._wakes_at = self._heap[0][0] if self._heap else math.inf
                self._condition.wait(self._wakes_at - now if self._heap else None)
                self._wakes_at = 0.0

    def _cancel(self, watch: Watch) -> None:
        with self._condition:
            if watch.connection is None or watch.has_fired:
                return
            watch.has_fired = True
            connection = watch.connection
            connection.cancelled_at = time.monotonic()
        try:
            connection.psycopg_connection.cancel_safe(timeout=CANCEL_S)
        except psycopg.Error as exc:
            log.info("sql_cancel_failed", pid=connection.pid, said=said(exc))
        self._push(time.monotonic() + session_settings.GRACE_MS / 1000, self._terminate, watch)

    def _terminate(self, watch: Watch) -> None:
        """Terminate the backend if it still exists, even if its connection was closed."""
        connection = watch.connection
        is_open = None if connection is None else self._administrator.is_open(connection)
        if connection is None or is_open is None:
            watch.connection = None
            self._administrator.close()
            return
        if watch.polls == 0:
            # Set before the termination, because the request ends as soon as the backend does.
            watch.was_open = is_open
        if not self._administrator.terminate(connection):
            watch.was_open = False
        watch.polls += 1
        if watch.polls > MAX_POLLS:
            log.error("sql_backend_survives", pid=connection.pid)
            watch.connection = None
            return
        wait_s = 0.1 if watch.polls == 1 else POLL_S
        self._push(time.monotonic() + wait_s, self._terminate, watch)

    def close(self) -> None:
        """Close the administrative connections, at the end of the process."""
        self._administrator.close()


class Watchdogs:
    """A watchdog for each cluster."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[int, StatementWatchdog] = {}

    def of(self, connection: TenantConnection) -> StatementWatchdog:
        """Return the watchdog of a connection's cluster."""
        cluster_id = connection.login.address.cluster_id
        with self._lock:
            return self._of.setdefault(cluster_id, StatementWatchdog())

    def watch(self, connection: TenantConnection, deadline: float) -> Watch:
        """As ``StatementWatchdog.watch``."""
        return self.of(connection).watch(connection, deadline)

    def cancel(self, watch: Watch) -> None:
        """As ``StatementWatchdog.cancel``."""
        watch.watchdog.cancel(watch)

    def finish(self, watch: Watch) -> bool:
        """As ``StatementWatchdog.finish``."""
        return watch.watchdog.finish(watch)

    def close(self) -> None:
        """Close the administrative connections, at the end of the process."""
        for watchdog in self._of.values():
            watchdog.close()


WATCHDOG: Final = Watchdogs()
atexit.register(WATCHDOG.close)
