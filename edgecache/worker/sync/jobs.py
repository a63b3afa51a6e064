"""Jobs: what the brain has a worker do besides, fetched when a heartbeat announced them."""

import asyncio
import http.client
import logging
import sqlite3
from http import HTTPStatus
from typing import Final

from edgecache.protocol.fields import MalformedMessage
from edgecache.protocol.jobs import Job, JobDone, JobKind, Jobs, JobSource
from edgecache.protocol.names import (
    JOB_BATCH,
    TICKET_HEADER,
    job_done_path,
    object_path,
    worker_path,
)
from edgecache.worker.node import COPY_THREADS, Node, Status
from edgecache.worker.store.incoming import Incoming, WrongBytes
from edgecache.worker.store.store import StoreFull
from edgecache.worker.sync.brain import BrainError, NodeRemoved
from edgecache.worker.sync.dialling import Failures, connect

log = logging.getLogger(__name__)

PIECE_BYTES: Final = 1 << 20


class SourceFailed(Exception):
    """A worker did not give the bytes; its text says how, in a word."""


async def jobs(node: Node) -> None:
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
        except (BrainError, MalformedMessage) as error:
            log.warning("jobs_failed", extra={"reason": str(error)})


async def _do_some(node: Node) -> bool:
    """Fetch jobs and do them; return whether more may wait."""
    path = worker_path(node.options.node_id, f"jobs?limit={JOB_BATCH}")
    waiting = Jobs.read(await node.asking(node.brain.call, "GET", path)).jobs
    at_once = asyncio.Semaphore(COPY_THREADS)

    async def do(job: Job) -> JobDone:
        async with at_once:
            done = await _do(node, job)
        await node.asking(
            node.brain.call, "POST", job_done_path(node.options.node_id, job.id), done.as_json()
        )
        return done

    done = await asyncio.gather(*(do(job) for job in waiting))
    node.counters.add("jobs", len(done))
    # Failed ones come again: not at once.
    return len(waiting) == JOB_BATCH and all(one.ok for one in done)


async def _do(node: Node, job: Job) -> JobDone:
    try:
        if job.kind is JobKind.DELETE:
            await node.on_disk(node.store.schedule_unlink, job.sha256)
        else:
            await node.copying(replicate, node, job)
    except SourceFailed as error:
        return JobDone(ok=False, error=str(error))
    except StoreFull:
        return JobDone(ok=False, error="store_full")
    except (OSError, sqlite3.Error) as error:
        problem = node.problems.report_disk(error)
        return JobDone(ok=False, error=str(problem or "busy"))
    return JobDone(ok=True)


def replicate(node: Node, job: Job) -> None:
    """Fetch a blob from the first source that gives it right.

    Raises SourceFailed, StoreFull, OSError, sqlite3.Error.
    """
    if node.store.has(job.sha256):
        return
    failure = SourceFailed("no_source")
    for source in job.sources:
        try:
            size = _fetch(node, job, source)
        except SourceFailed as error:
            log.warning(
                "source_failed",
                extra={"sha256": job.sha256.hex(), "source": source.url, "reason": str(error)},
            )
            failure = error
            continue
        node.counters.add("stores")
        node.counters.add("stored_bytes", size)
        return
    raise failure


def _fetch(node: Node, job: Job, source: JobSource) -> int:
    incoming = Incoming(node.store, job.sha256, job.size)
    try:
        _receive(incoming, job, source)
        incoming.finish()
    except WrongBytes as error:
        node.counters.add("wrong_bytes")
        raise SourceFailed("wrong_bytes") from error
    finally:
        incoming.discard()
    return job.size


def _receive(incoming: Incoming, job: Job, source: JobSource) -> None:
    """Read the blob off another worker; an error of the disk passes through as it is."""
    connection = connect(source.url)
    try:
        response = _ask(connection, job, source)
        while piece := _piece(response):
            incoming.write(piece)
        if response.length:
            raise SourceFailed("broken_off")
    finally:
        connection.close()


def _ask(
    connection: http.client.HTTPConnection, job: Job, source: JobSource
) -> http.client.HTTPResponse:
    try:
        connection.request("GET", object_path(job.sha256), headers={TICKET_HEADER: source.ticket})
        response = connection.getresponse()
    except Failures as error:
        raise SourceFailed("unreachable") from error
    if response.status != HTTPStatus.OK:
        raise SourceFailed(f"status_{response.status}")
    return response


def _piece(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(PIECE_BYTES)
    except Failures as error:
        raise SourceFailed("broken_off") from error
