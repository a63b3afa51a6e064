"""The task worker: it goes on by itself when the control database was unreachable.

procrastinate's own worker stops when one of its connections is lost, and leaves the rest to a
supervisor (procrastinate-org/procrastinate, pull request 1463).
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import structlog
from django.db import connections
from procrastinate import App
from procrastinate.contrib.django.utils import connector_params
from procrastinate.exceptions import ConnectorException
from procrastinate.job_context import JobContext
from procrastinate.middleware import SyncCallNext
from procrastinate.psycopg_connector import PsycopgConnector
from procrastinate.worker import Worker

from common.problems import is_database_unreachable

RETRY_S: Final = 1.0
# A pool that failed for so long begins again with short pauses; a call waits for a connection.
RECONNECT_S: Final = 5.0
CONNECTION_S: Final = 5.0
# A server that was a leader, or is not yet.
READ_ONLY: Final = "25006"
# A job that was fetched when the connection was lost before the answer: nobody runs it.
UNKNOWN: Final = """
SELECT procrastinate_retry_job_v2(id, now(), NULL, NULL, NULL) FROM procrastinate_jobs
WHERE status = 'doing' AND worker_id = %(worker_id)s AND NOT id = ANY(%(running)s::bigint[])
"""

log = structlog.get_logger(__name__)


def prepare(app: App) -> None:
    """Give procrastinate's application this worker (PROCRASTINATE_ON_APP_READY)."""
    before = app.worker_defaults.get("task_middleware") or []
    app.worker_defaults["task_middleware"] = [*before, close_dead_connections]
    app.run_worker_async = partial(_run, app)  # type: ignore[method-assign]  # its one door
    app.connector.get_worker_connector = _connector  # type: ignore[attr-defined]  # DjangoConnector's


def close_dead_connections(call_next: SyncCallNext, context: JobContext, worker: Worker) -> Any:
    """Begin a job on connections that live; runs in the job's thread.

    Django notices a lost connection only after an error on it, which would be this job's.
    """
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None and not connection.is_usable():
            connection.close()
    return call_next()


class TaskWorker(Worker):
    """A worker that waits for its database, for as long as it takes."""

    _is_lost = False
    # True after a lost connection, until jobs that were perhaps fetched are given back.
    _is_unsure = False

    async def _fetch_and_process_jobs(self) -> None:
        if not await self._outlast("fetch", self._fetch):
            await asyncio.sleep(RETRY_S)
            # At once, not at the next poll.
            self._new_job_event.set()

    async def _fetch(self) -> None:
        if self._is_unsure:
            running = [context.job.id for context in self._running_jobs.values()]
            await self.app.connector.execute_query_async(
                UNKNOWN, worker_id=self.worker_id, running=running
            )
            self._is_unsure = False
        try:
            await super()._fetch_and_process_jobs()  # type: ignore[no-untyped-call]  # untyped library
        except ConnectorException:
            self._is_unsure = True
            raise

    def _start_side_tasks(self) -> list[asyncio.Task[Any]]:
        loops: dict[str, Callable[[], Awaitable[Any]]] = {
            "update_heartbeats": self._update_heartbeat,
            "deferrer": self._periodic_deferrer,
            "poll_jobs_to_abort": self._poll_jobs_to_abort,
        }
        if self.listen_notify:
            loops["listener"] = partial(
                self.app.job_manager.listen_for_jobs,
                on_notification=self._handle_notification,
                queues=self.queues,
            )
        return [
            asyncio.create_task(self._keep(name, loop), name=name) for name, loop in loops.items()
        ]

    async def _keep(self, name: str, loop: Callable[[], Awaitable[Any]]) -> None:
        while not await self._outlast(name, loop):
            await asyncio.sleep(RETRY_S)
            # What was announced meanwhile is found by polling.
            self._new_job_event.set()

    async def _persist_job_status(  # type: ignore[override]  # only keyword arguments are given
        self, **given: Any
    ) -> None:
        persist = partial(super()._persist_job_status, **given)
        while not await self._outlast("persist", persist):
            if self._stop_event.is_set():
                # `jobs.release_lost` finds it.
                return
            await asyncio.sleep(RETRY_S)

    async def _shutdown(self, side_tasks: list[asyncio.Task[Any]]) -> None:
        await self._outlast("shutdown", partial(super()._shutdown, side_tasks=side_tasks))

    async def _outlast(self, name: str, call: Callable[[], Awaitable[Any]]) -> bool:
        """Run a call to its end; False if the database became unreachable."""
        try:
            await call()
        except ConnectorException as exc:
            cause = exc.__cause__
            if not is_database_unreachable(exc) and getattr(cause, "sqlstate", "") != READ_ONLY:
                raise
            if not self._is_lost:
                self._is_lost = True
                log.warning("task_worker_database_lost", part=name, error=str(cause).strip())
            return False
        if self._is_lost and name == "fetch":
            self._is_lost = False
            log.info("task_worker_database_back")
        return True


async def _run(app: App, **options: Any) -> None:
    app.perform_import_paths()  # type: ignore[no-untyped-call]  # untyped library
    worker = TaskWorker(app=app, **{**app.worker_defaults, **options})
    await worker.run()  # type: ignore[no-untyped-call]  # as above


def _connector() -> PsycopgConnector:
    """Return the worker's connector, whose pool is quick to connect again."""
    return PsycopgConnector(
        kwargs=connector_params(), reconnect_timeout=RECONNECT_S, timeout=CONNECTION_S
    )
