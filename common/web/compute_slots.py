"""The executor of a web process: many threads, of which one computes at a time.

Waiting threads cost little, but computing threads take the interpreter lock from each other every
few milliseconds, in the middle of requests that need only one millisecond. So one thread has the
slot: it gives the slot back while it waits (``waiting``), and loses it after MAX_HOLD_S. A thread
that finishes a request takes the next one itself, and of the idle threads the last used one is
chosen, because its database connection and the processor's caches are warm.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, Final, cast

MAX_HOLD_S: Final = 0.025
# How long waits for PostgreSQL keep the slot: most are shorter, and switching to another request
# would take longer.
SHORT_WAIT_MS: Final = 1

_Task = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]
_local = threading.local()


class _WorkerThread:
    """A thread with its task. since: when it got the slot (time.monotonic)."""

    __slots__ = ("since", "slots", "task", "wake")

    def __init__(self, slots: "ComputeSlots") -> None:
        self.slots = slots
        self.task: _Task | None = None
        self.since = 0.0
        self.wake = threading.Lock()
        self.wake.acquire()


@contextmanager
def waiting() -> Iterator[None]:
    """Give the slot back while the block waits; no effect outside of the executor's threads."""
    thread: _WorkerThread | None = getattr(_local, "thread", None)
    if thread is None:
        yield
        return
    thread.slots.give_back(thread)
    try:
        yield
    finally:
        thread.slots.reacquire(thread)


class ComputeSlots(Executor):
    """Runs tasks in the order in which they came, in at most this many threads."""

    def __init__(self, threads: int) -> None:
        self._lock = threading.Lock()
        self._threads_left = threads
        self._idle: list[_WorkerThread] = []
        self._tasks: deque[_Task] = deque()
        # Threads whose wait is over; they get the slot before new tasks.
        self._returning: deque[_WorkerThread] = deque()
        self._holder: _WorkerThread | None = None
        self._is_backed_up = threading.Event()
        threading.Thread(target=self._reclaim, name="compute-slot", daemon=True).start()

    def submit(
        self, function: Callable[..., Any], /, *arguments: Any, **options: Any
    ) -> Future[Any]:
        """Run a function as soon as the slot and a thread are free; return its result's future."""
        future: Future[Any] = Future()
        with self._lock:
            self._tasks.append((future, function, arguments, options))
            self._dispatch()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: the threads end with the process."""

    def give_back(self, thread: _WorkerThread) -> None:
        """Give the slot of a thread, if it still has it, to another one."""
        with self._lock:
            if self._holder is thread:
                self._holder = None
                self._dispatch()

    def reacquire(self, thread: _WorkerThread) -> None:
        """Wait for the slot."""
        with self._lock:
            if self._holder is None:
                self._holder, thread.since = thread, time.monotonic()
                return
            self._returning.append(thread)
            self._is_backed_up.set()
        thread.wake.acquire()

    def _dispatch(self) -> None:
        """Give a free slot to a thread that returns from a wait, else to the next task."""
        thread = None
        if self._holder is None and self._returning:
            thread = self._returning.popleft()
        elif self._holder is None and self._tasks and (self._idle or self._threads_left):
            thread = self._idle.pop() if self._idle else self._start()
            thread.task = self._tasks.popleft()
        if thread is not None:
            self._holder, thread.since = thread, time.monotonic()
            thread.wake.release()
        if self._tasks and not self._is_backed_up.is_set():
            self._is_backed_up.set()

    def _start(self) -> _WorkerThread:
        thread = _WorkerThread(self)
        threading.Thread(target=self._run, args=(thread,), name="request", daemon=True).start()
        self._threads_left -= 1
        return thread

    def _run(self, thread: _WorkerThread) -> None:
        _local.thread = thread
        while thread.wake.acquire():
            # A thread without a task is woken only with one.
            future, function, arguments, options = cast(_Task, thread.task)
            try:
                future.set_result(function(*arguments, **options))
            except BaseException as exc:  # noqa: BLE001 - the future has it, and the thread goes on
                future.set_exception(exc)
            thread.task = None
            del future, function, arguments, options
            with self._lock:
                if self._holder is thread:
                    self._holder = None
                self._idle.append(thread)
                # Takes this thread, the last of the idle ones, if a task waits.
                self._dispatch()

    def _reclaim(self) -> None:
        """Take the slot from threads that keep it for too long while others need it."""
        while self._is_backed_up.wait():
            time.sleep(MAX_HOLD_S)
            with self._lock:
                holder = self._holder
                if holder is not None and holder.since <= time.monotonic() - MAX_HOLD_S:
                    self._holder = None
                    self._dispatch()
                if not (self._tasks or self._returning):
                    self._is_backed_up.clear()
