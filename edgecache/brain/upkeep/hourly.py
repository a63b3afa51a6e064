"""Hourly upkeep: storage is metered, logs are written, old rows are deleted, objects expire."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Final, LiteralString

from edgecache.brain.audits import records
from edgecache.brain.core.background import PeriodicTask
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.metering import operator_networks, usage_lines
from edgecache.brain.metering.receipts import KEPT_DAYS
from edgecache.brain.metering.statistics import Statistics
from edgecache.brain.nodes import registration
from edgecache.brain.upkeep.access_logs import AccessLogs
from edgecache.brain.upkeep.lifecycle import Lifecycle

HOUR_S: Final = 3600.0
# After the full hour, so that all brains agree which hour is over.
AFTER_S: Final = 5.0

OLD_RECEIPTS: Final[LiteralString] = (
    "DELETE FROM brain_receipt WHERE created_at < now() - make_interval(days => %s)"
)
# Removed long ago, and nothing but usage lines refers to it.
OLD_NODES: Final[LiteralString] = (
    "DELETE FROM brain_node n WHERE status = 'removed'"
    " AND coalesce(removed_at, created_at) < now() - interval '90 days'"
    " AND NOT EXISTS (SELECT FROM brain_receipt r WHERE r.node_id = n.id)"
    " AND NOT EXISTS (SELECT FROM brain_location l WHERE l.node_id = n.id)"
)
DEAD_BRAINS: Final[LiteralString] = (
    "DELETE FROM brain_braininstance WHERE lease_until < now() - interval '1 day'"
)


class Upkeep(PeriodicTask):
    """The hourly round, and that of the lifecycle: it may take hours, each of which is metered."""

    def __init__(
        self,
        database: BrainDatabase,
        statistics: Statistics,
        lifecycle: Lifecycle,
        access_logs: AccessLogs,
    ) -> None:
        self._database = database
        self._statistics = statistics
        self._access_logs = access_logs
        self._lifecycle = PeriodicTask(
            "lifecycle", lambda: lifecycle.run(now=datetime.now(UTC)), _until_the_next_hour
        )
        super().__init__("upkeep", self.round, _until_the_next_hour)

    async def start(self) -> None:
        await super().start()
        await self._lifecycle.start()

    async def stop(self) -> None:
        """Stop both, in the middle of a round if necessary."""
        await self._lifecycle.stop()
        await super().stop()

    async def round(self) -> None:
        """Run everything but the lifecycle once. Raises DatabaseUnavailable."""
        try:
            await self._clean_up()
        finally:
            # It raises nothing, and does not wait for what failed before.
            await self._access_logs.write()

    async def _clean_up(self) -> None:
        await usage_lines.add_storage(self._database, clock=time.time)
        await usage_lines.forget(self._database)
        await records.forget(self._database)
        await operator_networks.forget(self._database)
        await self._statistics.roll_up()
        await self._database.run(OLD_RECEIPTS, [KEPT_DAYS])
        await registration.remove_unproved(self._database)
        await self._database.run(OLD_NODES)
        await self._database.run(DEAD_BRAINS)


async def _until_the_next_hour() -> None:
    await asyncio.sleep(HOUR_S - time.time() % HOUR_S + AFTER_S)
