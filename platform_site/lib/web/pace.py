"""The slowest rate at which a client may send and take, while a thread waits for it."""

import time
from typing import Any, Final

# The name of a request's in the WSGI environment.
PACES_KEY: Final = "zonal.paces"
# A body must arrive within this time, and one second more for each SLOWEST_BYTES_PER_S bytes.
RECEIVE_S: Final = 10.0
SLOWEST_BYTES_PER_S: Final = 32 * 1024
# The same of an answer, most of which go to browsers: a phone may be far from its mast.
SLOWEST_TAKEN_BYTES_PER_S: Final = 8 * 1024


class MinimumRate:
    """Counts how long a thread has waited for a client, and for how many bytes.

    Limits the client to a rate of at least ``slowest_bytes_per_s``.
    """

    def __init__(self, slowest_bytes_per_s: int = SLOWEST_BYTES_PER_S) -> None:
        self._slowest = slowest_bytes_per_s
        self._waited_s = 0.0
        self._moved_bytes = 0
        self._has_own_limit = False

    def disable_minimum_rate(self) -> None:
        """Accept any rate from now on: the request has a limit of its own."""
        self._has_own_limit = True

    def count(self, waited_s: float, size_bytes: int) -> None:
        """Count a wait. Raises TimeoutError if the client was too slow."""
        self._waited_s += waited_s
        self._moved_bytes += size_bytes
        allowed_s = RECEIVE_S + self._moved_bytes / self._slowest
        if self._waited_s > allowed_s and not self._has_own_limit:
            raise TimeoutError("The client was too slow.")


class PacedSocket:
    """A socket to read from, as gunicorn's parser uses one.

    The system's timeout counts from each byte: a client that sends one every few seconds would keep
    the thread for as long as it likes.
    """

    def __init__(self, sock: Any, pace: MinimumRate) -> None:
        self._sock = sock
        self._pace = pace

    def recv(self, size: int) -> bytes:
        """Read. Raises TimeoutError, and what a socket raises."""
        began = time.monotonic()
        piece: bytes = self._sock.recv(size)
        self._pace.count(time.monotonic() - began, len(piece))
        return piece

    def gettimeout(self) -> float | None:
        """Return the socket's own timeout."""
        timeout: float | None = self._sock.gettimeout()
        return timeout

    def settimeout(self, timeout_s: float | None) -> None:
        """Set the socket's own timeout."""
        self._sock.settimeout(timeout_s)


def disable_minimum_rate(environ: dict[str, Any]) -> None:
    """Let a request's own limit decide how slow its client may be; without effect elsewhere."""
    for pace in environ.get(PACES_KEY, ()):
        pace.disable_minimum_rate()
