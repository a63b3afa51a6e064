"""Hot objects: read often, they get an additional replica for a while."""

import time
from typing import Final, LiteralString

import structlog

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.nodes.repair import Repair

log = structlog.get_logger(__name__)

WINDOW_S: Final = 10.0
# Reads within a window that make an object hot: twenty a second.
HOT_READS: Final = 200
HOT_S: Final = 600
# Beyond this many different objects in one window, further ones are not counted.
MAX_OBJECTS_COUNTED: Final = 200_000

MARK: Final[LiteralString] = (
    "UPDATE brain_blob SET hot_until = now() + make_interval(secs => %s) WHERE sha256 = %s"
)


class HotObjects:
    """Counts this process's reads."""

    def __init__(self, database: BrainDatabase, repair: Repair, *, processes: int = 1) -> None:
        """Start with empty counters. processes: of this brain, which share its reads."""
        self._hot_reads = HOT_READS // processes
        self._database = database
        self._repair = repair
        self._counts: dict[bytes, int] = {}
        self._began = time.monotonic()
        self._tasks = BackgroundTasks()

    async def stop(self) -> None:
        await self._tasks.stop()

    def read(self, delivery: DeliveryPlan) -> None:
        """Count a read."""
        now = time.monotonic()
        if now - self._began > WINDOW_S:
            self._counts.clear()
            self._began = now
        count = self._counts.get(delivery.sha256, 0) + 1
        if len(self._counts) < MAX_OBJECTS_COUNTED or count > 1:
            self._counts[delivery.sha256] = count
        if count == self._hot_reads and delivery.sha256:
            self._tasks.add(self._warm(delivery.sha256))

    async def _warm(self, sha256: bytes) -> None:
        try:
            await self._database.run(MARK, [HOT_S, sha256])
            ordered = await self._repair.check(sha256)
        except DatabaseUnavailable:
            return
        log.info("object_is_hot", sha256=sha256.hex(), copies_ordered=ordered)
