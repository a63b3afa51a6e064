"""gunicorn's threaded worker for connections that are kept, and servers that end without loss.

SIGUSR2 makes gunicorn start a second server with the current code on the same sockets. With
gunicorn alone an administrator has to end the first one; here the second one does so when it is
ready. If it does not start, the first one continues.
"""

import os
import select
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gunicorn import util  # type: ignore[import-untyped]  # it has no types
from gunicorn.workers import gthread  # type: ignore[import-untyped]  # it has no types

from common.machine import systemd
from common.web import server_end
from edgecache.runtime.listening import refuse_connections

# Set by gunicorn for a server that was started by another one, until that one has ended.
FORMER: Final = "GUNICORN_PID"
# How long a thread waits for the first byte of a connection, and for a body that no view has read:
# an import that was refused. Later a connection waits in the loop, or is closed.
vars(gthread)["DEFAULT_WORKER_DATA_TIMEOUT"] = 0.5
# How long a thread waits for the next request of its connection.
NEXT_REQUEST_MS: Final = 20
# How long a process that ends accepts connections from the kernel's queue.
QUEUE_S: Final = 1.0
# How long a client may stay after its last response (RFC 9112, 9.6: closing immediately could
# discard that response).
LINGER_S: Final = 1.0


class Worker(gthread.ThreadWorker):  # type: ignore[misc]  # untyped library
    """A worker process whose loop waits for no client, and that loses no connection at its end."""

    sockets: list[Any]

    def handle(self, conn: Any) -> Any:
        """Answer a request, and those that follow at once.

        Giving the connection back to the loop and receiving it again costs a fifth of a short
        request. Wait here for a client that has to leave, not in the loop.
        """
        keeps = super().handle(conn)
        while keeps is True and self._has_next(conn):
            keeps = super().handle(conn)
        if keeps is False:
            with suppress(OSError):
                util.close_graceful(conn.sock.dup(), LINGER_S)
                conn.sock.shutdown(socket.SHUT_RDWR)
        return keeps

    def _has_next(self, conn: Any) -> bool:
        """Wait shortly for another request, unless another connection may need the thread."""
        if (
            not self.alive
            or self.nr_conns > self.cfg.threads
            or conn.parser.unreader.buf.getvalue()
        ):
            return False
        readable = select.poll()
        readable.register(conn.sock, select.POLLIN)
        return bool(readable.poll(NEXT_REQUEST_MS))

    def set_accept_enabled(self, enabled: bool) -> None:
        """Start or stop accepting; a process that ends stops listening."""
        super().set_accept_enabled(enabled and self.alive)
        if not self.alive:
            self._stop_listening()

    def _stop_listening(self) -> None:
        """Accept what the kernel has queued, and close the sockets before the requests end.

        The kernel would queue further connections, and reset them when the last process closes.
        Not for ever: during a takeover new ones come, which the other server accepts as well.
        """
        until = time.monotonic() + QUEUE_S
        for listener in self.sockets:
            listener.setblocking(False)
            queue = select.poll()
            queue.register(listener, select.POLLIN)
            # A Unix socket that refuses is always readable; its accept fails when none is left.
            with suppress(OSError):
                while queue.poll(0) and time.monotonic() < until:
                    self.accept(listener)
            listener.close()
        self.sockets = []


def take_over(server_pid: int) -> None:
    """End the server that started this one, if any, and report the new process to systemd."""
    former = int(os.environ.get(FORMER, "0"))
    # The process may have ended and its id may have been reused.
    if former and former == _parent_of(server_pid):
        systemd.notify(f"MAINPID={server_pid}")
        os.kill(former, signal.SIGTERM)


def refuse_before_stop(server: Any) -> None:
    """Have gunicorn's server refuse new connections before it stops its workers.

    Not while another server has its sockets: one that takes over, one before it, or systemd.
    """
    stop = server.stop

    def refuse_and_stop(*args: Any, **options: Any) -> None:
        if server.reexec_pid == server.master_pid == 0 and not server.systemd:
            server_end.begin()
            for listener in server.LISTENERS:
                refuse_connections(listener.sock)
        stop(*args, **options)

    server.stop = refuse_and_stop


def _parent_of(pid: int) -> int:
    # After the program's name in brackets, which may contain blanks: state, parent.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
