"""A worker's process: open the store, serve until a signal to stop, drain."""

import asyncio
import logging
import os
import signal
import sqlite3
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

import uvloop

from edgecache.http.client import HttpClient
from edgecache.http.server.http_server import HttpServer, tls_context
from edgecache.http.server.limits import ServerLimits
from edgecache.runtime.listening import refuse_connections
from edgecache.worker.brain_calls import BrainApi, BrainCallError
from edgecache.worker.clock import BrainClock
from edgecache.worker.node import CacheWorker, Status
from edgecache.worker.options import Options
from edgecache.worker.receipts import TicketUses
from edgecache.worker.serving.app import App
from edgecache.worker.serving.reads import turn_of
from edgecache.worker.store.files import FolderInUse
from edgecache.worker.store.inventory import InventoryReader
from edgecache.worker.store.recovery import open_store
from edgecache.worker.store.worker_store import WorkerStore
from edgecache.worker.sync.heartbeat import beat, heartbeats
from edgecache.worker.sync.jobs import jobs
from edgecache.worker.sync.reports import report, reports
from edgecache.worker.sync.scrub import scrub
from edgecache.worker.tickets import Verifier
from edgecache.worker.tracing import Tracing
from edgecache.worker.upkeep import (
    MINUTE_S,
    SECOND_S,
    every,
    unlink_due,
    verify_unlisted,
    write_reads,
    write_receipts,
)

log = logging.getLogger(__name__)

# For connecting to the brain or another worker, and between any two pieces of a response.
CALL_STALL_S: Final = 10.0
FAREWELL_S: Final = 3.0
HEAD_LIMIT_BYTES: Final = 16_384
BODY_BYTES_PER_S: Final = 64 << 10
TAKE_FACTOR: Final = 4
IDLE_FACTOR: Final = 5
STOPPED: Final = 0
FAILED: Final = 1


def run(options: Options) -> int:
    """Run a worker until a signal to stop; return the exit code."""
    try:
        store = open_store(options.folder, options.capacity_bytes)
    except FolderInUse:
        log.critical("folder_in_use", extra={"dir": options.folder})
        return FAILED
    except (OSError, sqlite3.Error) as error:
        log.critical("store_unusable", extra={"dir": options.folder, "reason": str(error)})
        return FAILED
    try:
        return uvloop.run(_live(options, store))
    finally:
        store.close()


async def _live(options: Options, store: WorkerStore) -> int:
    client = HttpClient(connect_timeout_s=CALL_STALL_S, stall_s=CALL_STALL_S)
    node = _node(options, store, client)
    tracing = Tracing()
    server = _server(options, App(node, traced=tracing.finished), node)
    stop = _stop_signal()
    try:
        await server.start()
    except OSError as error:
        reason = f"can't listen on {options.host}:{options.port}: {error.strerror}"
        log.critical("port_taken", extra={"reason": reason})
        return FAILED
    _log_started(node)
    tasks = [asyncio.create_task(work) for work in _works(node)]
    ended = asyncio.create_task(server.serve())
    stopped = asyncio.create_task(stop.wait())
    try:
        # A loop ends when the node was removed, or by a fault: that must not go unseen.
        await _first_of({stopped, ended}, tasks)
    finally:
        code = STOPPED if stopped.done() else FAILED
        await _drain(node, server, ended)
        for task in (*tasks, stopped):
            task.cancel()
        await client.stop()
        node.threads.stop()
        tracing.stop()
    return code


def _node(options: Options, store: WorkerStore, client: HttpClient) -> CacheWorker:
    clock = BrainClock()
    reader = InventoryReader(options.folder)
    return CacheWorker(
        options=options,
        store=store,
        reader=reader,
        client=client,
        brain=BrainApi(client, options.brain, options.node_id, options.secret, options.brain_ca),
        clock=clock,
        verifier=Verifier(options.node_id, clock),
        receipts=TicketUses(reader),
    )


def _server(options: Options, app: App, node: CacheWorker) -> HttpServer:
    timeout_s = options.client_timeout_s
    limits = ServerLimits(
        connections=options.max_connections,
        head_bytes=HEAD_LIMIT_BYTES,
        head_timeout_s=timeout_s,
        send_timeout_s=timeout_s,
        # A client that plays a video may not read for a while.
        take_timeout_s=TAKE_FACTOR * timeout_s,
        idle_timeout_s=IDLE_FACTOR * timeout_s,
        body_bytes_per_s=BODY_BYTES_PER_S,
    )
    tls = (
        tls_context(options.tls_cert, options.tls_key)
        if options.tls_cert and options.tls_key
        else None
    )
    return HttpServer(
        app,
        address=options.host,
        port=options.port,
        tls=tls,
        limits=limits,
        stop_timeout_s=options.drain_s,
        share_key=partial(turn_of, node),
    )


def _works(node: CacheWorker) -> list[Coroutine[Any, Any, None]]:
    options = node.options
    return [
        heartbeats(node),
        reports(node),
        jobs(node),
        every(node, SECOND_S, write_receipts),
        every(node, SECOND_S, unlink_due),
        every(node, SECOND_S, verify_unlisted),
        every(node, MINUTE_S, write_reads),
        scrub(node, per_hour=options.scrub_per_hour, rate_bytes=options.scrub_rate_bytes),
    ]


async def _first_of(ends: set[asyncio.Task[Any]], tasks: list[asyncio.Task[None]]) -> None:
    """Wait for one of the ends; a loop that fails is one, too."""
    waiting = ends | set(tasks)
    while waiting & ends == ends:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done - ends:
            error = task.exception()
            if error is not None:
                log.critical("worker_failed", exc_info=error)
                return


async def _drain(node: CacheWorker, server: HttpServer, served: asyncio.Task[None]) -> None:
    """Notify the brain, finish the running requests, write the counters."""
    options, was_reported = node.options, False
    if node.status is Status.SERVING:
        node.status = Status.DRAINING
        log.info("draining", extra={"timeout_s": options.drain_s})
        was_reported = await _report_before_stop(node)
        await asyncio.sleep(options.linger_s if was_reported else 0)
    for listening in server.sockets:
        refuse_connections(listening)
    server.stop()
    await asyncio.wait([served])
    with suppress(OSError, sqlite3.Error):
        await write_receipts(node)
    if was_reported:
        await _report_before_stop(node)
    log.info("stopped")


async def _report_before_stop(node: CacheWorker) -> bool:
    """Report to the brain what it does not know yet; return True if it answered."""
    if not node.is_brain_up:
        return False
    with suppress(TimeoutError, BrainCallError, OSError, sqlite3.Error):
        async with asyncio.timeout(FAREWELL_S):
            await beat(node, 0.0)
            await report(node)
            return True
    return False


def _stop_signal() -> asyncio.Event:
    """Return an event that SIGTERM, SIGHUP and SIGINT set; a second Ctrl-C ends immediately.

    A SIGTERM after a Ctrl-C does not: it comes from a supervisor that got the same Ctrl-C.
    """
    stop = asyncio.Event()
    interrupts = 0

    def on_interrupt() -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts > 1:
            os._exit(FAILED)
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # nohup(1) ignores it.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, stop.set)
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    return stop


def _log_started(node: CacheWorker) -> None:
    options, held = node.options, node.store.held()
    scheme = "https" if options.tls_cert else "http"
    log.info(
        "serving",
        extra={
            "node_id": options.node_id,
            "region": options.region,
            "url": f"{scheme}://{options.host}:{options.port}",
            "brain": options.brain,
            "objects": held.objects,
            "used_bytes": held.used_bytes,
            "capacity_bytes": options.capacity_bytes,
        },
    )
