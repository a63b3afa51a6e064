"""Objects' bytes: small ones are rows, others are in the managed store before their row is written.

They are checked when they are read.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from common.machine.reasons import reason
from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import (
    BrainError,
    NoSuchBucket,
    OriginChanged,
    OriginMissing,
    PreconditionFailed,
    StorageFull,
    StoreMissing,
    StoreUnavailable,
    UploadMissing,
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
from edgecache.protocol.batches import BATCHED_BYTES

log = structlog.get_logger(__name__)

# Objects that reads restore to this disk concurrently, so that workers can get them. Others are
# restored when they are read again: until then their reads go to the store.
CONCURRENT_RESTORES: Final = 4
RESTORED_BYTES: Final = 2**30
# After these the row was not written, so that the bytes can be deleted immediately.
NOT_WRITTEN: Final = (
    PreconditionFailed,
    NoSuchBucket,
    OriginMissing,
    UploadMissing,
    StoreUnavailable,
)

# What the transaction of a write records: a small body, or where the store has another one.
Placed = bytes | NewBlob


class LocalBodies:
    """The bodies that this machine can read by itself: rows, and files."""

    def __init__(
        self, database: BrainDatabase, data_directory: DataDirectory, stores: Stores
    ) -> None:
        self._database = database
        self._data_directory = data_directory
        self._stores = stores
        self.threads = data_directory.threads

    async def read(
        self, bucket: BucketInfo, wanted: Sequence[tuple[bytes, int]]
    ) -> dict[bytes, Path | bytes]:
        """Return the bytes of small blobs, unchecked, and the files of others; some may be missing.

        wanted: hashes and sizes. Raises DatabaseUnavailable.
        """
        hashes = [sha256 for sha256, _ in wanted]
        found: dict[bytes, Path | bytes] = {}
        files = {sha256: self.copy_of(sha256) for sha256 in hashes}
        if bucket.origin_id is None:
            small = [sha256 for sha256, size in wanted if size <= stored_blobs.SMALL_BYTES]
            found |= await stored_blobs.small_bodies(self._database, small)
            large = [sha256 for sha256 in hashes if sha256 not in found]
            files = await self.files(bucket.tenant, large)
        found |= await self._data_directory.run(_existing, files, dict(wanted))
        return found

    async def has_hash(self, file: Path, sha256: bytes) -> bool:
        """True if a file exists and has this hash. Reads all of it."""
        return await self._data_directory.run(_has_hash, file, sha256)

    async def files(self, tenant: EnvironmentKey, hashes: Sequence[bytes]) -> dict[bytes, Path]:
        """Return files of a built-in origin's blobs, which may not exist: the store's, or copies.

        Raises DatabaseUnavailable.
        """
        found: dict[bytes, BlobLocation] = {}
        if self._stores.has_folders:
            found = await stored_blobs.find(self._database, tenant, hashes)
        own = {sha256: self._stores.file(at) for sha256, at in found.items()}
        return {sha256: own.get(sha256) or self.copy_of(sha256) for sha256 in hashes}

    def copy_of(self, sha256: bytes) -> Path:
        """Return the file of a copy, which may not exist."""
        return self._data_directory.blob_path(sha256)


class ManagedStore:
    """The bytes of the built-in origin's objects."""

    def __init__(
        self,
        database: BrainDatabase,
        data_directory: DataDirectory,
        stores: Stores,
        *,
        on_restored: Callable[[BucketInfo, ObjectVersion], None],
    ) -> None:
        """on_restored: called with a version of the directory that is on disk again."""
        self._database = database
        self._data_directory = data_directory
        self._stores = stores
        self._on_restored = on_restored
        self._restoring: set[bytes] = set()
        self._tasks = BackgroundTasks()

    async def stop(self) -> None:
        """Cancel running restores."""
        await self._tasks.stop()

    @asynccontextmanager
    async def write(
        self, tenant: EnvironmentKey, body: StagedFile | BufferedBody
    ) -> AsyncIterator[Placed]:
        """Make a body durable, unless it is small; the block commits its rows.

        The body is consumed. Raises StoreUnavailable, StorageFull, Overloaded, OSError, and what
        the block raises.
        """
        try:
            if body.manifest.size <= stored_blobs.SMALL_BYTES:
                yield await self._read_whole(body)
                return
            with self._stores.open_write() as target:
                began = stored_blobs.clock()
                name = stored_blobs.new_name(target.tag, tenant, stored_blobs.OBJECTS)
                data = body.data if isinstance(body, BufferedBody) else body
                await target.store.put(name, data, body.manifest.size)
                async with _kept_if_written(self._tasks, target, name):
                    if target.store.file(name) is None:
                        await self._keep_copy(body)
                    at = BlobLocation(target.id, name)
                    yield NewBlob(tenant, body.manifest.sha256, at, began)
        finally:
            await self._data_directory.discard(body)

    @asynccontextmanager
    async def write_stream(
        self, tenant: EnvironmentKey, pieces: AsyncIterator[bytes], size: int
    ) -> AsyncIterator[tuple[BlobManifest, NewBlob]]:
        """Write a long body to the store as it arrives; the block commits its row.

        Raises StoreUnavailable, and what the pieces and the block raise.
        """
        with self._stores.open_write() as target:
            began = stored_blobs.clock()
            name = stored_blobs.new_name(target.tag, tenant, stored_blobs.OBJECTS)
            digests = Digests()
            await target.store.put(name, self._digested(digests, pieces), size)
            manifest = digests.manifest()
            async with _kept_if_written(self._tasks, target, name):
                at = BlobLocation(target.id, name)
                yield manifest, NewBlob(tenant, manifest.sha256, at, began)

    async def read(
        self, bucket: BucketInfo, found: ObjectVersion, manifest: BlobManifest, span: Span
    ) -> AsyncIterator[bytes]:
        """Yield bytes of a version, compared with its manifest.

        Raises StoreMissing, also for altered ones, StoreUnavailable, DatabaseUnavailable.
        """
        if found.size <= stored_blobs.SMALL_BYTES:
            read, place = await self._small_reader(found), ("rows", "")
        else:
            read, place = await self._reader(bucket, found, manifest)
        try:
            async for piece in verified(read, manifest, span):
                yield piece
        except OriginChanged:
            log.error("store_altered_bytes", store=place[0], name=place[1])  # noqa: TRY400 - no trace
            raise StoreMissing from None

    async def _small_reader(self, found: ObjectVersion) -> Callable[[Span], AsyncIterator[bytes]]:
        bodies = await stored_blobs.small_bodies(self._database, [found.sha256])
        if found.sha256 not in bodies:
            raise StoreMissing
        return partial(_part, bodies[found.sha256])

    async def _reader(
        self, bucket: BucketInfo, found: ObjectVersion, manifest: BlobManifest
    ) -> tuple[Callable[[Span], AsyncIterator[bytes]], tuple[str, str]]:
        places = await stored_blobs.find(self._database, bucket.tenant, [found.sha256])
        if found.sha256 not in places:
            raise StoreMissing
        at = places[found.sha256]
        known = self._stores.known(at.store_id)
        if known.store.file(at.name) is None:
            self._restore(bucket, found, manifest)
        return partial(known.store.read, at.name), (known.name, at.name)

    async def _read_whole(self, body: StagedFile | BufferedBody) -> bytes:
        if isinstance(body, BufferedBody):
            return body.data
        return await self._data_directory.run(body.path.read_bytes)

    async def _keep_copy(self, body: StagedFile | BufferedBody) -> None:
        """Keep a copy on this machine, so that workers can get it."""
        try:
            await self._data_directory.keep_copy(body)
        except (StorageFull, OSError) as exc:
            log.warning("copy_not_kept", sha256=body.manifest.sha256.hex(), reason=reason(exc))

    async def _digested(
        self, digests: Digests, pieces: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        async for piece in pieces:
            await self._data_directory.run(digests.update, piece)
            yield piece

    def _restore(self, bucket: BucketInfo, found: ObjectVersion, manifest: BlobManifest) -> None:
        """Fetch a copy in the background: no worker seems to have these bytes."""
        has_room = len(self._restoring) < CONCURRENT_RESTORES and found.size <= RESTORED_BYTES
        if has_room and found.sha256 not in self._restoring:
            self._restoring.add(found.sha256)
            self._tasks.add(self._restored(bucket, found, manifest))

    async def _restored(
        self, bucket: BucketInfo, found: ObjectVersion, manifest: BlobManifest
    ) -> None:
        try:
            body = self.read(bucket, found, manifest, Span(0, found.size))
            staged = await self._data_directory.take(body)
            try:
                await self._data_directory.keep_copy(staged)
            finally:
                await self._data_directory.discard(staged)
            # Others are read from this disk only: workers get none of a bucket's older versions.
            if found.generation:
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
    try:
        await target.store.delete(names)
    except StoreUnavailable:
        log.info("store_bytes_left", store=target.name, count=len(names))


async def _part(body: bytes, span: Span) -> AsyncIterator[bytes]:
    yield body[span.start : span.start + span.length]


def _has_hash(path: Path, sha256: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest() == sha256
    except OSError:
        return False


def _existing(files: Mapping[bytes, Path], sizes: Mapping[bytes, int]) -> dict[bytes, Path | bytes]:
    """Return the files that have their size, and the bytes of those that are small. It blocks."""
    found: dict[bytes, Path | bytes] = {}
    for sha256, path in files.items():
        try:
            if sizes[sha256] <= BATCHED_BYTES:
                found[sha256] = path.read_bytes()
            elif path.stat().st_size == sizes[sha256]:
                found[sha256] = path
            else:
                log.error("local_file_damaged", sha256=sha256.hex())
        except FileNotFoundError:
            continue
    return found
