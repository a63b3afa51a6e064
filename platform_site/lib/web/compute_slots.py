"""Threads of which only a few compute at a time.

Many threads cost little while they wait, but those that compute take the interpreter lock from each
other every few milliseconds, in the middle of requests of one. So a process has many threads and
few slots: a thread computes in a slot, gives it back around a wait (``waiting``), and counts as
waiting if it kept one for LONGEST_HOLD_S, whatever it waits for. A thread that ends a request takes
the next one itself, and of the idle threads the last used goes first: its database connection and
the processor's caches are warm. Of the threads each key has a share, as a client that takes its
answer slowly holds one.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar, cast

import structlog

from platform_site.lib.fair_limiter import FairLimiter

LONGEST_HOLD_S: Final = 0.025
# How long the frequent waits for PostgreSQL keep their slot: most are over by then, and giving it
# to another request would take longer.
SHORT_WAIT_MS: Final = 1

log = structlog.get_logger(__name__)


class _Runner:
    """A thread. job: with its key. since: when it got its slot (time.monotonic)."""

    __slots__ = ("job", "since", "slots", "wake")

    def __init__(self, slots: "ComputeSlots", job: "_Job") -> None:
        self.slots = slots
        self.job: _Job | None = job
        self.since = 0.0
        self.wake = threading.Lock()
        self.wake.acquire()


# The key, and what ``work`` is called with.
_Job = tuple[Hashable | None, Any]

T = TypeVar("T")

_local = threading.local()


class _Turns(Generic[T]):
    """Queues, one for each key; the keys take turns."""

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
        """Return the first of the next key that is accepted; None without one."""
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
        """Take an item out of its queue; False if it is not there any more."""
        items = self._queues.get(key)
        if items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del self._queues[key]
        return True


@contextmanager
def waiting() -> Iterator[None]:
    """Let another request use the slot while the block waits; no effect outside of a slot."""
    runner: _Runner | None = getattr(_local, "runner", None)
    if runner is None:
        yield
        return
    runner.slots.give_back(runner)
    try:
        yield
    finally:
        runner.slots.take_again(runner)


class ComputeSlots:
    """A pool of threads that runs jobs, at most ``slots`` of them computing.

    Jobs wait in a queue for each key, and the keys take turns. A key holds no more threads than it
    leaves free; the jobs of key None hold what there is.
    """

    def __init__(self, work: Callable[[Any], None], *, slots: int, threads: int) -> None:
        self._work = work
        self._limit = slots
        self._threads_left = threads
        self._busy = FairLimiter(threads)
        self._lock = threading.Lock()
        self._queue = _Turns[Any]()
        self._idle: list[_Runner] = []
        self._returning = _Turns[_Runner]()
        self._holders: set[_Runner] = set()

    @property
    def is_backed_up(self) -> bool:
        """True if jobs wait, so that ``relieve`` must be called soon."""
        return bool(self._queue)

    def submit(self, job: Any, key: Hashable | None) -> None:
        """Run a job as soon as there is a slot and a thread for it."""
        with self._lock:
            self._queue.append(key, job)
            self._dispatch()

    def shutdown(self, *, wait: bool) -> None:
        """Do nothing, as its threads end with the process: gunicorn asks an executor for this."""

    def relieve(self) -> None:
        """Take their slots from threads that kept them for too long."""
        latest = time.monotonic() - LONGEST_HOLD_S
        with self._lock:
            late = [runner for runner in self._holders if runner.since <= latest]
            self._holders.difference_update(late)
            self._dispatch()

    def give_back(self, runner: _Runner) -> None:
        """Let another thread compute."""
        with self._lock:
            self._holders.discard(runner)
            self._dispatch()

    def take_again(self, runner: _Runner) -> None:
        """Wait for a slot, before any job that has not begun, for LONGEST_HOLD_S at most.

        Keys take turns here as well.
        """
        key = cast(_Job, runner.job)[0]
        with self._lock:
            if len(self._holders) < self._limit:
                self._grant(runner)
                return
            self._returning.append(key, runner)
        if runner.wake.acquire(timeout=LONGEST_HOLD_S):
            return
        with self._lock:
            if self._returning.remove(key, runner):
                return
        # The slot was granted at the moment the wait ended.
        runner.wake.acquire()

    def _grant(self, runner: _Runner) -> None:
        runner.since = time.monotonic()
        self._holders.add(runner)

    def _dispatch(self) -> None:
        while len(self._holders) < self._limit:
            if returning := self._returning.pop():
                runner = returning[1]
                self._grant(runner)
                runner.wake.release()
            elif (job := self._next_job()) is None:
                return
            elif self._idle:
                runner = self._idle.pop()
                runner.job = job
                self._grant(runner)
                runner.wake.release()
            else:
                self._start(job)

    def _next_job(self) -> _Job | None:
        """Return the first job whose key may hold one more thread; None without one."""
        if not (self._idle or self._threads_left):
            return None
        return self._queue.pop(self._busy.try_take)

    def _start(self, job: _Job) -> None:
        self._threads_left -= 1
        runner = _Runner(self, job)
        self._grant(runner)
        threading.Thread(target=self._run, args=(runner,), name="request", daemon=True).start()

    def _run(self, runner: _Runner) -> None:
        _local.runner = runner
        while True:
            # A thread is woken only with a job.
            key, job = cast(_Job, runner.job)
            try:
                self._work(job)
            except Exception:
                # The thread must live on, or its place would be lost.
                log.exception("request_thread_failed")
            runner.job = job = None
            with self._lock:
                self._busy.give_back(key)
                self._holders.discard(runner)
                self._idle.append(runner)
                # Takes this thread, the last of the idle ones, if anything waits.
                self._dispatch()
            runner.wake.acquire()
