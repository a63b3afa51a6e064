"""A circuit breaker: calls to a brain that does not answer fail in milliseconds."""

import threading
from collections.abc import Callable
from time import monotonic
from typing import Final

FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 30.0


class CircuitBreaker:
    """Opens at the first failure; while it is open, one caller may try after each pause.

    The pause doubles from one to thirty seconds and starts again after a success.
    clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._pause_s = 0.0
        self._retry_at = 0.0

    @property
    def is_open(self) -> bool:
        """True if the last call failed."""
        return self._pause_s > 0

    def allows_call(self) -> bool:
        """True if this caller may try; while the breaker is open, one caller in each pause may."""
        with self._lock:
            if not self._pause_s:
                return True
            now = self._clock()
            if now < self._retry_at:
                return False
            self._retry_at = now + self._pause_s
            return True

    def succeeded(self) -> None:
        """Close the breaker."""
        with self._lock:
            self._pause_s = 0.0

    def failed(self) -> None:
        """Open the breaker, or double its pause."""
        with self._lock:
            self._pause_s = min(max(FIRST_PAUSE_S, 2 * self._pause_s), MAX_PAUSE_S)
            self._retry_at = self._clock() + self._pause_s

    def retry_after_s(self) -> int:
        """Return whole seconds until the next call is allowed, at least one."""
        return max(1, round(self._retry_at - self._clock()))
