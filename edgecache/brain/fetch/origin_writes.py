"""Changes of external origins: the origin first, then the directory, whoever dies in between.

A write is noted (``PendingWrite``) before the origin hears of it, and the note goes with the
directory's commit. While it stands nobody caches the key. Where two writes overlap, or the
outcome is not known, the directory forgets the key, and the next read asks the origin.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from uuid import UUID

import structlog

from edgecache.brain.database import Database
from edgecache.brain.directory import commits
from edgecache.brain.directory.coherence import Change, Coherence
from edgecache.brain.errors import DatabaseAway, PreconditionFailed
from edgecache.brain.origins.driver import Driver, WriteResult
from edgecache.brain.storage.staging import Staging
from edgecache.brain.values import BucketInfo, Conditions, Fields, ObjectVersion, StagedFile
from platform_site.lib.ids import uuid7

log = structlog.get_logger(__name__)

BEGIN: Final = (
    "WITH noted AS (INSERT INTO brain_pendingwrite (write_id, bucket_id, key, brain_id)"
    " SELECT %s, b.id, key, %s FROM brain_bucket b, unnest(%s::text[]) key WHERE b.id = %s)"
    " SELECT nextval('brain_generation') AS generation"
)


class OriginWrites:
    """This brain's writes to external origins."""

    def __init__(
        self, database: Database, coherence: Coherence, staging: Staging, brain_id: UUID
    ) -> None:
        self._database = database
        self._coherence = coherence
        self._staging = staging
        self._brain_id = brain_id
        # Under way here; what else the rows say of this brain is a loose end.
        self.active: set[UUID] = set()

    async def put(
        self,
        driver: Driver,
        bucket: BucketInfo,
        key: str,
        staged: StagedFile,
        fields: Fields,
        conditions: Conditions,
    ) -> ObjectVersion:
        """Write an object.

        Raises PreconditionFailed, OriginError's kinds, NoSuchBucket, DatabaseAway.
        """
        write_id, began = await self._begin(bucket, [key])
        try:
            written = await driver.put(key, staged, fields, conditions)
            return await self._commit(bucket, key, staged, fields, written, write_id, began)
        except PreconditionFailed:
            await self._end(write_id)
            raise
        except BaseException:
            await self.settle(write_id, bucket.id, [key])
            raise
        finally:
            self.active.discard(write_id)

    async def delete(self, driver: Driver, bucket: BucketInfo, keys: Sequence[str]) -> None:
        """Delete objects.

        Raises OriginError's kinds, NoSuchBucket, DatabaseAway.
        """
        write_id, _ = await self._begin(bucket, keys)
        try:
            await driver.delete(keys)
        finally:
            # Whether it went well or not, what was there is not to be answered with.
            await self._settle_own(write_id, bucket.id, keys)

    async def around(
        self, bucket: BucketInfo, key: str, deed: Callable[[], Awaitable[Sequence[str]]]
    ) -> None:
        """Do what may change a key at the origin; every brain has forgotten it afterwards.

        deed: gives the keys that changed, none where the origin refused. Where it raises nobody
        knows, and the key is forgotten. Raises as the deed does; NoSuchBucket, DatabaseAway.
        """
        write_id, _ = await self._begin(bucket, [key])
        changed: Sequence[str] = [key]
        try:
            changed = await deed()
        finally:
            await self._settle_own(write_id, bucket.id, changed)

    async def settle(self, write_id: UUID, bucket_id: int, keys: Sequence[str]) -> None:
        """Forget the keys of a write that is over, one way or another; the note goes with them.

        Raises DatabaseAway: the note stands, and the collector tries again.
        """
        async with self._coherence.change() as change:
            await commits.lock_keys(change, bucket_id, keys)
            await commits.forget_keys(change, bucket_id, keys)
            await _forget_note(change, write_id)

    async def _settle_own(self, write_id: UUID, bucket_id: int, keys: Sequence[str]) -> None:
        try:
            if keys:
                await self.settle(write_id, bucket_id, keys)
            else:
                await self._end(write_id)
        finally:
            # Where that failed, the note is a loose end from now on: the collector's.
            self.active.discard(write_id)

    async def _begin(self, bucket: BucketInfo, keys: Sequence[str]) -> tuple[UUID, int]:
        write_id = uuid7()
        self.active.add(write_id)
        try:
            row = await self._database.one(BEGIN, [write_id, self._brain_id, list(keys), bucket.id])
        except BaseException:
            self.active.discard(write_id)
            raise
        if row is None:
            raise DatabaseAway
        return write_id, row.generation

    async def _commit(
        self,
        bucket: BucketInfo,
        key: str,
        staged: StagedFile,
        fields: Fields,
        written: WriteResult,
        write_id: UUID,
        began: int,
    ) -> ObjectVersion:
        manifest = staged.manifest
        version = commits.VersionRow(
            bucket.id, key, "", manifest, fields, written.etag, written.last_modified, {}
        )
        async with self._coherence.change() as change:
            await commits.lock_keys(change, bucket.id, [key])
            await _forget_note(change, write_id)
            if await commits.is_overtaken(change, (bucket.id, key, ""), began):
                await commits.forget_keys(change, bucket.id, [key])
                return commits.version_of(version)
            await commits.hold_blob(change, manifest)
            await self._staging.run(
                self._staging.place, staged, self._staging.blob_path(manifest.sha256)
            )
            return await commits.write_cached(change, version, is_written=True)

    async def _end(self, write_id: UUID) -> None:
        await self._database.run("DELETE FROM brain_pendingwrite WHERE write_id = %s", [write_id])


async def _forget_note(change: Change, write_id: UUID) -> None:
    await change.run("DELETE FROM brain_pendingwrite WHERE write_id = %s", [write_id])
