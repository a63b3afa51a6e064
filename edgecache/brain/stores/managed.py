"""Objects' bytes in the managed store: written before their row, checked when they are read."""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Final

import structlog

from common.machine.reasons import reason
from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import (
    BrainError,
    NoSuchBucket,
    OriginChanged,
    OriginMissing,
    Overloaded,
    PreconditionFailed,
    StoreMissing,
    StoreUnavailable,
)
from edgecache.brain.core.values import (
    BlobManifest,
    BucketInfo,
    EnvironmentKey,
    ObjectVersion,
    Span,
    StagedFile,
)
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.disk.buffers import BufferedBody
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.disk.digests import Digests, verified
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.reachable_stores import KnownStore, Stores
from edgecache.brain.stores.stored_blobs import BlobLocation, NewBlob
from edgecache.runtime.fair_shares import Shares

log = structlog.get_logger(__name__)

# Objects that reads restore to this disk concurrently, so that workers can get them; an
# organization may have two of these.
CONCURRENT_RESTORES: Final = 4
RESTORED_BYTES: Final = 2**30
# After these the row was not written, so that the bytes can be deleted immediately.
NOT_WRITTEN: Final = (PreconditionFailed, NoSuchBucket, OriginMissing, StoreUnavailable)


class ManagedStore:
    """The bytes of the built-in origin's objects, where they are not files of ours."""

    def __init__(
        self,
        database: BrainDatabase,
        data_directory: DataDirectory,
        stores: Stores,
        *,
        on_restored: Callable[[BucketInfo, ObjectVersion], None],
    ) -> None:
        """on_restored: called with a version that this brain has on disk again."""
        self._database = database
        self._data_directory = data_directory
        self._stores = stores
        self._on_restored = on_restored
        self._restoring: set[bytes] = set()
        self.restores = Shares(CONCURRENT_RESTORES, refusal=Overloaded)
        self._tasks = BackgroundTasks()

    async def stop(self) -> None:
        """Cancel running restores."""
        await self._tasks.stop()

    @asynccontextmanager
    async def write(
        self, tenant: EnvironmentKey, body: StagedFile | BufferedBody
    ) -> AsyncIterator[NewBlob | None]:
        """Write a body to the store; the block commits its row, and consumes the body.

        None: the body belongs to the files. Raises StoreUnavailable, and what the block raises.
        """
        with ExitStack() as stack:
            try:
                target = stack.enter_context(self._stores.open_write())
            except StoreUnavailable:
                await self._data_directory.discard(body)
                raise
            if target.store is None:
                yield None
                return
            began = stored_blobs.clock()
            name = stored_blobs.new_name(target.tag, tenant, stored_blobs.OBJECTS)
            data = body.data if isinstance(body, BufferedBody) else body.path
            try:
                await target.store.put(name, data, body.manifest.size)
            except BaseException:
                await self._data_directory.discard(body)
                raise
            async with _kept_if_written(self._tasks, target, name):
                at = BlobLocation(target.id, name)
                yield NewBlob(tenant, body.manifest.sha256, at, began)

    @asynccontextmanager
    async def write_stream(
        self, tenant: EnvironmentKey, pieces: AsyncIterator[bytes], size: int
    ) -> AsyncIterator[tuple[StagedFile, NewBlob]]:
        """Write a long body to the store as it arrives, without using this machine's disk.

        The block commits its row. The body that it gets has no file: workers have no copy until it
        is read. Raises StoreUnavailable, also if the only store is the data directory, and what the
        pieces and the block raise.
        """
        with self._stores.open_write() as target:
            if target.store is None:
                raise StoreUnavailable
            began = stored_blobs.clock()
            name = stored_blobs.new_name(target.tag, tenant, stored_blobs.OBJECTS)
            digests = Digests()
            await target.store.put(name, self._digested(digests, pieces), size)
            body = StagedFile(self._data_directory.temp / secrets.token_hex(16), digests.manifest())
            async with _kept_if_written(self._tasks, target, name):
                at = BlobLocation(target.id, name)
                yield body, NewBlob(tenant, body.manifest.sha256, at, began)

    async def _digested(
        self, digests: Digests, pieces: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        async for piece in pieces:
            await self._data_directory.run(digests.update, piece)
            yield piece

    async def read(
        self, bucket: BucketInfo, found: ObjectVersion, manifest: BlobManifest, span: Span
    ) -> AsyncIterator[bytes]:
        """Yield bytes of a version, compared with its manifest.

        Raises StoreMissing, StoreUnavailable, OriginChanged for altered ones, DatabaseUnavailable.
        """
        at = await stored_blobs.find(self._database, bucket.tenant, found.sha256)
        if at is None:
            raise StoreMissing
        known = self._stores.known(at.store_id)
        if known.store is None:
            raise StoreMissing
        read = partial(known.store.read, at.name)
        self._restore(bucket, found, manifest)
        try:
            async for piece in verified(read, manifest, span):
                yield piece
        except OriginChanged:
            log.error("store_altered_bytes", store=known.name, name=at.name)  # noqa: TRY400 - no trace
            raise

    def _restore(self, bucket: BucketInfo, found: ObjectVersion, manifest: BlobManifest) -> None:
        """Fetch a copy in the background: no worker seems to have these bytes."""
        if found.sha256 in self._restoring or found.size > RESTORED_BYTES:
            return
        share_key = (bucket.tenant.organization_id,)
        if self.restores.try_take(share_key):
            self._restoring.add(found.sha256)
            task = self._tasks.add(self._restored(bucket, found, manifest))
            task.add_done_callback(lambda _: self.restores.give_back(share_key))

    async def _restored(
        self, bucket: BucketInfo, found: ObjectVersion, manifest: BlobManifest
    ) -> None:
        try:
            body = self.read(bucket, found, manifest, Span(0, found.size))
            staged = await self._data_directory.take(body)
            try:
                path = self._data_directory.blob_path(found.sha256)
                await self._data_directory.run(self._data_directory.place, staged, path)
            finally:
                await self._data_directory.discard(staged)
            self._on_restored(bucket, found)
        except (BrainError, OSError) as exc:
            log.info("object_not_restored", sha256=found.sha256.hex(), reason=reason(exc))
        finally:
            self._restoring.discard(found.sha256)


@asynccontextmanager
async def _kept_if_written(
    tasks: BackgroundTasks, target: KnownStore, name: str
) -> AsyncIterator[None]:
    """Delete the bytes if the block says that their row was not written."""
    try:
        yield
    except NOT_WRITTEN:
        tasks.add(delete_quietly(target, name))
        raise


async def delete_quietly(target: KnownStore, *names: str) -> None:
    """Delete bytes without a row; those that remain are found by listing."""
    if target.store is None:
        return
    try:
        await target.store.delete(names)
    except StoreUnavailable:
        log.info("store_bytes_left", store=target.name, count=len(names))
