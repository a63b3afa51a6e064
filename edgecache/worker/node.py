"""The parts of a running worker."""

import asyncio
import logging
import sqlite3
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Concatenate, Final, ParamSpec, TypeVar

from edgecache.http.client import HttpClient
from edgecache.protocol.heartbeats import Problem
from edgecache.runtime.fair_shares import ShareKey
from edgecache.runtime.futures import retrieve
from edgecache.runtime.threads import FairThreads
from edgecache.runtime.verified_files import FileState
from edgecache.worker.brain_calls import BrainApi
from edgecache.worker.clock import BrainClock
from edgecache.worker.counters import Counters
from edgecache.worker.options import Options
from edgecache.worker.problems import Problems
from edgecache.worker.receipts import TicketUses
from edgecache.worker.refusals import node_removed, unavailable
from edgecache.worker.store.inventory import InventoryReader
from edgecache.worker.store.worker_store import WorkerStore
from edgecache.worker.tickets import Verifier

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

FILE_THREADS: Final = 32
# An organization has one of them at most, as a file may be large.
VERIFY_THREADS: Final = 2
# Whose share the work on the disk uses: this node's own, or that of a request's ticket.
NODE: Final[ShareKey] = ("node",)
SHARE_KEY: Final[ContextVar[ShareKey]] = ContextVar("share_key", default=NODE)
# Brains upload some each, an organization's a quarter of them.
MAX_CONCURRENT_FETCHES: Final = 128


class Status(StrEnum):
    """What a worker does now."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"
    REMOVED = "removed"


@dataclass(slots=True)
class Threads:
    """Threads for blocking work; each kind has its own, so that none delays another.

    Organizations take turns on them. slow: for this node's own work only.
    """

    files: FairThreads = field(default_factory=lambda: FairThreads(FILE_THREADS, "files"))
    verifying: FairThreads = field(default_factory=lambda: FairThreads(VERIFY_THREADS, "verifying"))
    slow: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "slow"))

    def stop(self) -> None:
        """Begin nothing new."""
        for threads in (self.files, self.verifying):
            threads.stop()
        self.slow.shutdown(wait=False, cancel_futures=True)


@dataclass(slots=True)
class CacheWorker:
    """One worker process.

    incarnation: new at each start.
    sequence: of the last message to the brain.
    talking: held while a message with a sequence is being sent.
    name: the node's id, as it is sent in each answer.
    """

    options: Options
    store: WorkerStore
    reader: InventoryReader
    client: HttpClient
    brain: BrainApi
    clock: BrainClock
    verifier: Verifier
    receipts: TicketUses
    direct_answers: int = 0
    counters: Counters = field(default_factory=Counters)
    problems: Problems = field(default_factory=Problems)
    threads: Threads = field(default_factory=Threads)
    status: Status = Status.STARTING
    incarnation: str = field(default_factory=lambda: str(uuid.uuid4()))
    sequence: int = 0
    is_brain_up: bool = False
    wants_inventory: bool = False
    talking: asyncio.Lock = field(default_factory=asyncio.Lock)
    fills: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_FETCHES)
    )
    jobs_wait: asyncio.Event = field(default_factory=asyncio.Event)
    brain_answered: asyncio.Event = field(default_factory=asyncio.Event)
    background: set[asyncio.Task[None]] = field(default_factory=set)
    verifications: dict[bytes, asyncio.Task[FileState | None]] = field(default_factory=dict)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = str(self.options.node_id)

    def next_sequence(self) -> int:
        self.sequence += 1
        return self.sequence

    def check_can_read(self) -> None:
        """Refuse while no ticket can be checked, and permanently once the node was removed."""
        if self.status is Status.REMOVED:
            raise node_removed()
        if not self.verifier.is_ready:
            raise unavailable("starting", "The brain has not been heard yet.")

    def check_can_store(self) -> None:
        """Refuse new objects when about to stop, too."""
        self.check_can_read()
        if self.status is Status.DRAINING:
            raise unavailable("draining", "This worker is about to stop.")

    def remove(self) -> None:
        """Stop serving: the brain took this node out."""
        if self.status is not Status.REMOVED:
            self.status = Status.REMOVED
            log.critical("node_removed", extra={"action": "nothing is served any more"})

    def lose(self, sha256: bytes, wrong: FileState | None) -> None:
        """Drop an object in the background because its file does not match the inventory.

        wrong: the file's state when that was noticed, None if it is missing.
        """
        log.error("object_lost", extra={"sha256": sha256.hex()})
        task = asyncio.create_task(self._discard(sha256, wrong))
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    async def _discard(self, sha256: bytes, wrong: FileState | None) -> None:
        try:
            await self.run_on_disk(self.store.discard, sha256, wrong)
        except (OSError, sqlite3.Error) as error:
            log.warning("discard_failed", extra={"reason": str(error)})

    async def verify(self, sha256: bytes, share_key: ShareKey = NODE) -> FileState | None:
        """Hash a file, once for all waiting readers; return its state.

        share_key: whose turn it is. None if the file was missing or wrong, and is dropped. Raises
        OSError.
        """
        # A reader that leaves must not end it for the others.
        return await asyncio.shield(self.verify_soon(sha256, share_key))

    def verify_soon(
        self, sha256: bytes, share_key: ShareKey = NODE
    ) -> asyncio.Task[FileState | None]:
        """Begin to verify a file, unless that is running."""
        running = self.verifications.get(sha256)
        if running is None:
            running = asyncio.create_task(self._verify(sha256, share_key))
            self.verifications[sha256] = running
            # All waiting readers may have left by then.
            running.add_done_callback(retrieve)
        return running

    async def _verify(self, sha256: bytes, share_key: ShareKey) -> FileState | None:
        files = self.store.files
        found = files.state(sha256)
        try:
            # In the share of an organization, not of its bucket, because there are few threads.
            state = await self.threads.verifying.run(share_key[:1], partial(files.verify, sha256))
        finally:
            del self.verifications[sha256]
        if state is None:
            self.counters.add("corrupted_files")
            self.problems.report(Problem.CORRUPTION)
            self.reader.forget(sha256)
            self.lose(sha256, found)
        return state

    async def run_on_disk(self, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run something that waits for the disk, in the turn of its share key."""
        return await self.threads.files.run(SHARE_KEY.get(), partial(do, *args, **kwargs))

    async def run_with_inventory(
        self,
        do: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run something on the inventory's connection, in one transaction."""

        def run() -> T:
            with self.store.using() as db:
                return do(db, *args, **kwargs)

        return await self.run_on_disk(run)

    async def run_in_background(self, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a long operation on the background thread, one after another."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads.slow, partial(do, *args, **kwargs))
