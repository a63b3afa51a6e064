"""gunicorn's threaded worker with three changes.

Requests run in lanes (platform_site/lib/lanes.py) instead of in an executor; a connection goes to
the process that has the fewest; no thread waits for a client that has sent nothing.
"""

import time
from dataclasses import dataclass
from functools import partial
from selectors import EVENT_READ
from typing import Any, Final

from gunicorn.workers import gthread  # type: ignore[import-untyped]  # it has no types

from platform_site.lib import clients
from platform_site.lib.lanes import PATIENCE_S, Lanes
from platform_site.web_server.connection_counts import CLOSED, ConnectionCounts

# How long a process leaves a new connection to one that has fewer. It then accepts it whatever the
# counts say: the other may hang.
LEAVE_S: Final = 0.01
IDLE_SLOT: Final = -1


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a request, as gunicorn's ``finish_request`` asks a future for it."""

    value: Any

    def cancelled(self) -> bool:
        """Return False: no request is cancelled before it begins."""
        return False

    def result(self) -> Any:
        """Return what ``handle`` returned."""
        return self.value


class BalancedWorker(gthread.ThreadWorker):  # type: ignore[misc]  # untyped library
    """One process.

    counts, slot: set by the parent before the fork. lane_count: how many requests compute at once.
    """

    counts: ConnectionCounts
    slot = IDLE_SLOT
    lane_count = 1

    # --- connections of this process ------------------------------------------------------------

    @property
    def nr_conns(self) -> int:
        """The number of open connections, published to the other processes."""
        return self._connections

    @nr_conns.setter
    def nr_conns(self, count: int) -> None:
        self._connections = count
        if self.slot != IDLE_SLOT and self.alive:
            self.counts.set(self.slot, count)

    def init_process(self) -> None:
        """Publish that this process accepts connections, then serve."""
        self._accepts_after = 0.0
        self.nr_conns = 0
        super().init_process()

    def accept(self, listener: Any) -> None:
        """Accept a connection, unless a process with fewer should have it.

        What was left once and is still there is accepted.
        """
        now = time.monotonic()
        if now > self._accepts_after + LEAVE_S and self.counts.is_above_another(self.slot):
            self._accepts_after = now + LEAVE_S
            self.set_accept_enabled(False)
        else:
            self._accept(listener)

    def _accept(self, listener: Any) -> bool:
        """Accept a connection and wait for its first bytes in the loop; False if there is none."""
        try:
            sock, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return False
        self.nr_conns += 1
        conn = gthread.TConn(self.cfg, sock, address, listener.getsockname())
        conn.timeout = time.monotonic() + self.cfg.keepalive
        self.pending_conns.append(conn)
        self.poller.register(sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))
        return True

    def set_accept_enabled(self, enabled: bool) -> None:
        """Listen or not; a process that ends first takes what has connected to it already."""
        if not self.alive:
            self.counts.set(self.slot, CLOSED)
            for listener in self.sockets:
                listener.setblocking(False)
                while self._accept(listener):
                    pass
        if enabled and time.monotonic() < self._accepts_after:
            return
        super().set_accept_enabled(enabled)

    # --- requests -------------------------------------------------------------------------------

    def get_thread_pool(self) -> Lanes:
        """Return the threads that answer requests."""
        return Lanes(self._answer, lanes=self.lane_count, threads=self.cfg.threads)

    def enqueue_req(self, conn: Any) -> None:
        """Answer a connection's next request when it is its caller's turn."""
        self.tpool.submit(conn, getattr(conn, "caller", None))

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait for events, but not past the moment when something else is due."""
        if self.tpool.is_backed_up:
            self.tpool.relieve()
            timeout = min(timeout, PATIENCE_S)
        if self.alive and not self._accepting:
            timeout = min(timeout, max(self._accepts_after - time.monotonic(), 0.0))
        super().wait_for_and_dispatch_events(timeout)

    def _answer(self, conn: Any) -> None:
        """Answer one request; runs in a lane."""
        keeps = self.handle(conn)
        conn.caller = clients.organization()
        if keeps is True and self.alive and not conn.parser.unreader.buf.getvalue():
            self._await_next(conn)
        else:
            self.method_queue.defer(self.finish_request, conn, Finished(keeps))

    def _await_next(self, conn: Any) -> None:
        """Let the loop wait for the next request, without waking the loop for that.

        Another thread may register a socket while the loop waits (epoll(7)); it must be in the
        queue of kept connections before, since the loop may find it readable at once.
        """
        conn.sock.setblocking(False)
        conn.set_timeout()
        self.keepalived_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_client_socket_readable, conn))
