"""Cancel a request from another thread, whether it has begun or not."""

import threading
from collections.abc import Callable


class Cancellation:
    """The way to cancel one request. is_requested: True once it was used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._act: Callable[[], None] | None = None
        self.is_requested = False

    def request(self) -> None:
        """Cancel the request; without effect once it has ended."""
        with self._lock:
            self.is_requested = True
            act = self._act
        if act is not None:
            act()

    def attach(self, act: Callable[[], None]) -> None:
        """Set what cancels the request; called immediately if that was requested before."""
        with self._lock:
            self._act = act
            is_due = self.is_requested
        if is_due:
            act()
