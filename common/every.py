"""What a process does again and again."""

import threading
from collections.abc import Callable
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class Every:
    """Calls a function every ``seconds``, in a thread of its own, from the first ``start`` on.

    An error is logged, and the function is called again. name: of the thread, as the log has it.
    """

    def __init__(self, seconds: float, function: Callable[[], Any], *, name: str) -> None:
        self.seconds = seconds
        self._function = function
        self._name = name
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_stopping(self) -> bool:
        """True if the function is called for the last time."""
        return self._stopping.is_set()

    def start(self) -> None:
        """Start the thread if it does not run; cheap enough to be called for each request."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Have the function called for the last time, if the thread runs; wait for its end."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stopping.wait(self.seconds)
            try:
                self._function()
            except Exception:
                log.exception("repeated_work_failed", thread=self._name)
