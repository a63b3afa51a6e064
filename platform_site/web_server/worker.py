"""gunicorn's threaded worker with five changes.

Requests run in compute slots (common/web/compute_slots.py) instead of an executor; a
connection goes to the process with the fewest; the loop receives a request before a thread
processes it, so that slow clients hold no threads; the loop does not block on clients that have to
close their connection; and each address has a share of the resources (client_shares.py).
"""

import struct
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from selectors import EVENT_READ
from socket import SHUT_WR, SO_RCVTIMEO, SO_SNDTIMEO, SOL_SOCKET
from typing import Any, Final

from gunicorn.http import wsgi  # type: ignore[import-untyped]  # it has no types
from gunicorn.http.body import LengthReader  # type: ignore[import-untyped]  # it has no types
from gunicorn.workers import gthread  # type: ignore[import-untyped]  # it has no types

from common.web import client_presence
from common.web.compute_slots import MAX_HOLD_S, ComputeSlots
from common.web.connection_counts import CLOSED, ConnectionCounts
from common.web.pace import PACES_KEY
from platform_site.web_server.client_shares import ClientShares
from platform_site.web_server.connection import RECEIVE_BYTES, ClientSocket, Connection
from platform_site.web_server.framing import Progress
from platform_site.web_server.response import Response, answer

# How long a process leaves a new connection to one that has fewer. It then accepts it anyway,
# because the other one may hang.
LEAVE_S: Final = 0.05
# The interval of checking whether the connection is still waiting.
PAUSE_S: Final = 0.001
# How long a thread waits for a client that does not read or send: 10 s (struct timeval).
STALL_LIMIT: Final = struct.pack("ll", 10, 0)
# One in this many threads may read large bodies while they arrive.
THREADS_PER_STREAM: Final = 8
BUSY: Final = "503 Service Unavailable\r\nRetry-After: 2"
# How long, and how many bytes, a client may continue to send after the last response (RFC 9112,
# 9.6: closing immediately could discard that response).
LINGER_S: Final = 2.0
LINGER_BYTES: Final = 64 * 1024
IDLE_SLOT: Final = -1


@dataclass(frozen=True, slots=True)
class FinishedFuture:
    """A future for gunicorn's ``finish_request``, with the result of a request."""

    value: Any

    def cancelled(self) -> bool:
        """Return False: requests are not cancelled before they begin."""
        return False

    def result(self) -> Any:
        """Return what ``handle`` returned."""
        return self.value


