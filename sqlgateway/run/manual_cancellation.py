"""Cancel a request because DELETE /v1/sql/{id} asked for it.

The watchdog (sqlgateway/pg/watchdog.py) cancels requests at their deadline, and when their
client disconnects.
"""

import threading
from collections.abc import Callable


class Cancellation:
    """Cancels one request, from any thread. is_requested: True once ``request`` was called."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._act: Callable[[], None] | None = None
        self.is_requested = False

    def request(self) -> None:
        """Cancel the request; it does not start if it has not started yet."""
        with self._lock:
            self.is_requested = True
            act = self._act
        if act is not None:
            act()

    def attach(self, act: Callable[[], None]) -> None:
        """Set the function that cancels the request; call it if that was requested before."""
        with self._lock:
            self._act = act
            is_due = self.is_requested
        if is_due:
            act()
