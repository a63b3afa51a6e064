"""gunicorn's threaded worker with turns: few requests of a process at once, and fairly.

Threads of one process take the interpreter lock from each other with every call into a socket or
a database; eight of them spend as much time on that as on their requests. And whoever keeps more
connections busy gets more of the process. So at most ACTIVE requests have their turn at once; one
that takes longer than PATIENCE_S (a tenant's slow statement, a slow client) goes on without
counting, so that nobody waits for it. Those that wait are started in turn by caller, each caller's
in their order: ``platform_site.lib.callers`` knows whose connection one is.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from gunicorn.workers.gthread import TConn, ThreadWorker

from platform_site.lib import callers

ACTIVE: Final = 2
PATIENCE_S: Final = 0.003
# How long somebody looks at the clock without anybody waiting.
LINGER_S: Final = 1.0


@dataclass(slots=True)
class Job:
    """One request: what handles it, and who waits for it to be handled."""

    handle: Callable[[TConn], Any]
    connection: TConn
    done: Future[Any] = field(default_factory=Future)

    def run(self) -> None:
        """Handle it; whatever happens is in ``done``."""
        try:
            self.done.set_result(self.handle(self.connection))
        except BaseException as exc:  # as an executor does: nothing may end the thread
            self.done.set_exception(exc)


class Seat:
    """One thread's place: asleep until it is given a job."""

    __slots__ = ("job", "wakes")

    def __init__(self) -> None:
        self.job: Job | None = None
        self.wakes = threading.Semaphore(0)


class Turns:
    """A pool of threads, of which few have their turn (for ThreadWorker.get_thread_pool)."""

    def __init__(self, threads: int, *, active: int = ACTIVE, patience_s: float = PATIENCE_S):
        self._threads = threads
        self._active = active
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._waiting: OrderedDict[object, deque[Job]] = OrderedDict()
        # By when they began; the thread used last is woken first, its connections are warm.
        self._running: dict[Seat, float] = {}
        self._idle: list[Seat] = []
        self._made = 0
        self._is_watched = self._is_over = False

    def submit(self, handle: Callable[[TConn], Any], connection: TConn) -> Future[Any]:
        """Have a connection's request handled when its turn comes."""
        job = Job(handle, connection)
        with self._changed:
            key = callers.of(connection.sock)
            self._waiting.setdefault(key, deque()).append(job)
            self._give_turns()
            if self._waiting and not self._is_watched:
                self._watch()
        return job.done

    def shutdown(self, wait: bool = True) -> None:
        """Let the threads end, each after the request that it is at.

        wait: as an executor takes it; nobody waits here.
        """
        with self._changed:
            self._is_over = True
            while self._idle:
                self._idle.pop().wakes.release()
            self._changed.notify_all()

    # --- all of this holds the lock -----------------------------------------------------------

    def _give_turns(self) -> None:
        """Start what may start."""
        while self._waiting and self._may_start():
            if self._idle:
                seat = self._idle.pop()
            elif self._made < self._threads:
                self._made += 1
                seat = Seat()
                thread = threading.Thread(target=self._work, args=(seat,), daemon=True)
                thread.name = f"request-{self._made}"
                thread.start()
            else:
                return
            self._begin(seat)
            seat.wakes.release()

    def _begin(self, seat: Seat) -> None:
        seat.job = self._next()
        self._running[seat] = time.monotonic()

    def _may_start(self) -> bool:
        if len(self._running) < self._active:
            return True
        oldest = time.monotonic() - self._patience_s
        return sum(began > oldest for began in self._running.values()) < self._active

    def _next(self) -> Job:
        """Take the first job of the caller whose turn it is; it goes to the end of the round."""
        key, jobs = next(iter(self._waiting.items()))
        job = jobs.popleft()
        if jobs:
            self._waiting.move_to_end(key)
        else:
            del self._waiting[key]
        return job

    def _end(self, seat: Seat) -> bool:
        """Put a seat's next job on it; False when there is none for it."""
        seat.job = None
        del self._running[seat]
        if self._waiting and self._may_start():
            self._begin(seat)
            return True
        if not self._is_over:
            self._idle.append(seat)
        return False

    def _watch(self) -> None:
        self._is_watched = True
        threading.Thread(target=self._look, name="request-turns", daemon=True).start()

    # --- threads --------------------------------------------------------------------------------

    def _work(self, seat: Seat) -> None:
        while True:
            seat.wakes.acquire()
            if seat.job is None:
                return
            goes_on = True
            while goes_on and seat.job is not None:
                seat.job.run()
                with self._changed:
                    goes_on = self._end(seat)
                    if self._is_over and not goes_on:
                        return

    def _look(self) -> None:
        """Start those who wait when those who are at it have taken too long."""
        quiet_since = time.monotonic()
        while True:
            time.sleep(self._patience_s)
            with self._changed:
                self._give_turns()
                now = time.monotonic()
                if self._waiting:
                    quiet_since = now
                elif self._is_over or now - quiet_since > LINGER_S:
                    self._is_watched = False
                    return


class TurnsWorker(ThreadWorker):
    """gunicorn's threaded worker over such a pool."""

    def get_thread_pool(self) -> Turns:
        """Give the pool."""
        return Turns(self.cfg.threads)