class BalancedWorker(gthread.ThreadWorker):  # type: ignore[misc]  # untyped library
    """A worker process.

    counts, slot: set by the parent before the fork. slot_count: how many requests compute
    concurrently. trusted_proxies: the number of the platform's own proxies in front.
    """

    counts: ConnectionCounts
    slot = IDLE_SLOT
    slot_count = 1
    trusted_proxies = 0

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
        self._accepts_after = self._left_at = 0.0
        self._was_asked = self._has_stopped_listening = False
        self._receiving: set[Connection] = set()
        self._lingering: set[Connection] = set()
        self._shares = ClientShares(
            connections=self.worker_connections,
            streams=max(1, self.cfg.threads // THREADS_PER_STREAM),
            trusted_proxies=self.trusted_proxies,
        )
        self.nr_conns = 0
        super().init_process()

    def accept(self, listener: Any) -> None:
        """Accept a connection, unless a process with fewer connections should."""
        now = time.monotonic()
        self._was_asked = True
        self._left_at = self._left_at or now
        if now - self._left_at < LEAVE_S and self.counts.is_above_another(self.slot):
            self._accepts_after = now + PAUSE_S
            self.set_accept_enabled(False)
        else:
            self._left_at = 0.0
            self._accept(listener)

    def _accept(self, listener: Any) -> bool:
        """Accept a connection and wait for its first bytes in the loop; False if there is none."""
        try:
            sock, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return False
        # It stays a blocking socket; the loop reads with MSG_DONTWAIT.
        sock = ClientSocket(sock.family, sock.type, sock.proto, sock.detach())
        self.nr_conns += 1
        for option in (SO_RCVTIMEO, SO_SNDTIMEO):
            sock.setsockopt(SOL_SOCKET, option, STALL_LIMIT)
        conn = Connection(
            self.cfg, sock, address, listener.getsockname(), on_close=self._shares.closed
        )
        if not self._make_room(conn):
            self._refuse(conn, BUSY)
            return True
        conn.timeout = time.monotonic() + self.cfg.keepalive
        self.pending_conns.append(conn)
        self.poller.register(sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))
        return True

    def _make_room(self, conn: Connection) -> bool:
        """Count a new connection; if there are too many, close an idle one.

        False if its address has reached its share without idle connections.
        """
        if not self._shares.try_open(conn):
            if not self._close_idle(self._shares.opened_beside(conn)):
                return False
            self._shares.replace(conn)
        if self.nr_conns >= self.worker_connections:
            # Otherwise this process would accept no more connections.
            idle = chain(tuple(self.pending_conns), tuple(self.keepalived_conns))
            self._close_idle(idle)
        return True

    def _close_idle(self, candidates: Iterable[Connection]) -> bool:
        """Close the first idle connection; False if there is none."""
        for conn in candidates:
            # A thread may be about to register it.
            if conn.is_idle and conn.sock in self.poller.get_map():
                kept = self.pending_conns if conn in self.pending_conns else self.keepalived_conns
                kept.remove(conn)
                self.poller.unregister(conn.sock)
                self._refuse(conn, "")
                return True
        return False

    def set_accept_enabled(self, enabled: bool) -> None:
        """Start or stop accepting; a process that ends stops listening."""
        if not self.alive:
            self._stop_listening()
        elif not enabled or time.monotonic() >= self._accepts_after:
            super().set_accept_enabled(enabled)

    def _stop_listening(self) -> None:
        """Accept what the kernel has queued, and close the sockets before the requests end.

        The kernel would queue further connections, and reset them when the last process closes.
        """
        if self._has_stopped_listening:
            return
        self._has_stopped_listening = True
        super().set_accept_enabled(False)
        self.counts.set(self.slot, CLOSED)
        for listener in self.sockets:
            listener.setblocking(False)
            while self._accept(listener):
                pass
            listener.close()

    # --- receiving ------------------------------------------------------------------------------

    def on_pending_socket_readable(self, conn: Connection, client: Any) -> None:
        """Read from a connection that has sent nothing yet."""
        self._receive(conn, self.pending_conns)

    def on_client_socket_readable(self, conn: Connection, client: Any) -> None:
        """Read from a kept-alive connection."""
        self._receive(conn, self.keepalived_conns)

    def _receive(self, conn: Connection, idle: deque[Connection]) -> None:
        if conn.is_closed:
            # It was closed in favour of another one that was accepted at the same time.
            return
        state = conn.receive()
        if state is Progress.PARTIAL and not conn.received:
            return
        if conn in self._receiving:
            self._receiving.discard(conn)
        else:
            idle.remove(conn)
            conn.is_idle = False
        self.poller.unregister(conn.sock)
        self._process_or_wait(conn, state)

    def _process_or_wait(self, conn: Connection, state: Progress | None) -> None:
        """Process a received request, or wait for the rest."""
        if state is Progress.PARTIAL and self._shares.try_receive(conn):
            self._receiving.add(conn)
            self.poller.register(
                conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn)
            )
        elif state is Progress.COMPLETE or (
            state is Progress.STREAM and self._shares.try_stream(conn)
        ):
            self.enqueue_req(conn)
        elif state is Progress.TOO_LONG:
            self._refuse(conn, "431 Request Header Fields Too Large")
        elif state is None:
            self._refuse(conn, "")
        else:
            self._refuse(conn, BUSY)

    def _refuse(self, conn: Connection, status: str) -> None:
        """Close a connection; the client gets a status line if it is still connected."""
        answer = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        with suppress(OSError):
            if status:
                conn.sock.send(answer.encode())
        self.nr_conns -= 1
        conn.close()

    def murder_pending(self) -> None:
        """Close connections that sent nothing, or a request too slowly."""
        super().murder_pending()
        now = time.monotonic()
        for conn in [conn for conn in self._receiving if conn.is_too_slow(now)]:
            self._receiving.discard(conn)
            self.poller.unregister(conn.sock)
            self._refuse(conn, "408 Request Timeout")
        for conn in [conn for conn in self._lingering if conn.timeout <= now]:
            self._close(conn)

    # --- closing --------------------------------------------------------------------------------

    def _linger(self, conn: Connection) -> None:
        """Close a connection after its client has read the response, without blocking the loop.

        With gunicorn's own code, a few clients that stay connected after a malformed request block
        the whole process.
        """
        try:
            conn.sock.shutdown(SHUT_WR)
            conn.sock.setblocking(False)
            self.poller.register(conn.sock, EVENT_READ, partial(self._drain, conn))
        except (OSError, ValueError):
            self.nr_conns -= 1
            conn.close()
            return
        conn.drain_left = LINGER_BYTES
        conn.timeout = time.monotonic() + LINGER_S
        self._lingering.add(conn)

    def _drain(self, conn: Connection, client: Any) -> None:
        """Discard what a client still sends, and close the connection when it ends."""
        try:
            piece = conn.sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        conn.drain_left -= len(piece)
        if not piece or conn.drain_left <= 0:
            self._close(conn)

    def _close(self, conn: Connection) -> None:
        self._lingering.discard(conn)
        self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()

    # --- requests -------------------------------------------------------------------------------

    def get_thread_pool(self) -> ComputeSlots:
        """Return the threads that answer requests."""
        return ComputeSlots(self._answer, slots=self.slot_count, threads=self.cfg.threads)

    def enqueue_req(self, conn: Connection) -> None:
        """Queue a connection's next request under its caller's key."""
        # A proxy's connection has requests of many clients, so its latest caller may be another
        # one.
        is_known = conn.caller is not None and not self.trusted_proxies
        self.tpool.submit(conn, conn.caller if is_known else self._shares.key_of_request(conn))

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait for events until the next timer is due."""
        if self.tpool.is_backed_up:
            self.tpool.reclaim_overdue_slots()
            timeout = min(timeout, MAX_HOLD_S)
        if self.alive and not self._accepting:
            timeout = min(timeout, max(self._accepts_after - time.monotonic(), 0.0))
        listened, self._was_asked = self._accepting, False
        super().wait_for_and_dispatch_events(timeout)
        if listened and not self._was_asked:
            # Another process has accepted the remaining connections.
            self._left_at = 0.0

    def _answer(self, conn: Connection) -> None:
        """Answer one request; runs in a slot."""
        keeps = False
        try:
            conn.hand_over()
            self._shares.release_memory(conn)
            keeps = self.handle(conn)
            conn.caller = client_presence.organization()
        finally:
            has_more = keeps is True and conn.take_back()
            if keeps is True and self.alive and not (has_more or conn.is_stream):
                self._await_next(conn)
            else:
                self.method_queue.defer(self.finish_request, conn, FinishedFuture(keeps))

    def handle_request(self, req: Any, conn: Connection) -> bool:
        """Answer one request; True if its connection may be kept.

        Like gunicorn's own method, without its hooks, its access log and two of three writes.
        """
        response, environ = wsgi.create(
            req, conn.sock, conn.client, conn.server, self.cfg, response_class=Response
        )
        environ["wsgi.multithread"] = True
        environ[PACES_KEY] = (conn.pace, response.pace)
        self.nr += 1
        if self.nr >= self.max_requests:
            self.alive = False
        if not self.alive or len(self.keepalived_conns) >= self.max_keepalived:
            response.force_close()
        try:
            answer(self.wsgi, environ, response)
        except OSError:
            raise
        except Exception as exc:
            if not response.headers_sent:
                raise
            # A response that was partly sent cannot be replaced by an error.
            self.log.exception("Error handling request")
            raise StopIteration from exc
        return not response.should_close()

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        """Discard the rest of a body; True if another request may follow."""
        body = conn.parser.mesg.body
        reader = body.reader
        if keepalive and isinstance(reader, LengthReader) and not (reader.length or body.failed):
            return True
        return bool(super()._keepalive_after(conn, keepalive))

    def finish_request(self, conn: Connection, fs: FinishedFuture) -> None:
        """Close a connection, or continue with its next request."""
        self._shares.end_stream(conn)
        if conn.received:
            self._process_or_wait(conn, conn.progress())
        elif fs.value:
            super().finish_request(conn, fs)
            conn.is_idle = True
        else:
            self._linger(conn)

    def _await_next(self, conn: Connection) -> None:
        """Register the connection for its next request, without waking the loop.

        Another thread may register a socket while the loop waits (epoll(7)); it must be in the
        queue of kept connections before, since the loop may find it readable immediately.
        """
        conn.set_timeout()
        conn.is_idle = True
        self.keepalived_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_client_socket_readable, conn))
