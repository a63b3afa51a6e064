"""What is wrong with a worker, for the brain and for people."""

import errno
import logging
import sqlite3
import threading
from typing import Final

from edgecache.protocol.heartbeats import Problem
from edgecache.worker.store.files import FULL

log = logging.getLogger(__name__)

# Reported once; the others last until a write succeeds.
PASSING: Final = frozenset({Problem.CORRUPTION})
NOT_THE_DISKS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.EINTR})


class Problems:
    """The problems there are now. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: set[Problem] = set()

    def report(self, problem: Problem) -> None:
        """Note a problem; log it when it is new."""
        with self._lock:
            is_new = problem not in self._now
            self._now.add(problem)
        if is_new:
            log.error("problem", extra={"problem": str(problem)})

    def report_disk(self, error: OSError | sqlite3.Error) -> Problem | None:
        """Note what an error of the disk means; return it, None for an error with another cause."""
        problem = of_disk(error)
        if problem is not None:
            self.report(problem)
        return problem

    def clear(self, *problems: Problem) -> None:
        """Note that problems are over."""
        with self._lock:
            over = self._now.intersection(problems)
            self._now -= over
        for problem in sorted(over - PASSING):
            log.info("problem_over", extra={"problem": str(problem)})

    def drop_reported(self, problems: tuple[str, ...]) -> None:
        """Drop the passing ones that the brain has heard of."""
        self.clear(*PASSING.intersection(problems))

    def now(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(sorted(self._now))


def of_disk(error: OSError | sqlite3.Error) -> Problem | None:
    """Return what an error of a write means; None for an error with another cause."""
    if isinstance(error, sqlite3.Error):
        is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        return Problem.DISK_FULL if is_full else Problem.DISK_FAILING
    if error.errno in NOT_THE_DISKS:
        return None
    return Problem.DISK_FULL if error.errno in FULL else Problem.DISK_FAILING
