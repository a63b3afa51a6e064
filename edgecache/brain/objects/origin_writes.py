"""Writes to external origins: first the origin, then the directory, safe against crashes between.

A write is recorded (``PendingWrite``) before the origin is called, and the record is deleted in the
directory's commit. While it exists no brain caches the key. Where two writes overlap, or the
outcome is unknown, the directory forgets the key, and the next read asks the origin.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Final
from uuid import UUID

import structlog

from common.ids import uuid7
from edgecache.brain.core.errors import DatabaseUnavailable, NoSuchBucket
from edgecache.brain.core.values import (
    BucketInfo,
    Conditions,
    ObjectVersion,
    StagedFile,
    WrittenFields,
)
from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory import commits
from edgecache.brain.directory.commits import VersionRow
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.objects import upload_rows
from edgecache.brain.origins.driver import Driver

log = structlog.get_logger(__name__)

HOLD_BUCKET: Final = "SELECT 1 FROM brain_bucket WHERE id = %s FOR KEY SHARE"
BEGIN: Final = (
    "WITH noted AS (INSERT INTO brain_pendingwrite (write_id, bucket_id, key, brain_id)"
    " SELECT %s, b.id, key, %s FROM brain_bucket b, unnest(%s::text[]) key WHERE b.id = %s)"
    " SELECT nextval('brain_generation') AS generation"
)


class OriginWrites:
    """This brain's writes to external origins."""

    def __init__(
        self,
        database: BrainDatabase,
        coherence: Coherence,
        data_directory: DataDirectory,
        brain_id: UUID,
    ) -> None:
        self._database = database
        self._coherence = coherence
        self._data_directory = data_directory
        self._brain_id = brain_id
        # Writes that run here; other rows of this brain were left by a failure.
        self.active: set[UUID] = set()

    async def put(
        self,
        driver: Driver,
        bucket: BucketInfo,
        key: str,
        staged: StagedFile,
        fields: WrittenFields,
        conditions: Conditions,
    ) -> ObjectVersion:
        """Write an object.

        Raises PreconditionFailed, UploadMissing, UploadBusy, OriginError, NoSuchBucket,
        DatabaseUnavailable.
        """
        upload = conditions.upload
        write_id, began = await self._begin(bucket, [key], upload=upload)
        try:
            written = await driver.put(key, staged, fields, conditions)
            version = VersionRow(
                bucket.id, key, "", staged.manifest, fields, written.etag, written.last_modified, {}
            )
            return await self._commit(version, staged, write_id, began, upload)
        except BaseException:
            # A condition that does not hold, too: the origin has another version than was known.
            await self.settle(write_id, bucket.id, [key])
            raise
        finally:
            self.active.discard(write_id)

    async def delete(self, driver: Driver, bucket: BucketInfo, keys: Sequence[str]) -> None:
        """Delete objects. Raises OriginError, NoSuchBucket, DatabaseUnavailable."""
        write_id, _ = await self._begin(bucket, keys)
        try:
            await driver.delete(keys)
        finally:
            # Successful or not, the previous version must not be served any more.
            await self._settle_own(write_id, bucket.id, keys)

    async def run_recorded(
        self, bucket: BucketInfo, key: str, write: Callable[[], Awaitable[Sequence[str]]]
    ) -> None:
        """Run a write that may change a key at the origin; all brains forget the key afterwards.

        write: returns the keys that changed, none where the origin refused. Where it raises, the
        outcome is unknown and the key is forgotten. Raises what write raises; NoSuchBucket,
        DatabaseUnavailable.
        """
        write_id, _ = await self._begin(bucket, [key])
        changed: Sequence[str] = [key]
        try:
            changed = await write()
        finally:
            await self._settle_own(write_id, bucket.id, changed)

    async def settle(self, write_id: UUID, bucket_id: int, keys: Sequence[str]) -> None:
        """Forget the keys of a write that has ended, and delete its record.

        Raises DatabaseUnavailable: the record stays, and garbage collection tries again.
        """
        async with self._coherence.transaction() as change:
            await commits.lock_keys(change, bucket_id, keys)
            await commits.forget_keys(change, bucket_id, keys)
            await _delete_record(change, write_id)

    async def _settle_own(self, write_id: UUID, bucket_id: int, keys: Sequence[str]) -> None:
        try:
            if keys:
                await self.settle(write_id, bucket_id, keys)
            else:
                await self._end(write_id)
        finally:
            # Where that failed, garbage collection settles the record.
            self.active.discard(write_id)

    async def _begin(
        self, bucket: BucketInfo, keys: Sequence[str], *, upload: str = ""
    ) -> tuple[UUID, int]:
        """Record a write. upload: one that it completes, which no other write does then."""
        write_id = upload_rows.write_id(upload) if upload else uuid7()
        with ExitStack() as on_failure:
            async with self._database.transaction() as connection:
                if upload:
                    # In the order of the bucket's deletion: the record refers to the bucket.
                    if await connection.one(HOLD_BUCKET, [bucket.id]) is None:
                        raise NoSuchBucket
                    await upload_rows.lock(connection, upload)
                self.active.add(write_id)
                on_failure.callback(self.active.discard, write_id)
                row = await connection.one(BEGIN, [write_id, self._brain_id, list(keys), bucket.id])
            on_failure.pop_all()
        if row is None:
            raise DatabaseUnavailable
        return write_id, row.generation

    async def _commit(
        self, version: VersionRow, staged: StagedFile, write_id: UUID, began: int, upload: str
    ) -> ObjectVersion:
        bucket_id, key, manifest = version.bucket_id, version.key, version.manifest
        async with self._coherence.transaction() as change:
            await commits.lock_keys(change, bucket_id, [key])
            await _delete_record(change, write_id)
            if upload:
                # The record has prevented any other end of the upload, but parts may still arrive.
                await change.run(upload_rows.LOCK, [upload])
                await upload_rows.delete(change, upload)
            if await commits.is_overtaken(change, (bucket_id, key, ""), began):
                await commits.forget_keys(change, bucket_id, [key])
                written = commits.version_of(version)
            else:
                await commits.hold_blob(change, manifest)
                await self._data_directory.keep_copy(staged)
                written = await commits.write_cached(change, version, is_written=True)
        return written

    async def _end(self, write_id: UUID) -> None:
        await self._database.run("DELETE FROM brain_pendingwrite WHERE write_id = %s", [write_id])


async def _delete_record(change: AnnouncingTransaction, write_id: UUID) -> None:
    await change.run("DELETE FROM brain_pendingwrite WHERE write_id = %s", [write_id])
