"""A background thread that writes records, so that requests do not wait for it."""

import atexit
import threading
from collections.abc import Callable
from typing import Final

import structlog
from django.db import close_old_connections, connections

from common.scoping import unscoped

TICK_S: Final = 0.25
CLOSE_S: Final = 3.0

# Returns True while there is work left.
Job = Callable[[], bool]

log = structlog.get_logger(__name__)


class BackgroundWriter:
    """Runs jobs every TICK_S while any of them has work.

    is_enabled: False in tests, which call the jobs themselves.
    """

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._start = threading.Lock()
        self._has_work = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_enabled = True

    def add_job(self, job: Job) -> None:
        """Add a job, when its module is imported."""
        self._jobs.append(job)

    def wake(self) -> None:
        """Make the jobs run soon; cheap enough to be called for each request."""
        if self._has_work.is_set() or not self.is_enabled:
            return
        self._has_work.set()
        with self._start:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sql-records", daemon=True)
                self._thread.start()

    @property
    def is_closing(self) -> bool:
        """True if the jobs run for the last time."""
        return self._closing.is_set()

    def close(self) -> None:
        """Run the jobs for the last time, at the end of the process."""
        if self._thread is not None:
            self._closing.set()
            self._has_work.set()
            self._thread.join(CLOSE_S)
            self._thread = None

    def _run(self) -> None:
        is_last = False
        while not is_last:
            self._has_work.wait()
            self._closing.wait(TICK_S)
            self._has_work.clear()
            # Read after the clearing, and before the jobs: each job runs once more after ``close``.
            is_last = self._closing.is_set()
            if self._run_jobs():
                self._has_work.set()
        connections.close_all()

    @unscoped("requests of every organization are recorded")
    def _run_jobs(self) -> bool:
        is_busy = False
        for job in self._jobs:
            try:
                is_busy = job() or is_busy
            except Exception as exc:  # noqa: BLE001 - records are lost rather than the thread
                log.warning("sql_records_not_written", kind=type(exc).__name__)
        # Return a connection of a pool, close a broken one, keep this thread's own.
        close_old_connections()
        return is_busy


WRITER: Final = BackgroundWriter()
atexit.register(WRITER.close)
