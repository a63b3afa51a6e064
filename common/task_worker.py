"""The task worker: it goes on by itself when the control database was unreachable.

procrastinate's own worker stops when one of its connections is lost, and leaves the rest to a
supervisor (procrastinate-org/procrastinate, pull request 1463).
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import structlog
from procrastinate import App
from procrastinate.contrib.django.utils import connector_params
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.psycopg_connector import PsycopgConnector
from procrastinate.worker import Worker
from psycopg.errors import ForeignKeyViolation

from common.jobs import DATABASE_RETRY_S, POSTPONE, Postponement
from common.machine.reasons import reason
from common.problems import is_database_unreachable
from common.server_states import READ_ONLY

RETRY_S: Final = 1.0
# A pool that failed for so long begins again with short pauses; a call waits for a connection.
RECONNECT_S: Final = 5.0
CONNECTION_S: Final = 5.0
# A worker that begins removes those without a heartbeat, such as one whose database was away.
REGISTER: Final = """
INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (%(worker_id)s)
ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()
"""
# A job that was fetched when the connection was lost before the answer: nobody runs it.
UNKNOWN: Final = """
SELECT procrastinate_retry_job_v2(id, now(), NULL, NULL, NULL) FROM procrastinate_jobs
WHERE status = 'doing' AND worker_id = %(worker_id)s AND NOT id = ANY(%(running)s::bigint[])
"""

log = structlog.get_logger(__name__)


def prepare(app: App) -> None:
    """Give procrastinate's application this worker (PROCRASTINATE_ON_APP_READY)."""
    app.run_worker_async = partial(_run, app)  # type: ignore[method-assign]  # its one door
    app.connector.get_worker_connector = _connector  # type: ignore[attr-defined]  # DjangoConnector's


class TaskWorker(Worker):
    """A worker that waits for its database, for as long as it takes."""

    # True after a lost connection, until the database is back.
    _is_lost = False
    # True until jobs that were perhaps fetched are given back.
    _is_unsure = False

    async def _fetch_and_process_jobs(self) -> None:
        if not await self._outlast("fetch", self._fetch):
            await asyncio.sleep(RETRY_S)
            # At once, not at the next poll.
            self._new_job_event.set()

    async def _fetch(self) -> None:
        if self._is_lost or self._is_unsure:
            running = [context.job.id for context in self._running_jobs.values()]
            await self.app.connector.execute_query_async(REGISTER, worker_id=self.worker_id)
            await self.app.connector.execute_query_async(
                UNKNOWN, worker_id=self.worker_id, running=running
            )
            self._is_unsure = False
        if self._is_lost:
            self._is_lost = False
            log.info("task_worker_database_back")
        try:
            await super()._fetch_and_process_jobs()  # type: ignore[no-untyped-call]  # untyped library
        except ConnectorException as exc:
            self._is_unsure = True
            if not isinstance(exc.__cause__, ForeignKeyViolation):
                raise
            # This worker's row was removed; the next fetch adds it.
            self._new_job_event.set()

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
        postpones = isinstance(given["retry_decision"], Postponement)
        persist = partial(self._postpone if postpones else super()._persist_job_status, **given)
        while not await self._outlast("persist", persist):
            if self._stop_event.is_set():
                # `jobs.release_lost` finds it.
                return
            await asyncio.sleep(RETRY_S)
            # It may be due again.
            self._new_job_event.set()

    async def _postpone(self, *, job: Job, **_more: Any) -> None:
        await self.app.connector.execute_query_async(
            POSTPONE, job_id=job.id, wait_s=DATABASE_RETRY_S
        )
        self._job_ids_to_abort.pop(job.id, None)  # type: ignore[arg-type]  # a stored job has an id

    async def run(self) -> None:
        """Run until it is told to stop; begin as soon as the database takes writes."""
        while not await self._outlast("begin", super().run):  # noqa: ASYNC110 - nothing says when
            await asyncio.sleep(RETRY_S)

    async def _shutdown(self, side_tasks: list[asyncio.Task[Any]]) -> None:
        await self._outlast("shutdown", partial(super()._shutdown, side_tasks=side_tasks))

    async def _outlast(self, name: str, call: Callable[[], Awaitable[Any]]) -> bool:
        """Run a call to its end; False if the database became unreachable."""
        try:
            await call()
        except ConnectorException as exc:
            if not is_database_unreachable(exc):
                raise
            if not self._is_lost:
                self._is_lost = True
                log.warning("task_worker_database_lost", part=name, error=reason(exc))
            if getattr(exc.__cause__, "sqlstate", "") == READ_ONLY:
                # These are to a former leader, or to a standby.
                await self.app.connector.pool.drain()  # type: ignore[attr-defined]  # _connector's
            return False
        return True


async def _run(app: App, **options: Any) -> None:
    app.perform_import_paths()  # type: ignore[no-untyped-call]  # untyped library
    worker = TaskWorker(app=app, **{**app.worker_defaults, **options})
    await worker.run()


def _connector() -> PsycopgConnector:
    """Return the worker's connector, whose pool is quick to connect again."""
    return PsycopgConnector(
        kwargs=connector_params(), reconnect_timeout=RECONNECT_S, timeout=CONNECTION_S
    )
