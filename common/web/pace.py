"""The minimum rate at which a client must send and receive while a thread waits for it."""

import time
from typing import Any, Final

# The key of a request's rates in the WSGI environment.
PACES_KEY: Final = "zonal.paces"
# A body must arrive within this time, and one second more for each SLOWEST_BYTES_PER_S bytes.
RECEIVE_S: Final = 10.0
SLOWEST_BYTES_PER_S: Final = 32 * 1024
# The same for responses: mobile clients may be slow.
SLOWEST_TAKEN_BYTES_PER_S: Final = 8 * 1024


class MinimumRate:
    """Counts how long a thread has waited for a client, and for how many bytes.

    The client must reach a rate of at least ``slowest_bytes_per_s``.
    """

    def __init__(self, slowest_bytes_per_s: int = SLOWEST_BYTES_PER_S) -> None:
        self._slowest = slowest_bytes_per_s
        self._waited_s = 0.0
        self._moved_bytes = 0
        self._has_own_limit = False

    def disable_minimum_rate(self) -> None:
        """Accept any rate from now on: the request has its own limit."""
        self._has_own_limit = True

    def count(self, waited_s: float, size_bytes: int) -> None:
        """Count a wait. Raises TimeoutError if the client was too slow."""
        self._waited_s += waited_s
        self._moved_bytes += size_bytes
        allowed_s = RECEIVE_S + self._moved_bytes / self._slowest
        if self._waited_s > allowed_s and not self._has_own_limit:
            raise TimeoutError("The client was too slow.")


class PacedSocket:
    """A socket for gunicorn's parser to read from, with a minimum rate.

    The system's timeout restarts with each byte: a client that sends one every few seconds could
    hold the thread for any time.
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
    """Disable the minimum rate of a request that has its own limit; no effect in other servers."""
    for pace in environ.get(PACES_KEY, ()):
        pace.disable_minimum_rate()
