"""Accepts connections, beside other processes that accept from the same socket.

The kernel wakes each process that waits for one. Each takes one connection in an iteration of its
loop, so that a busy process leaves the next ones to the others.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from typing import Any, Final

log = logging.getLogger(__name__)

# Without memory or open files accepting fails until something is closed.
EXHAUSTED_S: Final = 1.0
# Errors of a single connection that has ended.
GONE: Final = frozenset(
    {
        errno.ECONNABORTED,
        errno.EPROTO,
        errno.ENETDOWN,
        errno.ENOPROTOOPT,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EOPNOTSUPP,
        errno.ENETUNREACH,
        errno.EPERM,
        errno.EINTR,
    }
)
RECEIVED_BYTES: Final = 64 * 1024


# (host, port, …), or the path of a Unix socket, '' for most.
PeerAddress = Any


class Acceptor:
    """One listening socket of a process."""

    def __init__(
        self, listening: socket.socket, connect: Callable[[socket.socket, PeerAddress], None]
    ) -> None:
        """connect: takes an accepted socket."""
        self._listening = listening
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        listening.setblocking(False)
        self._resume()

    def close(self, *, takes_queued: bool = True) -> None:
        """Accept nothing more; the socket stays open.

        takes_queued: accept what the kernel has queued, which no other process will.
        """
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._listening)
        while takes_queued and self._accept():
            pass

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._listening, self._accept)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._timer = self._loop.call_later(seconds, self._resume)

    def _accept(self) -> bool:
        """Accept a connection; False if none is waiting."""
        try:
            accepted, address = self._listening.accept()
        except BlockingIOError:
            return False
        except OSError as exc:
            if exc.errno in GONE:
                return True
            log.warning("accept_failed", extra={"error": exc.strerror})
            if not self._is_closed:
                self._pause(EXHAUSTED_S)
            return False
        accepted.setblocking(False)
        self._connect(accepted, address)
        return True


def refuse(client: socket.socket, answer: bytes) -> None:
    """Send an answer and close the connection, without a wait.

    What the client has sent is read before: closing would reset the connection otherwise, and take
    the answer from the client. Source: RFC 9112, 9.6.
    """
    with contextlib.closing(client), contextlib.suppress(OSError):
        client.send(answer)
        client.recv(RECEIVED_BYTES)
