"""Forward the bytes between libpq and the server in pieces, so that they can be counted.

libpq reads until a message is complete: one row of ``repeat('x', 1e9)`` takes a gigabyte of this
process before a call returns. So for answers that are not short, libpq gets one end of a socket
pair, and reads only the bytes that were forwarded to it. TLS is between libpq and the server, and
is forwarded unchanged. The rows of a COPY FROM STDIN take the same way out (``CopyIn``).

While it waits for the server, a wire also watches the client's connection (``watch_client``).
"""

import os
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import psycopg
from psycopg.pq.abc import PGconn

from common.web.client_presence import GONE
from sqlgateway.pg.protocol import READY, is_whole_answer

PIECE_BYTES: Final = 64 * 1024
TAIL_BYTES: Final = 8 * 1024
# Answers below this size are inspected (MSG_PEEK) before libpq reads them.
SHORT_BYTES: Final = 4 * 1024
# A server that accepts no bytes for this long is treated as lost.
SEND_S: Final = 10.0


def _left_ms(give_up_at: float) -> float:
    return max((give_up_at - time.monotonic()) * 1000, 0)


class WireBroken(Exception):
    """The server is lost, or was silent for too long."""


class WireFull(Exception):
    """More bytes than allowed arrived without completing a result."""


class Wire:
    """The connection's real socket, and if needed a socket pair between it and libpq.

    Most answers are short and arrive in one piece: ``MSG_PEEK`` shows this, and libpq reads them
    directly. Other answers are piped: libpq reads from the pair until their end. TLS cannot be
    inspected and is always piped.

    counted: bytes since the caller set it to 0.
    beginning: the inspected part of the answer.
    looks_ready: the last piece ended as an answer does; always False with TLS.
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
        self._client_fd: int | None = None
        self._unsent = b""
        self.counted = 0
        self.beginning = b""
        self.looks_ready = False
        if is_encrypted:
            self.pipe()

    @property
    def is_piped(self) -> bool:
        """True if libpq uses the pair."""
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
        """Return the real socket to libpq between two answers; False if there are unread bytes.

        Only for a connection that libpq considers open: otherwise libpq has closed its socket, and
        the file descriptor may belong to another one.
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
        """Send the bytes to the server that libpq wrote into the pair. Raises WireBroken."""
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

    def pump(self, give_up_at: float) -> bool:
        """Forward bytes in both directions; True if nothing is left to send.

        For COPY FROM STDIN: the server may accept no rows for a long time, and it may send notices,
        which must be read before it continues. give_up_at: a time.monotonic().
        Raises WireBroken, WireFull.
        """
        if not self._unsent and self._far is not None:
            with suppress(BlockingIOError):
                self._unsent = self._far.recv(PIECE_BYTES)
        if not self._unsent:
            return True
        both = select.poll()
        both.register(self._server, select.POLLIN | select.POLLOUT)
        both.register(self._libpq_fd, select.POLLIN)
        ready = dict(both.poll(_left_ms(give_up_at)))
        if not ready:
            raise WireBroken("takes nothing")
        events = ready.get(self._server.fileno(), 0)
        # As in pass_in: libpq's end has room for a piece only when libpq has read the last one.
        if events & ~select.POLLOUT and self._libpq_fd not in ready:
            self._take()
        if events & select.POLLOUT:
            try:
                self._unsent = self._unsent[self._server.send(self._unsent) :]
            except OSError as exc:
                raise WireBroken from exc
        return False

    def is_short_answer(self, give_up_at: float, *, is_due: bool = False) -> bool:
        """Wait for an answer; True if all of it has arrived, so that libpq can read it directly.

        Otherwise the answer is piped. give_up_at: a time.monotonic(). is_due: the answer has
        probably arrived already. Raises WireBroken.
        """
        if self._far is not None:
            return False
        said = self._peek() if is_due else None
        if said is None:
            self._wait(give_up_at)
            said = self._peek()
        if not said:
            raise WireBroken("the end")
        self.beginning = said
        if len(said) < SHORT_BYTES and is_whole_answer(said):
            self.counted += len(said)
            return True
        self.pipe()
        return False

    def _peek(self) -> bytes | None:
        try:
            return self._server.recv(SHORT_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        except OSError as exc:
            raise WireBroken from exc

    def watch_client(self, fd: int, on_gone: Callable[[], None]) -> None:
        """Call ``on_gone`` once if the client disconnects before the answer has been read."""
        self._client_fd, self._on_gone = fd, on_gone
        self._poll.register(fd, GONE)

    def forget_client(self) -> None:
        """Stop watching the client; the file descriptor may soon belong to another socket."""
        if self._client_fd is not None:
            self._poll.unregister(self._client_fd)
            self._client_fd = None

    def _wait(self, give_up_at: float) -> list[tuple[int, int]]:
        while ready := self._poll.poll(_left_ms(give_up_at)):
            gone = self._client_fd
            if gone is None or all(fd != gone for fd, _ in ready):
                return ready
            self.forget_client()
            self._on_gone()
        raise WireBroken("no answer")

    def pass_in(self, give_up_at: float) -> None:
        """Wait for the server and forward some of its bytes to libpq through the pair.

        give_up_at: a time.monotonic(). Raises WireBroken, WireFull.
        """
        ready = self._wait(give_up_at)
        # libpq must read the last piece first, so that its end has room for another one.
        if any(fd == self._libpq_fd for fd, _ in ready):
            return
        self._take()

    def has_more(self) -> bool:
        """True if there is anything to read, including the end of the connection."""
        return bool(self._poll.poll(0))

    def tail(self) -> bytes:
        """Read the server's bytes after the limit was exceeded, and return their end."""
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
        self.looks_ready = piece[-6:-1] == READY
        if self.counted > self._limit_bytes:
            self._last_piece = piece
            raise WireFull

    def close(self) -> None:
        """Forward libpq's last message (terminate) and close."""
        with suppress(OSError):
            if self._far is not None:
                self._server.send(self._far.recv(PIECE_BYTES))
        self._server.close()
        if self._far is not None:
            self._far.close()


class CopyBroken(Exception):
    """The connection broke, or the server accepted no data for too long; no row is kept."""


class CopyIn:
    """The sending side of a COPY. give_up_at: the time.monotonic() at which it fails."""

    def __init__(self, pgconn: PGconn, wire: Wire, *, give_up_at: float) -> None:
        self._pgconn = pgconn
        self._wire = wire
        self._give_up_at = give_up_at

    def put(self, piece: bytes) -> bool:
        """Send rows; return when they are written to the socket. False if the COPY has failed.

        Raises CopyBroken.
        """
        # During a COPY libpq buffers nothing: notices are passed on immediately.
        self._wire.counted, self._wire.looks_ready = 0, False
        try:
            self._pgconn.put_copy_data(piece)
            self._flush()
        except (WireBroken, WireFull, psycopg.Error) as exc:
            raise CopyBroken from exc
        # Only an error ends a COPY before its sender does. libpq reports it at the end of the COPY.
        return not self._wire.looks_ready

    def end(self, *, error: bytes | None = None) -> None:
        """End the COPY; its result can be read afterwards. With an error the server refuses it.

        Raises CopyBroken.
        """
        try:
            self._pgconn.put_copy_end(error)
            self._flush()
        except (WireBroken, WireFull, psycopg.Error) as exc:
            raise CopyBroken from exc

    def _flush(self) -> None:
        is_flushing = True
        while is_flushing:
            is_flushing = bool(self._pgconn.flush())
            while not self._wire.pump(self._give_up_at):
                self._pgconn.consume_input()
                # Lets libpq parse the input, which it would otherwise buffer until the end.
                self._pgconn.is_busy()
                while self._pgconn.notifies() is not None:
                    self._wire.counted = 0
