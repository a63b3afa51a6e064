"""Wait for other processes and threads."""

import time
from collections.abc import Callable
from typing import Final

LIMIT_S: Final = 30.0
PAUSE_S: Final = 0.02


def wait_until(question: Callable[[], object], *, timeout_s: float = LIMIT_S) -> None:
    """Repeat a question until it is true."""
    deadline = time.monotonic() + timeout_s
    while not question():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(PAUSE_S)
