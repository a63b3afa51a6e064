"""The parts of multipart uploads, in the managed store."""

import hashlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final, NamedTuple

from edgecache.brain.core.errors import Overloaded, PartMissing, StoreMissing
from edgecache.brain.core.values import BucketInfo, EnvironmentKey, Span, StagedFile
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.managed import RESTORED_BYTES, delete_quietly
from edgecache.brain.stores.reachable_stores import KnownStore, Stores
from edgecache.brain.stores.upload_parts_limit import (
    FRESH_BEFORE_REFUSAL_S,
    UploadPartsLimit,
    count_local_parts,
)

# Shorter ones are joined on this machine, so that workers get copies of the file immediately.
# Longer ones are not: a read would not restore them either, or they would take much of the room.
STREAMED_BYTES: Final = RESTORED_BYTES
STREAMED_SHARE: Final = 8
# Memory of a part in the list of a completion: 6 MB for 10,000.
LISTED_PART_BYTES: Final = 640


class PartFile(NamedTuple):
    """Where a part is."""

    store_id: int
    name: str


class StoredPart(NamedTuple):
    """A part that is read back. md5: of its bytes."""

    at: PartFile
    size: int
    md5: bytes


class UploadParts:
    """This process's reads and writes of parts."""

    def __init__(
        self,
        database: BrainDatabase,
        data_directory: DataDirectory,
        stores: Stores,
        limit: UploadPartsLimit,
    ) -> None:
        self._database = database
        self._data_directory = data_directory
        self._stores = stores
        self._limit = limit
        self._recount_at = 0.0

    @contextmanager
    def completing(self, bucket: BucketInfo, parts: int) -> Iterator[None]:
        """Reserve memory for the list of an upload's parts. Raises Overloaded.

        A completion continues without its client, whose own permit has ended then.
        """
        shares = self._data_directory.buffers.shares
        held = ((bucket.tenant.organization_id, bucket.id), parts * LISTED_PART_BYTES)
        if not shares.try_take(*held):
            raise Overloaded
        try:
            yield
        finally:
            shares.give_back(*held)

    async def check_room(self, tenant: EnvironmentKey, size: int) -> None:
        """Check before a part is received that the organization may have it.

        Raises TooManyParts, StoreUnavailable, DatabaseUnavailable.
        """
        with self._stores.open_write() as target:
            if not target.is_local:
                await self._limit.check(tenant.organization_id, size)
            elif self._is_time_to_count(size):
                await count_local_parts(self._database, self._data_directory)

    @asynccontextmanager
    async def storing(self, tenant: EnvironmentKey, staged: StagedFile) -> AsyncIterator[PartFile]:
        """Store a part; the block writes its row. The staged file is consumed.

        Raises TooManyParts, StoreUnavailable, Overloaded, StorageFull.
        """
        with self._stores.open_write() as target:
            began = stored_blobs.clock()
            name = stored_blobs.new_name(target.tag, tenant, stored_blobs.PARTS)
            put = self._put_local if target.is_local else self._put
            try:
                await put(target, tenant, name, staged)
            finally:
                await self._data_directory.discard(staged)
            try:
                stored_blobs.check_fresh(began)
                yield PartFile(target.id, name)
            finally:
                self._data_directory.budget.note_row(name)

    async def _put(
        self, target: KnownStore, tenant: EnvironmentKey, name: str, staged: StagedFile
    ) -> None:
        organization_id, size = tenant.organization_id, staged.manifest.size
        await self._limit.check(organization_id, size)
        with self._limit.count_arriving(organization_id, size):
            await target.store.put(name, staged, size)

    async def _put_local(
        self, target: KnownStore, _tenant: EnvironmentKey, name: str, staged: StagedFile
    ) -> None:
        """Store a part in the data directory, whose disk has one budget."""
        # In one step, because a part must not need twice its size.
        self._data_directory.count_out(staged.path)
        self._data_directory.budget.take_part(name, staged.manifest.size)
        try:
            await target.store.put(name, staged, staged.manifest.size)
        except BaseException:
            self._data_directory.budget.give_back_part(name)
            raise

    def _is_time_to_count(self, size: int) -> bool:
        """True if a part may be refused, and parts that were deleted may still count."""
        now = time.monotonic()
        if now < self._recount_at or self._data_directory.budget.has_room_for_part(size):
            return False
        self._recount_at = now + FRESH_BEFORE_REFUSAL_S
        return True

    async def drop(self, part: PartFile) -> None:
        """Delete a part; what remains is found by listing."""
        self._data_directory.budget.give_back_part(part.name)
        await delete_quietly(self._stores.known(part.store_id), part.name)

    def is_streamed(self, bucket: BucketInfo, size: int) -> bool:
        """True if parts go to the store as they are joined, without being received again."""
        is_long = size > min(STREAMED_BYTES, self._data_directory.limit_bytes // STREAMED_SHARE)
        return is_long and bucket.origin_id is None

    def max_object_bytes(self, bucket: BucketInfo) -> int:
        """Return the size of the largest object that can be made of parts in a bucket."""
        active = self._stores.active
        if active is not None and bucket.origin_id is None:
            return active.store.max_object_bytes
        is_local = active is not None and active.is_local
        return self._data_directory.budget.max_multipart_object_bytes(parts_are_local=is_local)

    async def join(self, parts: Sequence[StoredPart]) -> StagedFile:
        """Concatenate parts into one body; the parts stay.

        Raises PartMissing when one was deleted or altered, StoreUnavailable, StorageFull, OSError.
        """
        return await self._data_directory.take(self.read(parts))

    async def read(self, parts: Sequence[StoredPart]) -> AsyncIterator[bytes]:
        """Yield the bytes of parts, one after another. Raises as ``join`` does."""
        for index, part in enumerate(parts):
            digest = hashlib.md5(usedforsecurity=False)
            try:
                async for piece in self._source(part.at, Span(0, part.size)):
                    digest.update(piece)
                    yield piece
            except StoreMissing as exc:
                raise PartMissing(index) from exc
            if digest.digest() != part.md5:
                raise PartMissing(index)

    def _source(self, at: PartFile, span: Span) -> AsyncIterator[bytes]:
        return self._stores.known(at.store_id).store.read(at.name, span)
