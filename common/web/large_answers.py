"""Threads that send answers which the system does not keep for a client that reads slowly.

The proxy passes an answer on as it comes, so a client that reads a byte a second keeps a thread.
One organization, or network of anonymous clients, has half of these threads at most, and leaves as
many free: beyond that, the answer that it has read for longest is cut off. Where others have all of
them, it is one of the holder that has the most.
"""

import socket
import threading
from collections import Counter
from contextlib import suppress
from typing import Any, Final

from django.http.response import HttpResponseBase

from common.fair_limiter import FairLimiter
from common.web import client_presence

# Linux keeps as much of a connection's bytes, of a Unix socket's too; most TCP connections' more.
LARGE_BYTES: Final = 3 * 2**16
# The key of an answer's share in the WSGI environment.
SHARE: Final = "zonal.large_answer"


class LargeAnswers:
    """The large answers that a process sends, in this many threads."""

    def __init__(self, threads: int) -> None:
        self._shares = FairLimiter(threads)
        self._lock = threading.Lock()
        # The oldest first, without those that were cut off.
        self._open: dict[socket.socket, int | str | None] = {}

    def begin(self, environ: dict[str, Any], response: HttpResponseBase) -> None:
        """Count an answer until ``end``, if it is large and gunicorn sends it."""
        client, key = environ.get("gunicorn.socket"), client_presence.share_key()
        size = response.get("Content-Length", "")
        if client is None or (int(size) <= LARGE_BYTES if size else not response.streaming):
            return
        with self._lock:
            if not self._shares.try_take(key):
                self._cut_one(key)
                self._shares.take(key)
            self._open[client] = key
            environ[SHARE] = key

    def end(self, environ: dict[str, Any]) -> None:
        """Return the share of an answer, if it has one."""
        if SHARE not in environ:
            return
        with self._lock:
            self._open.pop(environ["gunicorn.socket"], None)
            self._shares.give_back(environ.pop(SHARE))

    def _cut_one(self, key: int | str | None) -> None:
        """End the connection of the oldest answer of a key, or of the one that has the most."""
        held = Counter(self._open.values())
        if key not in held:
            # A few holders together have all threads.
            key = held.most_common(1)[0][0] if held else None
        client = next((client for client, holder in self._open.items() if holder == key), None)
        if client is not None:
            del self._open[client]
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
