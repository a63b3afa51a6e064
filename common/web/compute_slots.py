"""A pool of threads of which only a few compute at the same time.

Waiting threads cost little, but computing threads exchange the interpreter lock every few
milliseconds, in the middle of requests that need only one millisecond. So a process has many
threads and few slots: a thread computes in a slot, gives it back during a wait (``waiting``), and
counts as waiting if it has kept the slot for MAX_HOLD_S. A thread that finishes a request takes the
next one itself, and of the idle threads the last used one is chosen, because its database
connection and the processor's caches are warm. Each key has a share of the threads, because a
client that reads its response slowly holds one.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar, cast

import structlog

from common.fair_limiter import FairLimiter

MAX_HOLD_S: Final = 0.025
# How long waits for PostgreSQL keep their slot: most are shorter, and switching to another request
# would take longer.
SHORT_WAIT_MS: Final = 1

log = structlog.get_logger(__name__)


class _WorkerThread:
    """A thread. job: with its key. since: when it got its slot (time.monotonic)."""

    __slots__ = ("job", "since", "slots", "wake")

    def __init__(self, slots: "ComputeSlots", job: "_Job") -> None:
        self.slots = slots
        self.job: _Job | None = job
        self.since = 0.0
        self.wake = threading.Lock()
        self.wake.acquire()


# The key, and the argument of ``work``.
_Job = tuple[Hashable | None, Any]

T = TypeVar("T")

_local = threading.local()


class _Turns(Generic[T]):
    """Queues, one for each key, served round-robin."""

    def __init__(self) -> None:
        self._queues: OrderedDict[Hashable | None, deque[T]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __bool__(self) -> bool:
        return bool(self._queues)

    def append(self, key: Hashable | None, item: T) -> None:
        """Append to the queue of a key."""
        self._queues.setdefault(key, deque()).append(item)

    def pop(
        self, accept: Callable[[Hashable | None], bool] = lambda _: True
    ) -> tuple[Hashable | None, T] | None:
        """Return the first item of the next accepted key; None without one."""
        for key, items in self._queues.items():
            if not accept(key):
                continue
            item = items.popleft()
            if items:
                self._queues.move_to_end(key)
            else:
                del self._queues[key]
            return key, item
        return None

    def remove(self, key: Hashable | None, item: T) -> bool:
        """Remove an item from its queue; False if it is no longer there."""
        items = self._queues.get(key)
        if items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del self._queues[key]
        return True


@contextmanager
def waiting() -> Iterator[None]:
    """Release the slot while the block waits; no effect outside of a slot."""
    thread: _WorkerThread | None = getattr(_local, "thread", None)
    if thread is None:
        yield
        return
    thread.slots.give_back(thread)
    try:
        yield
    finally:
        thread.slots.reacquire(thread)


def current_key() -> Hashable | None:
    """Return the key of the job that this thread runs; None without one."""
    thread: _WorkerThread | None = getattr(_local, "thread", None)
    return thread.job[0] if thread is not None and thread.job is not None else None


class ComputeSlots:
    """A pool of threads that runs jobs, at most ``slots`` of them computing.

    Jobs wait in a queue for each key, served round-robin. A key holds at most as many threads as it
    leaves free; the key None has no limit.
    """

    def __init__(self, work: Callable[[Any], None], *, slots: int, threads: int) -> None:
        self._work = work
        self._limit = slots
        self._threads_left = threads
        self._busy = FairLimiter(threads)
        self._lock = threading.Lock()
        self._queue = _Turns[Any]()
        self._idle: list[_WorkerThread] = []
        self._returning = _Turns[_WorkerThread]()
        self._holders: set[_WorkerThread] = set()

    @property
    def is_backed_up(self) -> bool:
        """True if jobs wait, so that ``reclaim_overdue_slots`` must be called soon."""
        return bool(self._queue)

    def submit(self, job: Any, key: Hashable | None) -> None:
        """Run a job as soon as there is a slot and a thread for it."""
        with self._lock:
            self._queue.append(key, job)
            self._dispatch()

    def shutdown(self, *, wait: bool) -> None:
        """Do nothing: the threads end with the process. gunicorn calls this on its executor."""

    def reclaim_overdue_slots(self) -> None:
        """Take the slots from threads that have kept them for too long."""
        latest = time.monotonic() - MAX_HOLD_S
        with self._lock:
            overdue = [thread for thread in self._holders if thread.since <= latest]
            self._holders.difference_update(overdue)
            self._dispatch()

    def give_back(self, thread: _WorkerThread) -> None:
        """Release the slot for another thread."""
        with self._lock:
            self._holders.discard(thread)
            self._dispatch()

    def reacquire(self, thread: _WorkerThread) -> None:
        """Wait for a slot, with priority over new jobs, for MAX_HOLD_S at most.

        Keys are served round-robin here as well.
        """
        key = cast(_Job, thread.job)[0]
        with self._lock:
            if len(self._holders) < self._limit:
                self._grant(thread)
                return
            self._returning.append(key, thread)
        if thread.wake.acquire(timeout=MAX_HOLD_S):
            return
        with self._lock:
            if self._returning.remove(key, thread):
                return
        # The slot was granted when the wait timed out.
        thread.wake.acquire()

    def _grant(self, thread: _WorkerThread) -> None:
        thread.since = time.monotonic()
        self._holders.add(thread)

    def _dispatch(self) -> None:
        while len(self._holders) < self._limit:
            if returning := self._returning.pop():
                thread = returning[1]
                self._grant(thread)
                thread.wake.release()
            elif (job := self._next_job()) is None:
                return
            elif self._idle:
                thread = self._idle.pop()
                thread.job = job
                self._grant(thread)
                thread.wake.release()
            else:
                self._start(job)

    def _next_job(self) -> _Job | None:
        """Return the first job whose key may hold one more thread; None without one."""
        if not (self._idle or self._threads_left):
            return None
        return self._queue.pop(self._busy.try_take)

    def _start(self, job: _Job) -> None:
        self._threads_left -= 1
        thread = _WorkerThread(self, job)
        self._grant(thread)
        threading.Thread(target=self._run, args=(thread,), name="request", daemon=True).start()

    def _run(self, thread: _WorkerThread) -> None:
        _local.thread = thread
        while True:
            # A thread is woken only with a job.
            key, job = cast(_Job, thread.job)
            try:
                self._work(job)
            except Exception:
                # The thread must not end, or the pool would lose it.
                log.exception("request_thread_failed")
            thread.job = job = None
            with self._lock:
                self._busy.give_back(key)
                self._holders.discard(thread)
                self._idle.append(thread)
                # Uses this thread, the last of the idle ones, if a job waits.
                self._dispatch()
            thread.wake.acquire()
