"""One run of ``manage.py movestore``, in its own process next to the brains."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from common.ids import uuid7
from edgecache.brain.conf.brain import BrainSettings
from edgecache.brain.core.errors import StoreUnavailable
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.stores.move import Move, MoveProgress, Remainder
from edgecache.brain.stores.reachable_stores import KnownStore, Stores

CONNECTIONS: Final = 8
PASSES: Final = 5


class CannotMove(Exception):
    """A move that cannot begin. code: stable; the text is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class RelocationRequest:
    """What the operator asked for. on_progress: called with what was done so far."""

    at_once: int
    wait_s: float
    is_dry: bool
    on_progress: Callable[[MoveProgress], None]


@dataclass(frozen=True, slots=True)
class RelocationResult:
    """What became of a move. brains: running ones. stopped: why it did not go on."""

    target: str
    before: Remainder
    left: Remainder
    progress: MoveProgress
    brains: list[str] = field(default_factory=list)
    stopped: str = ""

    def facts(self) -> dict[str, Any]:
        return {
            "to": self.target,
            "before": asdict(self.before),
            "left": asdict(self.left),
            "moved": self.progress.moved,
            "moved_bytes": self.progress.moved_bytes,
            "failed": self.progress.failed,
            "reasons": self.progress.reasons,
            "brains": self.brains,
            "stopped": self.stopped,
        }


async def relocate(settings: BrainSettings, request: RelocationRequest) -> RelocationResult:
    """Move everything to ZBRAIN_STORE_NEXT_URL, or to ZBRAIN_STORE_URL if that is not set.

    Raises CannotMove before anything is changed, DatabaseUnavailable.
    """
    async with _opened(settings, request) as move:
        brains = await move.brains()
        unready = [str(row.id) for row in brains if not row.reaches]
        if unready:
            raise CannotMove(
                "brains_not_ready",
                f"{len(unready)} of {len(brains)} brains do not reach the new store: set "
                "ZBRAIN_STORE_NEXT_URL, and what belongs to it, for every brain, and restart them.",
            )
        before = await move.left()
        stopped = "" if request.is_dry else await _run(move, wait_s=request.wait_s)
        left = before if request.is_dry else await move.left()
        ids = [str(row.id) for row in brains]
        return RelocationResult(move.target.name, before, left, move.progress, ids, stopped)


async def _run(move: Move, *, wait_s: float) -> str:
    """Move; return why it stopped early."""
    if not await move.redirect(timeout_s=wait_s):
        return "Not every brain has confirmed in time that it writes to the new store."
    try:
        await _passes(move)
    except StoreUnavailable as exc:
        return exc.detail
    return ""


async def _passes(move: Move) -> None:
    """Move until everything is moved, or no more can be."""
    for _ in range(PASSES):
        left = await move.left()
        if not left.objects + left.parts:
            return
        earlier, move.progress.failed = move.progress.moved, 0
        move.progress.reasons.clear()
        await move.run()
        if move.progress.moved == earlier:
            return


@asynccontextmanager
async def _opened(settings: BrainSettings, request: RelocationRequest) -> AsyncIterator[Move]:
    database = BrainDatabase(settings.database_url, max_connections=CONNECTIONS)
    coherence = Coherence(database, uuid7())
    stores = Stores(database, coherence, settings.data_dir, settings.stores)
    data_directory = DataDirectory(settings.data_dir, limit_bytes=settings.staging_bytes)
    await database.start()
    try:
        await data_directory.start()
        await stores.refresh()
        try:
            yield Move(
                database,
                coherence,
                data_directory,
                stores,
                _target(settings, stores),
                at_once=request.at_once,
                on_progress=request.on_progress,
            )
        finally:
            await data_directory.stop()
    finally:
        await stores.stop()
        await database.stop()


def _target(settings: BrainSettings, stores: Stores) -> KnownStore:
    name = settings.stores[-1].name
    return next(known for known in stores.all() if known.name == name)
