"""Bytes between libpq and the server, handed over in pieces so that they can be counted.

libpq reads whatever the server sends until a message is complete: one row of ``repeat('x', 1e9)``
becomes a gigabyte in this process before any call returns. So libpq gets one end of a socket pair,
and reads only what was passed on to it. TLS is libpq's own and goes through unchanged.
"""

import os
import select
import socket
import time
from typing import Final

PIECE_BYTES: Final = 64 * 1024
TAIL_BYTES: Final = 8 * 1024
# A server that takes nothing for so long is gone.
SEND_S: Final = 10.0


class WireBroken(Exception):
    """The server is gone, or silent for longer than it may be."""


class WireFull(Exception):
    """More bytes than allowed have come without making a result."""


class Wire:
    """The connection's real socket, and the pair that stands between it and libpq.

    fd: libpq's socket; from now on it is the pair's near end.
    """

    def __init__(self, fd: int, *, limit_bytes: int) -> None:
        self._server = socket.socket(fileno=os.dup(fd))
        self._server.setblocking(False)
        near, self._far = socket.socketpair()
        with near:
            near.setblocking(False)
            os.dup2(near.fileno(), fd, inheritable=False)
        self._far.setblocking(False)
        self._libpq_fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._poll.register(self._server, select.POLLIN)
        self._limit_bytes = limit_bytes
        self._last_piece = b""
        self.counted = 0

    def pass_out(self) -> None:
        """Send what libpq has written.

        Raises WireBroken.
        """
        try:
            piece = self._far.recv(PIECE_BYTES)
            while piece:
                self._send(piece)
                piece = self._far.recv(PIECE_BYTES) if len(piece) == PIECE_BYTES else b""
        except BlockingIOError:
            return
        except OSError as exc:
            raise WireBroken from exc

    def _send(self, piece: bytes) -> None:
        sent = 0
        while sent < len(piece):
            try:
                sent += self._server.send(piece[sent:])
            except BlockingIOError:
                writable = select.poll()
                writable.register(self._server, select.POLLOUT)
                if not writable.poll(SEND_S * 1000):
                    raise WireBroken("takes nothing") from None

    def pass_in(self, give_up_at: float) -> None:
        """Wait for the server and let libpq have some of what it says.

        give_up_at: time.monotonic. Raises WireBroken, WireFull.
        """
        remaining_s = give_up_at - time.monotonic()
        ready = self._poll.poll(max(remaining_s * 1000, 0))
        if not ready:
            raise WireBroken("no answer")
        # What libpq has left unread comes first: its end then holds a whole piece again.
        if any(fd == self._libpq_fd for fd, _ in ready):
            return
        self._take()

    def has_more(self) -> bool:
        """Say whether anything is there to be read, such as the end of the connection."""
        return bool(self._poll.poll(0))

    def tail(self) -> bytes:
        """Give the end of what the server said, from the piece that was too much onwards."""
        self._server.settimeout(SEND_S)
        kept = self._last_piece
        try:
            while piece := self._server.recv(PIECE_BYTES):
                kept = kept[-TAIL_BYTES:] + piece
        except OSError:
            return kept
        return kept

    def _take(self) -> None:
        try:
            piece = self._server.recv(PIECE_BYTES)
            if piece:
                self._far.sendall(piece)
            else:
                self._far.shutdown(socket.SHUT_WR)
        except OSError as exc:
            raise WireBroken from exc
        self.counted += len(piece)
        if self.counted > self._limit_bytes:
            self._last_piece = piece
            raise WireFull

    def close(self) -> None:
        """Let the server know what libpq said last (goodbye), and close."""
        try:
            self._server.send(self._far.recv(PIECE_BYTES))
        except OSError:
            pass
        finally:
            self._server.close()
            self._far.close()
