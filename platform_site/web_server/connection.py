"""One client's connection: what has arrived of its next request, and whose it is."""

import socket
import time
from typing import Any, Final

from gunicorn.workers import gthread  # type: ignore[import-untyped]  # it has no types

from platform_site.web_server.framing import Progress, progress

RECEIVE_BYTES: Final = 64 * 1024
# A request must be complete so long after its first byte, and a second later for each of these.
RECEIVE_S: Final = 10.0
SLOWEST_BYTES_PER_S: Final = 32 * 1024


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
    bytes that may still come after the last response.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.received = bytearray()
        self.begun_at = 0.0
        self.caller: int | None = None
        self.is_stream = False
        self.drain_left = 0
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

    def take_back(self) -> bool:
        """Take what the parser read beyond its request; True if there is something."""
        self.received = bytearray(self.parser.unreader.take_buffered())
        self.begun_at = time.monotonic()
        return bool(self.received)
