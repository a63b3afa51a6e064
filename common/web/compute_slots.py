"""The executor of a web process: many threads, of which one computes at a time.

Waiting threads cost little, but computing threads take the interpreter lock from each other every
few milliseconds, in the middle of requests that need only one millisecond. So a thread computes
with the slot of the process, and gives it back while it waits (``waiting``).

The slot is a plain lock: the thread that runs gets it, not the one that has waited for longest,
which a busy machine may not run for milliseconds. After MAX_WAIT_S a thread computes without the
slot, so a request that keeps it delays nobody for long.
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


class _RequestThread(threading.local):
    """is_one: this thread is the executor's. has_slot: it did not wait for too long."""

    is_one = False
    has_slot = False


_thread = _RequestThread()


@contextmanager
def waiting() -> Iterator[None]:
    """Give the slot back while the block waits; no effect outside of the executor's threads."""
    if not _thread.is_one:
        yield
        return
    _give_back()
    try:
        yield
    finally:
        _take()


def _take() -> None:
    _thread.has_slot = _slot.acquire(timeout=MAX_WAIT_S)


def _give_back() -> None:
    if _thread.has_slot:
        _thread.has_slot = False
        _slot.release()


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
