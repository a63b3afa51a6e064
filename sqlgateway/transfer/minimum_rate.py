"""The minimum rate of uploads and downloads, so that slow clients do not hold threads and slots.

A thread that reads from or writes to a client's socket waits inside the web server, which has no
time limit for this. So a thread in each process measures how long each piece takes, and shuts the
socket down if a client is too slow.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from common.every import Every

MIN_BYTES_PER_S: Final = 16_384
# Added to the time of every piece, because networks may stall for a moment.
STALL_S: Final = 5.0
TICK_S: Final = 0.25


class Transfer:
    """The upload or download of one body.

    has_ended_late: the socket was shut down because of the rate or the deadline.
    """

    def __init__(self, connection: socket.socket | None, deadline: float, how: int) -> None:
        self._connection = connection
        self._deadline = deadline
        self._how = how
        self._due: float | None = None
        self._lock = threading.Lock()
        self.has_ended_late = False

    @contextmanager
    def time_limit(self, size_bytes: int) -> Iterator[None]:
        """Limit the time of the block to that of a piece of this size."""
        allowed_s = STALL_S + size_bytes / MIN_BYTES_PER_S
        with self._lock:
            self._due = min(time.monotonic() + allowed_s, self._deadline)
        try:
            yield
        finally:
            with self._lock:
                self._due = None

    def end_if_late(self, now: float) -> None:
        """Shut the socket down if the time of its piece is over."""
        # Under the lock, so that the block has not ended and the socket still serves this request.
        with self._lock:
            if self._due is None or now < self._due:
                return
            self._due = None
            self.has_ended_late = True
            if self._connection is not None:
                with suppress(OSError):
                    self._connection.shutdown(self._how)


class TransferMonitor:
    """The thread that checks all transfers of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._transfers: set[Transfer] = set()
        self._checks = Every(TICK_S, self._end_late, name="sql-pace")

    @contextmanager
    def upload(self, environ: dict[str, Any], *, deadline: float) -> Iterator[Transfer]:
        """Monitor a request's body; if it is late, reading ends as if the client had disconnected.

        environ: the WSGI environment, with gunicorn's socket. deadline: a time.monotonic().
        """
        yield from self._watch(environ, deadline, socket.SHUT_RD)

    @contextmanager
    def download(self, environ: dict[str, Any], *, deadline: float) -> Iterator[Transfer]:
        """Monitor a response's body; if it is late, writing fails as if the client had left."""
        yield from self._watch(environ, deadline, socket.SHUT_RDWR)

    def _watch(self, environ: dict[str, Any], deadline: float, how: int) -> Iterator[Transfer]:
        transfer = Transfer(environ.get("gunicorn.socket"), deadline, how)
        with self._lock:
            self._transfers.add(transfer)
        self._checks.start()
        try:
            yield transfer
        finally:
            with self._lock:
                self._transfers.discard(transfer)

    def _end_late(self) -> None:
        with self._lock:
            watched = tuple(self._transfers)
        now = time.monotonic()
        for transfer in watched:
            transfer.end_if_late(now)


TRANSFER_MONITOR: Final = TransferMonitor()
