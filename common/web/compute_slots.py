"""The executor of a web process: many threads, of which one computes at a time.

Waiting threads cost little, but computing threads take the interpreter lock from each other every
few milliseconds, in the middle of requests that need only one millisecond. So a thread computes
with the slot of the process, and gives it back while it waits (``waiting``).

The slot is a plain lock: the thread that runs gets it, not the one that has waited for longest,
which a busy machine may not run for milliseconds. A thread that has waited for MAX_WAIT_S computes
all the same, with a new slot for all: a request may keep its own for long, as one whose client
reads slowly.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

MAX_WAIT_S: Final = 0.025
# How long waits for PostgreSQL keep the slot: most are shorter, and switching to another request
# would take longer.
SHORT_WAIT_MS: Final = 1

# Free before the fork of a process.
_slot = threading.Lock()
_renewal = threading.Lock()
# is_one: of the executor. slot: that it has, None if it computes without one.
_thread = threading.local()


@contextmanager
def waiting() -> Iterator[None]:
    """Give the slot back while the block waits; no effect outside of the executor's threads."""
    if not getattr(_thread, "is_one", False):
        yield
        return
    _give_back()
    try:
        yield
    finally:
        _take()


def _take() -> None:
    global _slot  # noqa: PLW0603 - the process has one
    slot = _slot
    if slot.acquire(timeout=MAX_WAIT_S):
        _thread.slot = slot
        return
    with _renewal:
        _thread.slot = None
        if _slot is slot:
            _slot = _thread.slot = threading.Lock()
            _slot.acquire()


def _give_back() -> None:
    slot, _thread.slot = _thread.slot, None
    if slot is not None:
        slot.release()


def _begin_thread() -> None:
    _thread.is_one = True


class ComputeSlots(ThreadPoolExecutor):
    """The threads that answer requests."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads, "request", _begin_thread)

    def submit(
        self, function: Callable[..., Any], /, *arguments: Any, **options: Any
    ) -> Future[Any]:
        """Run a function in a thread with the slot; return its result's future."""
        return super().submit(_compute, function, *arguments, **options)


def _compute(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    _take()
    try:
        return function(*arguments, **options)
    finally:
        _give_back()
