"""A background thread that writes records, so that requests do not wait for it."""

import atexit
from collections.abc import Callable
from typing import Final

import structlog
from django.db import close_old_connections, connections

from common.every import Every
from common.scoping import unscoped

TICK_S: Final = 0.25
CLOSE_S: Final = 3.0

Job = Callable[[], None]

log = structlog.get_logger(__name__)


class BackgroundWriter:
    """Runs jobs every TICK_S, from the first ``start`` on.

    is_enabled: False in tests, which call the jobs themselves.
    """

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._rounds = Every(TICK_S, self._run_jobs, name="sql-records")
        self.is_enabled = True

    def add_job(self, job: Job) -> None:
        """Add a job, when its module is imported."""
        self._jobs.append(job)

    def start(self) -> None:
        """Start if it does not run; cheap enough to be called for each request."""
        if self.is_enabled:
            self._rounds.start()

    @property
    def is_closing(self) -> bool:
        """True if the jobs run for the last time."""
        return self._rounds.is_stopping

    def close(self) -> None:
        """Run the jobs for the last time, at the end of the process."""
        self._rounds.stop(CLOSE_S)

    @unscoped("requests of every organization are recorded")
    def _run_jobs(self) -> None:
        for job in self._jobs:
            try:
                job()
            except Exception as exc:  # noqa: BLE001 - records are lost rather than the next job's
                log.warning("sql_records_not_written", kind=type(exc).__name__)
        # Return a connection of a pool, close a broken one, keep this thread's own.
        close_old_connections()
        if self.is_closing:
            connections.close_all()


WRITER: Final = BackgroundWriter()
atexit.register(WRITER.close)
