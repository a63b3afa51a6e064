"""Accepts connections, beside other processes that accept from the same socket.

The kernel hands a new connection to whichever process looks first, so that those of one client
often all belong to one process while another core is idle. Each process therefore publishes how
many it has, and leaves a connection to one that has fewer. Source: accept(2).
"""

import asyncio
import contextlib
import errno
import logging
import select
import socket
from collections.abc import Callable
from typing import Any, Final

log = logging.getLogger(__name__)

# How long a connection is left to a process that has fewer. After that this process accepts for a
# while despite the counts, because the other one may hang.
LEAVE_S: Final = 0.05
DISTRUST_S: Final = 1.0
# When it checks again whether the connection and the difference still exist.
PAUSE_S: Final = 0.001
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
# Accepted before the loop runs everything else that is ready.
MAX_ACCEPTED_PER_ITERATION: Final = 16
RECEIVED_BYTES: Final = 64 * 1024


# (host, port, …), or the path of a Unix socket, '' for most.
PeerAddress = Any


class Balance:
    """How many connections each process has that accepts from the same socket.

    This one is for a process that does not share its sockets: the counts are not read.
    """

    def set(self, count: int) -> None:
        """Publish this process's."""

    def close(self) -> None:
        """Publish that this process accepts no more."""

    def is_above_another(self) -> bool:
        """True if another process has fewer."""
        return False


class Acceptor:
    """One listening socket of a process."""

    def __init__(
        self,
        listening: socket.socket,
        connect: Callable[[socket.socket, PeerAddress], None],
        balance: Balance,
    ) -> None:
        """connect: takes an accepted socket, and publishes the new count."""
        self._listening = listening
        self._connect = connect
        self._balance = balance
        self._loop = asyncio.get_running_loop()
        self._left_at = 0.0
        self._trusts_after = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._poll = select.poll()
        self._poll.register(listening, select.POLLIN)
        listening.setblocking(False)
        self._resume()

    def close(self) -> None:
        """Accept what the kernel has queued, and then nothing more; the socket stays open."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._listening)
        while self._accept():
            pass

    def _resume(self) -> None:
        self._timer = None
        if not self._poll.poll(0):
            # The connection that was left is another's now.
            self._left_at = 0.0
        self._loop.add_reader(self._listening, self._accept_ready)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._timer = self._loop.call_later(seconds, self._resume)

    def _accept_ready(self) -> None:
        for _ in range(MAX_ACCEPTED_PER_ITERATION):
            if self._is_closed or self._leaves() or not self._accept():
                return

    def _leaves(self) -> bool:
        """True if a process with fewer connections should have the next one."""
        now = self._loop.time()
        if now < self._trusts_after or not self._balance.is_above_another():
            self._left_at = 0.0
            return False
        self._left_at = self._left_at or now
        if now - self._left_at >= LEAVE_S:
            self._trusts_after = now + DISTRUST_S
            return False
        self._pause(PAUSE_S)
        return True

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
