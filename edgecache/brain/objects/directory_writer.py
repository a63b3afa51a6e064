"""Writing the outcome of a fetch into the directory."""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from edgecache.brain.core.errors import OriginChanged
from edgecache.brain.core.values import Name, ObjectVersion, StagedFile, fields_of
from edgecache.brain.db.coherence import AnnouncingTransaction
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory import commits
from edgecache.brain.directory.versions import Directory
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.http_caching import cache_tags
from edgecache.brain.objects.cacheability import Cacheability

log: Final = structlog.get_logger(__name__)


class DirectoryWriter:
    """Writes for one fetch. began: the generation at its start; newer changes of the key win.

    end_lease: called at the end of the transaction that stores the response.

    When a slow origin recovers, thousands of fetches may end together; they wait for each other.
    """

    def __init__(
        self,
        database: BrainDatabase,
        directory: Directory,
        data_directory: DataDirectory,
        name: Name,
        began: int,
        *,
        end_lease: Callable[[AnnouncingTransaction], Awaitable[None]],
    ) -> None:
        self._database = database
        self._directory = directory
        self._data_directory = data_directory
        self._name = name
        self._began = began
        self._end_lease = end_lease

    async def commit(
        self, staged: StagedFile, version: ObjectVersion, cacheability: Cacheability
    ) -> ObjectVersion | None:
        """Store a body and its version; return None when the key changed since the fetch began.

        Raises NoSuchBucket, StorageFull, DatabaseUnavailable.
        """
        bucket_id, key, _ = self._name
        fields = fields_of(version)
        row = commits.VersionRow(
            bucket_id,
            key,
            cacheability.variant,
            staged.manifest,
            fields,
            version.etag or staged.manifest.md5.hex(),
            version.last_modified,
            cacheability.http,
        )
        name = (bucket_id, key, cacheability.variant)
        if ignored := cache_tags.tags_of(fields.headers, cacheability.http).ignored:
            log.warning("cache_tags_ignored", bucket_id=bucket_id, count=ignored)
        async with self._database.without_timeout():
            with self._directory.watch(name) as watch:
                async with self._directory.coherence.transaction(wait_for_acks=False) as change:
                    await commits.lock_keys(change, bucket_id, [key])
                    if await commits.is_overtaken(change, name, self._began, tags=row.tags or []):
                        return None
                    await commits.hold_blob(change, staged.manifest)
                    await self._data_directory.keep_copy(staged)
                    kept = await commits.write_cached(change, row)
                    await self._end_lease(change)
                self._directory.remember(kept, watch)
        return kept

    async def forget(self, replaced: ObjectVersion) -> None:
        """Delete a version if the origin now has a response that must not be stored.

        Raises DatabaseUnavailable.
        """
        bucket_id, key, _ = self._name
        async with (
            self._database.without_timeout(),
            self._directory.coherence.transaction() as change,
        ):
            await commits.lock_keys(change, bucket_id, [key])
            await commits.forget_version(change, replaced)

    async def refresh(self, stale: ObjectVersion, cacheability: Cacheability) -> ObjectVersion:
        """Mark a version as confirmed by the origin (304).

        Raises OriginChanged when the directory has another version by now, DatabaseUnavailable.
        """
        bucket_id, key, _ = self._name
        name = (bucket_id, key, stale.variant)
        tags = commits.stored_tags(bucket_id, stale.headers, cacheability.http)
        async with self._database.without_timeout():
            with self._directory.watch(name) as watch:
                async with self._directory.coherence.transaction(wait_for_acks=False) as change:
                    await commits.lock_keys(change, bucket_id, [key])
                    if await commits.is_overtaken(change, name, self._began, tags=tags or []):
                        raise OriginChanged
                    kept = await commits.refresh_cached(change, stale, cacheability.http)
                self._directory.remember(kept, watch)
        return kept
