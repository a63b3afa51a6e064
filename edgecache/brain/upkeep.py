"""What has to be done now and then, by one of the brains: rows that nobody needs any more go."""

import asyncio
from typing import Final, LiteralString

import structlog

from edgecache.brain.coherence import Coherence
from edgecache.brain.database import Database
from edgecache.brain.errors import DatabaseAway
from edgecache.brain.receipts import KEPT_DAYS
from edgecache.brain.statistics import Statistics

log = structlog.get_logger(__name__)

EVERY_S: Final = 3600.0
FIRST_AFTER_S: Final = 60.0

OLD_RECEIPTS: Final[LiteralString] = (
    "DELETE FROM brain_receipt WHERE created_at < now() - make_interval(days => %s)"
)
# Long since removed, with nothing left that names it but its history in usage lines.
OLD_NODES: Final[LiteralString] = (
    "DELETE FROM brain_node n WHERE status = 'removed'"
    " AND coalesce(removed_at, created_at) < now() - interval '90 days'"
    " AND NOT EXISTS (SELECT FROM brain_receipt r WHERE r.node_id = n.id)"
    " AND NOT EXISTS (SELECT FROM brain_location l WHERE l.node_id = n.id)"
)
DEAD_BRAINS: Final[LiteralString] = (
    "DELETE FROM brain_braininstance WHERE lease_until < now() - interval '1 day'"
)


class Upkeep:
    """The hourly round."""

    def __init__(self, database: Database, coherence: Coherence, statistics: Statistics) -> None:
        """Do nothing yet."""
        self._database = database
        self._coherence = coherence
        self._statistics = statistics
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._keep_going())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def round(self) -> None:
        """Do all of it once. Raises DatabaseAway."""
        await self._statistics.roll_up()
        await self._database.run(OLD_RECEIPTS, [KEPT_DAYS])
        await self._database.run(OLD_NODES)
        await self._database.run(DEAD_BRAINS)

    async def _keep_going(self) -> None:
        await asyncio.sleep(FIRST_AFTER_S)
        while True:
            try:
                await self.round()
            except DatabaseAway:
                log.warning("brain_upkeep_put_off")
            await asyncio.sleep(EVERY_S)
