"""Jobs: additional work that a worker fetches when a heartbeat announces it."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from http import HTTPStatus
from typing import Final

from edgecache.http.client import ServerAddress, request_head
from edgecache.http.outgoing import OutgoingConnection, RequestFailed, ResponseHead
from edgecache.protocol.fields import Answer
from edgecache.protocol.jobs import Job, JobDone, JobKind, Jobs, JobsDone, JobSource
from edgecache.protocol.names import (
    JOB_BATCH,
    JOBS_DONE,
    TICKET_HEADER,
    object_path,
    worker_path,
)
from edgecache.worker.brain_calls import BrainCallError, NodeRemoved
from edgecache.worker.node import CacheWorker, Status
from edgecache.worker.receiving import receive
from edgecache.worker.store.incoming import WrongBytes
from edgecache.worker.store.worker_store import StoreFull
from edgecache.worker.sync.scrub import verify

log = logging.getLogger(__name__)

# Jobs that are done concurrently.
MAX_CONCURRENT_JOBS: Final = 2
# Jobs that end within this time are reported together.
REPORT_S: Final = 0.5
# The minimum rate of another worker, after a time to begin. It may be a foreign node, and one that
# sends a byte now and then would hold up all jobs.
BEGIN_S: Final = 10.0
BYTES_PER_S: Final = 64 << 10


class SourceFailed(Exception):
    """A worker did not give the bytes; its text says how, in a word."""


async def jobs(node: CacheWorker) -> None:
    """Do the jobs that wait, whenever some do, until the node is removed or drains."""
    while True:
        await node.jobs_wait.wait()
        node.jobs_wait.clear()
        if node.status is not Status.SERVING:
            continue
        try:
            while await _do_some(node):
                pass
        except NodeRemoved:
            node.remove()
        except BrainCallError as error:
            log.warning("jobs_failed", extra={"reason": str(error)})


async def _do_some(node: CacheWorker) -> bool:
    """Fetch jobs and do them; return whether more may wait."""
    path = worker_path(node.options.node_id, f"jobs?limit={JOB_BATCH}")
    waiting = (await node.brain.call("GET", path, Jobs)).jobs
    at_once = asyncio.Semaphore(MAX_CONCURRENT_JOBS)
    ended: list[JobDone] = []

    async def do(job: Job) -> None:
        async with at_once:
            ended.append(await _do(node, job))

    doing = asyncio.gather(*(do(job) for job in waiting))
    are_well = await _report(node, doing, ended)
    node.counters.add("jobs", len(waiting))
    # Failed ones come again, but not immediately.
    return bool(waiting) and are_well


async def _report(
    node: CacheWorker, doing: asyncio.Future[list[None]], ended: list[JobDone]
) -> bool:
    """Report jobs until all have ended; return whether all succeeded.

    The quick ones of a batch are reported in one message; a slow one delays the others only
    briefly.
    """
    are_well = True
    try:
        while not doing.done() or ended:
            await asyncio.wait({doing}, timeout=REPORT_S)
            done, ended[:] = tuple(ended), ()
            if done:
                path = worker_path(node.options.node_id, JOBS_DONE)
                await node.brain.call("POST", path, Answer, JobsDone(done))
                are_well = are_well and all(one.ok for one in done)
        await doing
    finally:
        # What was not reported is handed out again, which is harmless.
        doing.cancel()
    return are_well


async def _do(node: CacheWorker, job: Job) -> JobDone:
    try:
        if job.kind is JobKind.DELETE:
            await node.run_on_disk(node.store.schedule_unlink, job.sha256)
        elif job.kind is JobKind.VERIFY:
            rate_bytes = node.options.scrub_rate_bytes
            await node.run_in_background(verify, node, job.sha256, job.size, rate_bytes=rate_bytes)
        else:
            await replicate(node, job)
    except SourceFailed as error:
        return JobDone(job.id, ok=False, error=str(error))
    except StoreFull:
        return JobDone(job.id, ok=False, error="store_full")
    except (OSError, sqlite3.Error) as error:
        problem = node.problems.report_disk(error)
        return JobDone(job.id, ok=False, error=str(problem or "busy"))
    return JobDone(job.id, ok=True)


async def replicate(node: CacheWorker, job: Job) -> None:
    """Fetch a blob from the first source that gives it right.

    Raises SourceFailed, StoreFull, OSError, sqlite3.Error.
    """
    if await node.run_on_disk(node.store.has, job.sha256):
        return
    failure = SourceFailed("no_source")
    for source in job.sources:
        try:
            await _fetch(node, job, source)
        except SourceFailed as error:
            log.warning(
                "source_failed",
                extra={"sha256": job.sha256.hex(), "source": source.url, "reason": str(error)},
            )
            failure = error
            continue
        return
    raise failure


async def _fetch(node: CacheWorker, job: Job, source: JobSource) -> None:
    """Read the blob from another worker; an error of the disk is raised unchanged."""
    address = ServerAddress(source.url, is_guarded=source.is_guarded)
    fields = {TICKET_HEADER: source.ticket}
    head = request_head(address, "GET", object_path(job.sha256), fields)
    try:
        async with asyncio.timeout(BEGIN_S + job.size / BYTES_PER_S):
            connection = await node.client.request(address, head, partial(_check, job.size))
            try:
                await receive(node, _pieces(connection), job.sha256, job.size)
            finally:
                node.client.release(address, connection)
    except RequestFailed as failure:
        raise SourceFailed(failure.reason) from failure
    except TimeoutError as error:
        raise SourceFailed("too_slow") from error
    except WrongBytes as error:
        node.counters.add("wrong_bytes")
        raise SourceFailed("wrong_bytes") from error


def _check(size: int, head: ResponseHead) -> int:
    if head.status != HTTPStatus.OK:
        raise RequestFailed(f"status_{head.status}", status=head.status)
    if head.field(b"content-length") != b"%d" % size or head.field(b"transfer-encoding"):
        raise RequestFailed("wrong_length", status=head.status)
    return size


async def _pieces(connection: OutgoingConnection) -> AsyncIterator[bytes]:
    while piece := await connection.piece():
        yield piece
