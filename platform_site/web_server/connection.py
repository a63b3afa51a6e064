"""One client's connection: what has arrived of its next request, and whose it is."""

import select
import socket
import time
from typing import Any, Final

from gunicorn.workers import gthread  # type: ignore[import-untyped]  # it has no types

from platform_site.web_server.framing import Progress, progress

RECEIVE_BYTES: Final = 64 * 1024
# A request must be complete so long after its first byte, and a second later for each of these.
RECEIVE_S: Final = 10.0
SLOWEST_BYTES_PER_S: Final = 32 * 1024
# A thread waits so long for the next request of a client that sent the last one as soon.
STAY_S: Final = 0.005


class ClientSocket(socket.socket):
    """A socket that asks the system for a mode only if it has another one."""

    def setblocking(self, flag: bool) -> None:
        """Wait in calls, or not."""
        if flag != self.getblocking():
            super().setblocking(flag)


class Connection(gthread.TConn):  # type: ignore[misc]  # untyped library
    """A connection whose requests are received before a thread begins with them.

    caller: the organization of its latest request. is_stream: a thread reads the body meanwhile.
    begun_at: when the first byte of an incomplete request arrived (time.monotonic). drain_left:
    bytes that may still come after the last response. answered_at: when its latest request was
    (time.monotonic).
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.received = bytearray()
        self.begun_at = 0.0
        self.caller: int | None = None
        self.is_stream = False
        self.drain_left = 0
        self.is_quick = False
        self._answered_at = 0.0
        self._poll = select.poll()
        self._poll.register(self.sock, select.POLLIN)
        # What there is to read, the loop reads; a thread has no need to wait for it.
        self.data_ready = True

    def receive(self) -> Progress | None:
        """Read what there is, without waiting; None if the client closed the connection."""
        try:
            piece = self.sock.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return Progress.PARTIAL
        except OSError:
            return None
        if not piece:
            return None
        if not self.received:
            self.begun_at = time.monotonic()
            self.is_quick = self.begun_at - self._answered_at < STAY_S
        self.received += piece
        return progress(self.received)

    def is_too_slow(self, now: float) -> bool:
        """True if its request should have arrived by now."""
        return now - self.begun_at > RECEIVE_S + len(self.received) / SLOWEST_BYTES_PER_S

    def hand_over(self) -> None:
        """Let gunicorn's parser read what was received first; runs in the request's thread."""
        self.init()
        self.parser.unreader.unread(bytes(self.received))
        self.received = bytearray()

    def has_next(self) -> bool:
        """Wait for STAY_S at most; True if there is something to read, or the client closed."""
        return bool(self._poll.poll(STAY_S * 1000))

    def take_back(self) -> bool:
        """Take what the parser read beyond its request; True if there is something."""
        self.received = bytearray(self.parser.unreader.take_buffered())
        self.begun_at = self._answered_at = time.monotonic()
        return bool(self.received)
