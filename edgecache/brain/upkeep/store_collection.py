"""Garbage collection in the stores: discarded bytes, and leftovers of crashes."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from edgecache.brain.core.errors import StoreUnavailable
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.stores.byte_store import ListedFile
from edgecache.brain.stores.reachable_stores import KnownStore, Stores
from edgecache.brain.stores.stored_blobs import STRAY_AFTER_S

log = structlog.get_logger(__name__)

STEP: Final = 1000
STEP_TIMEOUT_S: Final = 60.0
SWEEP_EVERY_S: Final = 24 * 3600.0
FIRST_SWEEP_AFTER_S: Final = 3600.0

DUE: Final = (
    "SELECT id, name FROM brain_discardedbytes WHERE store_id = %s AND due_at <= now()"
    " ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED"
)
UNKNOWN: Final = (
    "SELECT given.name FROM unnest(%(names)s::text[]) given (name) WHERE"
    " NOT EXISTS (SELECT FROM brain_storedblob l"
    " WHERE l.store_id = %(store)s AND l.name = given.name)"
    " AND NOT EXISTS (SELECT FROM brain_discardedbytes d"
    " WHERE d.store_id = %(store)s AND d.name = given.name)"
    " AND given.name NOT IN (SELECT file FROM brain_uploadpart WHERE store_id = %(store)s)"
)


class StoreCollector:
    """This brain's garbage collection in the stores; the database keeps the brains apart."""

    def __init__(self, database: BrainDatabase, stores: Stores) -> None:
        self._database = database
        self._stores = stores
        self._sweep_at = time.monotonic() + FIRST_SWEEP_AFTER_S

    async def round(self) -> None:
        """Delete what is due; once a day find the leftovers of crashes.

        Raises DatabaseUnavailable.
        """
        is_time = time.monotonic() > self._sweep_at
        if is_time:
            self._sweep_at = time.monotonic() + SWEEP_EVERY_S
        for known in self._stores.all():
            try:
                await self._delete_due(known)
                if is_time:
                    await self.sweep(known)
            except StoreUnavailable:
                log.warning("store_collection_put_off", store=known.name)

    async def sweep(self, known: KnownStore, *, after_s: float = STRAY_AFTER_S) -> int:
        """Delete names without a row, and unfinished uploads; return their number.

        after_s: the age from which they cannot belong to a running write. Raises StoreUnavailable,
        DatabaseUnavailable.
        """
        before = datetime.now(UTC) - timedelta(seconds=after_s)
        count = await known.store.abort_unfinished(known.tag, before)
        async for page in known.store.list(known.tag):
            strays = await self._strays(known, page, before)
            await known.store.delete(strays)
            count += len(strays)
        if count:
            log.info("store_strays_deleted", store=known.name, count=count)
        return count

    async def _delete_due(self, known: KnownStore) -> None:
        is_more = True
        while is_more:
            async with self._database.transaction(timeout_s=STEP_TIMEOUT_S) as connection:
                rows = await connection.all(DUE, [known.id, STEP])
                if rows:
                    await known.store.delete([row.name for row in rows])
                    await connection.run(
                        "DELETE FROM brain_discardedbytes WHERE id = ANY(%s)",
                        [[row.id for row in rows]],
                    )
            is_more = len(rows) == STEP

    async def _strays(
        self, known: KnownStore, page: Sequence[ListedFile], before: datetime
    ) -> list[str]:
        old = [each.name for each in page if each.modified_at < before]
        if not old:
            return []
        rows = await self._database.all(UNKNOWN, {"names": old, "store": known.id})
        return [row.name for row in rows]
