"""The networks that operators themselves use, by organization."""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Final, LiteralString

from edgecache.brain.core.background import PeriodicTask
from edgecache.brain.db.database import BrainDatabase

REFRESH_S: Final = 10.0
KEPT_DAYS: Final = 30
# A node's network is written again after this time; no operator has more networks than these.
AGAIN_AFTER_S: Final = 3600.0
MAX_NETWORKS: Final = 1000
MAX_NOTED: Final = 10_000

READ: Final[LiteralString] = (
    "SELECT operator_id, array_agg(DISTINCT prefix) AS prefixes FROM brain_operatornetwork"
    " WHERE seen_at > now() - make_interval(days => %s) GROUP BY operator_id"
)
NOTE: Final[LiteralString] = (
    "INSERT INTO brain_operatornetwork (operator_id, source, prefix)"
    " SELECT %s, 'node', %s WHERE"
    " (SELECT count(*) FROM brain_operatornetwork WHERE operator_id = %s AND source = 'node') < %s"
    " ON CONFLICT (operator_id, source, prefix) DO UPDATE SET seen_at = now()"
)
REPLACE: Final[LiteralString] = (
    "WITH gone AS (DELETE FROM brain_operatornetwork WHERE operator_id = %s"
    " AND source = 'session' AND prefix <> ALL(%s::text[]))"
    " INSERT INTO brain_operatornetwork (operator_id, source, prefix)"
    " SELECT %s, 'session', unnest(%s::text[])"
    " ON CONFLICT (operator_id, source, prefix) DO UPDATE SET seen_at = now()"
)
FORGET: Final[LiteralString] = (
    "DELETE FROM brain_operatornetwork WHERE seen_at < now() - make_interval(days => %s)"
)


class OperatorNetworks(PeriodicTask):
    """What one brain knows: read every ten seconds, at most 2,000 networks for each operator."""

    def __init__(
        self, database: BrainDatabase, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._clock = clock
        self._known: dict[int, frozenset[str]] = {}
        self._noted: dict[tuple[int, str], float] = {}
        super().__init__("operator networks", self.refresh, lambda: asyncio.sleep(REFRESH_S))

    def of(self, operator_id: int) -> frozenset[str]:
        return self._known.get(operator_id, frozenset())

    async def refresh(self) -> None:
        """Read them. Raises DatabaseUnavailable."""
        rows = await self._database.all(READ, [KEPT_DAYS])
        self._known = {row.operator_id: frozenset(row.prefixes) for row in rows}

    async def note(self, operator_id: int, prefix: str) -> None:
        """Store that a node connected from a network. Raises DatabaseUnavailable."""
        name = (operator_id, prefix)
        if self._clock() - self._noted.get(name, -AGAIN_AFTER_S) < AGAIN_AFTER_S:
            return
        await self._database.run(NOTE, [operator_id, prefix, operator_id, MAX_NETWORKS])
        if len(self._noted) >= MAX_NOTED:
            self._noted.clear()
        self._noted[name] = self._clock()
        await self.refresh()

    async def replace(self, operator_id: int, prefixes: Collection[str]) -> None:
        """Store the networks of an operator's recent sessions. Raises DatabaseUnavailable."""
        wanted = sorted(prefixes)[:MAX_NETWORKS]
        await self._database.run(REPLACE, [operator_id, wanted, operator_id, wanted])
        await self.refresh()


async def forget(database: BrainDatabase) -> None:
    """Delete networks that were not seen for a long time. Raises DatabaseUnavailable."""
    await database.run(FORGET, [KEPT_DAYS])
