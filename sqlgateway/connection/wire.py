"""Bytes between libpq and the server, handed over in pieces so that they can be counted.

libpq reads whatever the server sends until a message is complete: one row of ``repeat('x', 1e9)``
becomes a gigabyte in this process before any call returns. So for all but short answers libpq gets
one end of a socket pair, and reads only what was passed on to it. TLS is libpq's own and goes
through unchanged.
"""

import os
import select
import socket
import time
from contextlib import suppress
from typing import Final

from sqlgateway.connection.protocol import is_whole_answer

PIECE_BYTES: Final = 64 * 1024
TAIL_BYTES: Final = 8 * 1024
# Answers below this are looked at before libpq reads them.
SHORT_BYTES: Final = 4 * 1024
# A server that takes nothing for so long is gone.
SEND_S: Final = 10.0


class WireBroken(Exception):
    """The server is gone, or silent for longer than it may be."""


class WireFull(Exception):
    """More bytes than allowed have come without making a result."""


class Wire:
    """The connection's real socket, and where needed a pair of sockets between it and libpq.

    Most answers are there at once, whole and short: libpq may read such a one by itself, as a look
    at it (``MSG_PEEK``) tells. For any other, libpq's end becomes one of the pair (piped) until the
    answer is over; TLS, which cannot be looked into, is piped always.

    counted: bytes since whoever counts them set it to 0. beginning: of the answer, as far as it was
    looked at.
    """

    def __init__(self, fd: int, *, limit_bytes: int, is_encrypted: bool) -> None:
        self._server = socket.socket(fileno=os.dup(fd))
        self._server.setblocking(False)
        self._libpq_fd = fd
        self._poll = select.poll()
        self._poll.register(self._server, select.POLLIN)
        self._far: socket.socket | None = None
        self._limit_bytes = limit_bytes
        self._is_encrypted = is_encrypted
        self._last_piece = b""
        self.counted = 0
        self.beginning = b""
        if is_encrypted:
            self.pipe()

    @property
    def is_piped(self) -> bool:
        """Whether what libpq writes has to be passed on."""
        return self._far is not None

    def pipe(self) -> None:
        """Put the pair between libpq and the server."""
        if self._far is not None:
            return
        near, far = socket.socketpair()
        with near:
            near.setblocking(False)
            os.dup2(near.fileno(), self._libpq_fd, inheritable=False)
        far.setblocking(False)
        self._far = far
        self._poll.register(self._libpq_fd, select.POLLIN)

    def unpipe(self) -> bool:
        """Give libpq the real socket again, between two answers; False when something is left.

        Only for a connection that libpq holds to be open: it would have closed its socket, whose
        number may be another's by now.
        """
        if self._far is None or self._is_encrypted:
            return True
        if self.has_more():
            return False
        self._poll.unregister(self._libpq_fd)
        os.dup2(self._server.fileno(), self._libpq_fd, inheritable=False)
        self._far.close()
        self._far = None
        return True

    def pass_out(self) -> None:
        """Send what libpq has written into the pair, if that is where it writes.

        Raises WireBroken.
        """
        if self._far is None:
            return
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

    def is_short_answer(self, give_up_at: float, *, is_due: bool = False) -> bool:
        """Wait for an answer; say whether all of it is there, for libpq to read by itself.

        For any other the pair stands between from now on. What comes after a short answer unasked
        finds libpq's buffer as small as it is now. give_up_at: time.monotonic. is_due: it is
        there already, as a rule. Raises WireBroken.
        """
        if self._far is not None:
            return False
        said = self._look() if is_due else None
        if said is None:
            self._wait(give_up_at)
            said = self._look()
        if not said:
            raise WireBroken("the end")
        self.beginning = said
        if len(said) < SHORT_BYTES and is_whole_answer(said):
            self.counted += len(said)
            return True
        self.pipe()
        return False

    def _look(self) -> bytes | None:
        try:
            return self._server.recv(SHORT_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        except OSError as exc:
            raise WireBroken from exc

    def _wait(self, give_up_at: float) -> list[tuple[int, int]]:
        ready = self._poll.poll(max((give_up_at - time.monotonic()) * 1000, 0))
        if not ready:
            raise WireBroken("no answer")
        return ready

    def pass_in(self, give_up_at: float) -> None:
        """Wait for the server and let libpq have some of what it says, through the pair.

        give_up_at: time.monotonic. Raises WireBroken, WireFull.
        """
        ready = self._wait(give_up_at)
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
        far = self._far
        if far is None:
            raise WireBroken("not piped")
        try:
            piece = self._server.recv(PIECE_BYTES)
            if piece:
                far.sendall(piece)
            else:
                far.shutdown(socket.SHUT_WR)
        except OSError as exc:
            raise WireBroken from exc
        self.counted += len(piece)
        if self.counted > self._limit_bytes:
            self._last_piece = piece
            raise WireFull

    def close(self) -> None:
        """Let the server know what libpq said last (goodbye), and close."""
        with suppress(OSError):
            if self._far is not None:
                self._server.send(self._far.recv(PIECE_BYTES))
        self._server.close()
        if self._far is not None:
            self._far.close()
