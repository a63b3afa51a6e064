"""A client's connection, with the received bytes of its next request."""

import socket
import time
from collections.abc import Callable
from typing import Any, Final, Self

from gunicorn.workers import gthread  # type: ignore[import-untyped]  # it has no types

from common.web.pace import RECEIVE_S, SLOWEST_BYTES_PER_S, MinimumRate, PacedSocket
from platform_site.web_server.framing import Progress, progress

RECEIVE_BYTES: Final = 64 * 1024


class ClientSocket(socket.socket):
    """A socket that avoids system calls if the blocking mode does not change."""

    def setblocking(self, flag: bool) -> None:
        """Set the blocking mode."""
        if flag != self.getblocking():
            super().setblocking(flag)


class Connection(gthread.TConn):  # type: ignore[misc]  # untyped library
    """A connection whose requests are received before a thread processes them.

    caller: the organization of its latest request. is_idle: it waits for a request. is_stream: a
    thread reads the body while it arrives. begun_at: when the first byte of an incomplete request
    arrived (time.monotonic). drain_left: bytes that may still come after the last response.
    on_close: called with the connection before it is closed. The other fields are its resources and
    share keys (client_shares.py).
    """

    counted_as: str | None = None
    stream_key: str | None = None
    memory_key: str | None = None
    held_bytes = 0

    def __init__(self, *arguments: Any, on_close: Callable[[Self], None]) -> None:
        super().__init__(*arguments)
        self._on_close = on_close
        self.received = bytearray()
        # Once the head has arrived, if it gives the size.
        self._request_size = 0
        self.begun_at = 0.0
        self.caller: int | None = None
        self.is_idle = True
        self.is_closed = False
        self.is_stream = False
        self.pace = MinimumRate()
        self.drain_left = 0
        # The loop has read the available bytes; a thread must not wait for them.
        self.data_ready = True

    def receive(self) -> Progress | None:
        """Read the available bytes without waiting; None if the client closed the connection."""
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
        return self.progress()

    def progress(self) -> Progress:
        """Return how far its request has arrived.

        The head is parsed once, not again for each piece of the body: that would let a client with
        a long head and small pieces keep the loop busy.
        """
        if len(self.received) < self._request_size:
            return Progress.PARTIAL
        state, self._request_size = progress(self.received)
        return state

    def is_too_slow(self, now: float) -> bool:
        """True if the time limit for its request is over."""
        return now - self.begun_at > RECEIVE_S + len(self.received) / SLOWEST_BYTES_PER_S

    def hand_over(self) -> None:
        """Let gunicorn's parser start with the received bytes; runs in the request's thread."""
        self.init()
        self.pace = MinimumRate()
        sock = PacedSocket(self.sock, self.pace) if self.is_stream else self.sock
        self.parser.unreader.sock = sock
        self.parser.unreader.unread(bytes(self.received))
        self.received = bytearray()
        self._request_size = 0

    def take_back(self) -> bool:
        """Take back the bytes that the parser read beyond its request; True if there are any."""
        self.received = bytearray(self.parser.unreader.take_buffered())
        self.begun_at = time.monotonic()
        return bool(self.received)

    def close(self, graceful: bool = False) -> None:
        """Release its resources and close it."""
        self.is_closed = True
        self._on_close(self)
        super().close(graceful)
