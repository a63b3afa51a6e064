"""How many bytes of unfinished uploads' parts an organization may have in stores.

Parts that are files of the data directory count in its budget (``disk/budget.py``) instead.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from edgecache.brain.core.errors import TooManyParts
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.runtime.bounded_cache import BoundedCache

# For one organization, against uploads that are begun and never completed.
LIMIT_BYTES: Final = 2**40
# How long what this brain knows may leave out what other brains have written or deleted.
FRESH_S: Final = 10.0
# Before a refusal it is counted again, but not for each of many.
FRESH_BEFORE_REFUSAL_S: Final = 1.0
MAX_ORGANIZATIONS_COUNTED: Final = 10_000

STORED: Final = (
    "SELECT coalesce(sum(p.size), 0)::bigint AS bytes FROM brain_uploadpart p"
    " JOIN brain_upload u ON u.id = p.upload_id JOIN brain_bucket b ON b.id = u.bucket_id"
    " JOIN brain_store s ON s.id = p.store_id"
    " WHERE b.organization_id = %s AND s.name <> 'file://'"
)
# Of all brains that share the data directory.
LOCAL_PARTS: Final = (
    "SELECT b.organization_id, sum(p.size)::bigint AS bytes FROM brain_uploadpart p"
    " JOIN brain_upload u ON u.id = p.upload_id JOIN brain_bucket b ON b.id = u.bucket_id"
    " JOIN brain_store s ON s.id = p.store_id"
    " WHERE s.name = 'file://' GROUP BY b.organization_id"
)


@dataclass(slots=True)
class _Count:
    """The bytes of an organization. at: monotonic seconds."""

    bytes: int
    at: float = field(default_factory=time.monotonic)

    def is_older(self, seconds: float) -> bool:
        """True if it was counted longer ago."""
        return time.monotonic() - self.at >= seconds


class UploadPartsLimit:
    """This process's view of what organizations have in stores.

    Several processes may together let an organization go beyond its limit by what they take within
    FRESH_S.
    """

    def __init__(self, database: BrainDatabase) -> None:
        self._database = database
        self._counted: BoundedCache[int, _Count] = BoundedCache(
            MAX_ORGANIZATIONS_COUNTED, lambda *_: 1
        )
        self._arriving: Counter[int] = Counter()

    async def check(self, organization_id: int, size: int) -> None:
        """Check that there is room for a part. Raises TooManyParts, DatabaseUnavailable."""
        count = self._counted.get(organization_id)
        if count is None or count.is_older(FRESH_S):
            count = await self._count(organization_id)
        if self._has_room(organization_id, count, size):
            return
        if count.is_older(FRESH_BEFORE_REFUSAL_S):
            count = await self._count(organization_id)
        if not self._has_room(organization_id, count, size):
            raise TooManyParts(LIMIT_BYTES)

    @contextmanager
    def count_arriving(self, organization_id: int, size: int) -> Iterator[None]:
        """Count a part while its bytes and its row are written, and after the block."""
        self._arriving[organization_id] += size
        try:
            yield
        finally:
            self._arriving[organization_id] -= size
            if not self._arriving[organization_id]:
                del self._arriving[organization_id]
        count = self._counted.get(organization_id)
        if count is not None:
            count.bytes += size

    def _has_room(self, organization_id: int, count: _Count, size: int) -> bool:
        taken = count.bytes + self._arriving[organization_id]
        return taken + size <= LIMIT_BYTES

    async def _count(self, organization_id: int) -> _Count:
        row = await self._database.one(STORED, [organization_id])
        count = _Count(0 if row is None else row.bytes)
        self._counted.put(organization_id, count)
        return count


async def count_local_parts(database: BrainDatabase, data_directory: DataDirectory) -> None:
    """Count the parts in the data directory in its budget: this brain's part of them.

    Raises DatabaseUnavailable.
    """
    # First: a part that gets its row in between is counted twice until the next time, not missed.
    counted = data_directory.budget.parts_without_row()
    for row in await database.all(LOCAL_PARTS):
        counted[row.organization_id] += row.bytes // data_directory.brains
    data_directory.budget.count_parts(counted)
