"""The parts of multipart uploads: in the managed store, or files of the data directory."""

import errno
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from edgecache.brain.core.errors import Overloaded, PartMissing, StoreMissing
from edgecache.brain.core.values import BucketInfo, EnvironmentKey, Span, StagedFile
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.managed import RESTORED_BYTES, delete_quietly
from edgecache.brain.stores.reachable_stores import Stores
from edgecache.brain.stores.upload_parts_limit import UploadPartsLimit
from edgecache.runtime.fair_shares import Shares

# Absent, unreadable, too short.
DAMAGED: Final = frozenset({errno.ENOENT, errno.EIO})
# Shorter ones are joined on this machine, so that workers get copies of the file immediately.
# Longer ones are not: a read would not restore them either, or they would take much of the room.
STREAMED_BYTES: Final = RESTORED_BYTES
STREAMED_SHARE: Final = 8
# Concurrent completions of multipart uploads; each takes disk and processor time.
COMPLETIONS: Final = 16
# Each keeps its list in memory: 6 MB for 10,000 parts.
COMPLETION_WAIT_S: Final = 20.0


class PartFile(NamedTuple):
    """Where a part is. store_id: None is the data directory."""

    store_id: int | None
    name: str


class StoredPart(NamedTuple):
    """A part that is read back. md5: of its bytes."""

    at: PartFile
    size: int
    md5: bytes


class UploadParts:
    """This process's reads and writes of parts. At most COMPLETIONS objects are made of them."""

    def __init__(
        self, data_directory: DataDirectory, stores: Stores, limit: UploadPartsLimit
    ) -> None:
        self._data_directory = data_directory
        self._stores = stores
        self._limit = limit
        self._completing = Shares(COMPLETIONS, refusal=Overloaded, wait_s=COMPLETION_WAIT_S)

    @asynccontextmanager
    async def completing(self, bucket: BucketInfo) -> AsyncIterator[None]:
        """Hold one of an organization's permits for completing an upload.

        A completion continues without its client. Raises Overloaded.
        """
        async with self._completing.permit((bucket.tenant.organization_id, bucket.id)):
            yield

    async def check_room(self, tenant: EnvironmentKey, size: int) -> None:
        """Check before a part is received that the organization may have it.

        Raises TooManyParts, StoreUnavailable, DatabaseUnavailable.
        """
        with self._stores.open_write() as target:
            if target.store is not None:
                await self._limit.check(tenant.organization_id, size)

    @asynccontextmanager
    async def storing(self, tenant: EnvironmentKey, staged: StagedFile) -> AsyncIterator[PartFile]:
        """Store a part; the block writes its row. The staged file is consumed.

        Raises TooManyParts, StoreUnavailable, Overloaded, StorageFull.
        """
        with self._stores.open_write() as target:
            if target.store is None:
                name = await self._data_directory.keep_part(staged)
                try:
                    yield PartFile(None, name)
                finally:
                    self._data_directory.budget.note_row(name)
                return
            began = stored_blobs.clock()
            name = stored_blobs.new_name(target.tag, tenant, stored_blobs.PARTS)
            organization_id, size = tenant.organization_id, staged.manifest.size
            try:
                await self._limit.check(organization_id, size)
                with self._limit.count_arriving(organization_id, size):
                    await target.store.put(name, staged.path, size)
            finally:
                await self._data_directory.discard(staged)
            stored_blobs.check_fresh(began)
            yield PartFile(target.id, name)

    async def drop(self, part: PartFile) -> None:
        """Delete a part; what remains is found by listing. Raises OSError."""
        if part.store_id is None:
            await self._data_directory.drop_parts([part.name])
        elif self._stores.is_known(part.store_id):
            await delete_quietly(self._stores.known(part.store_id), part.name)

    def is_streamed(self, bucket: BucketInfo, size: int) -> bool:
        """True if parts go to the store as they are joined, without using this machine's disk."""
        is_long = size > min(STREAMED_BYTES, self._data_directory.limit_bytes // STREAMED_SHARE)
        return is_long and bucket.origin_id is None and self._stores.active_store is not None

    def max_object_bytes(self, bucket: BucketInfo) -> int:
        """Return the size of the largest object that can be made of parts in a bucket."""
        store = self._stores.active_store
        if store is not None and bucket.origin_id is None:
            return store.max_object_bytes
        return self._data_directory.budget.max_multipart_object_bytes(parts_are_local=store is None)

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
        known = None if at.store_id is None else self._stores.known(at.store_id)
        if known is None or known.store is None:
            return self._read_file(at.name, span)
        return known.store.read(at.name, span)

    async def _read_file(self, name: str, span: Span) -> AsyncIterator[bytes]:
        try:
            async for piece in self._data_directory.read(
                self._data_directory.part_path(name), span
            ):
                yield piece
        except OSError as exc:
            if exc.errno not in DAMAGED:
                raise
            raise StoreMissing from exc
