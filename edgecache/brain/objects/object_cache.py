"""Objects of buckets: read through the cache, written through to their origin.

A read asks the directory, then the origin (``Singleflight``). A write goes to the origin first,
then to the directory; when it returns, no brain serves the previous version any more.
"""

import asyncio
import contextlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from dataclasses import replace
from typing import Any, Final, TypeVar
from uuid import UUID

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.blocks import Blocks
from edgecache.brain.core.errors import (
    BrainError,
    OriginChanged,
    OriginMissing,
    OriginRangeRefused,
    TargetMissing,
)
from edgecache.brain.core.shared_calls import SharedCalls
from edgecache.brain.core.values import (
    ALWAYS,
    BlobManifest,
    BucketInfo,
    Conditions,
    DeleteMarker,
    Deletion,
    KeyPage,
    Name,
    ObjectVersion,
    Span,
    StagedFile,
    WrittenFields,
    check_key,
    check_url_key,
    fields_of,
)
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory.commits import KEYS_LOCKED
from edgecache.brain.directory.versions import Directory
from edgecache.brain.disk.buffers import BufferedBody
from edgecache.brain.disk.data_directory import DataDirectory, local_bytes
from edgecache.brain.disk.digests import verified
from edgecache.brain.objects import builtin_origin, version_listing
from edgecache.brain.objects.open_object import OpenObject
from edgecache.brain.objects.origin_writes import OriginWrites
from edgecache.brain.objects.shared_fetch import FetchRequest, SharedFetch
from edgecache.brain.objects.singleflight import Singleflight
from edgecache.brain.objects.stored_writes import StoredWrites, Write
from edgecache.brain.objects.version_listing import ListedVersion, VersionPage
from edgecache.brain.origins.driver import OriginRequest, version_at
from edgecache.brain.origins.open_origins import Origins
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.managed import ManagedStore

T = TypeVar("T")
V = TypeVar("V", bound=ObjectVersion | None)

# Attempts to copy within the built-in origin while the source is overwritten.
COPY_ATTEMPTS: Final = 4


class ObjectCache:
    """This brain's reads and writes of objects."""

    def __init__(
        self,
        database: BrainDatabase,
        directory: Directory,
        data_directory: DataDirectory,
        origins: Origins,
        managed: ManagedStore,
        *,
        brain_id: UUID,
        limit: int = 256,
        on_stored: Callable[[BucketInfo, ObjectVersion], None],
        may_replicate: Callable[[BucketInfo], bool],
    ) -> None:
        """limit: of concurrent fetches. on_stored: called with each version that was stored.

        may_replicate: True if some node can store a bucket's objects.
        """
        self._database = database
        self._directory = directory
        self._coherence = directory.coherence
        self._data_directory = data_directory
        self._managed = managed
        self._running = BackgroundTasks()
        self._keeping = BackgroundTasks()
        self.singleflight = Singleflight(
            database,
            directory,
            data_directory,
            origins,
            brain_id=brain_id,
            limit=limit,
            on_stored=on_stored,
            may_replicate=may_replicate,
        )
        self._on_stored = on_stored
        self._stored_writes = StoredWrites(directory, on_stored=on_stored)
        # What is deleted together: the keys of a bucket that wait.
        self._unwanted: dict[int, set[str]] = {}
        self._deletes: SharedCalls[int, Mapping[str, str]] = SharedCalls()
        self.writes = OriginWrites(database, self._coherence, data_directory, brain_id)

    async def stop(self) -> None:
        """Finish the writes, cancel the fetches."""
        await self._running.finish()
        await self._keeping.stop()
        await self.singleflight.stop()

    # --- reading ----------------------------------------------------------------------------

    async def open(
        self,
        bucket: BucketInfo,
        key: str,
        *,
        variant: str = "",
        client: str = "",
        ranged: tuple[tuple[str, str], ...] = (),
    ) -> OpenObject:
        """Open a key's version, from the directory or from the origin.

        client: the address of an anonymous client.
        ranged: the fields that ask the origin for a part (``OriginRequest``); it may be all that is
        opened then (``OpenObject.covers``).

        Raises KeyRefused, OriginMissing, OriginError, NoSuchBucket, Overloaded,
        DatabaseUnavailable.
        """
        name = (bucket.id, check_key(key), variant)
        # Few names have a running fetch; the check saves the others a coroutine.
        if name in self.singleflight.running:
            request = FetchRequest(OriginRequest(ranged=ranged), client=client)
            fetch = await self.singleflight.shareable(name)
            may_join = fetch is not None and fetch.cacheability.is_shared
            if fetch is not None and may_join and fetch.serves(request):
                self.singleflight.queue_for_permit(bucket, fetch, client)
                try:
                    return await self._wait_for(bucket, fetch, request)
                except OriginRangeRefused:
                    return await self._open_head(bucket, key, client)
        found = await self._directory.find(*name)
        if found is not None:
            return OpenObject(self, bucket, found)
        request = FetchRequest(OriginRequest(ranged=ranged), client=client)
        try:
            return await self.fetch(bucket, key, variant=variant, request=request)
        except OriginRangeRefused:
            return await self._open_head(bucket, key, client)

    async def fetch(
        self,
        bucket: BucketInfo,
        key: str,
        *,
        variant: str = "",
        request: FetchRequest | None = None,
        alone: bool = False,
    ) -> OpenObject:
        """Ask the origin, whatever the directory has; concurrent requests share the fetch.

        alone: do not share the fetch, after a response that was not for all (``is_shared``). A HEAD
        takes its answer from a fetch that runs, and shares none of its own.

        Raises as ``open`` does.
        """
        name = (bucket.id, check_url_key(key), variant)
        if bucket.origin_id is None:
            return await self._adopt(bucket, key)
        request = request or FetchRequest()
        if request.stale is None and self.singleflight.is_known_missing(name):
            missing = OriginMissing()
            missing.is_remembered = True
            raise missing
        fetch = None if alone else await self.singleflight.shareable(name)
        if fetch is None or not fetch.serves(request) or not request.joins(fetch):
            is_alone = alone or request.origin_request.is_head
            fetch = self.singleflight.start(bucket, name, request, alone=is_alone)
        else:
            self.singleflight.queue_for_permit(bucket, fetch, request.client)
        return await self._wait_for(bucket, fetch, request)

    async def reopen(
        self, bucket: BucketInfo, found: ObjectVersion, span: Span
    ) -> AsyncIterator[bytes]:
        """Yield correct bytes of exactly this version when no node can: from disk or the origin.

        Raises OriginChanged when the origin has another version, OriginError, DatabaseUnavailable.
        """
        manifest = await self._directory.manifest(found.sha256)
        if manifest is None:
            raise OriginChanged
        position = span.start
        if bucket.origin_id is not None or found.size > stored_blobs.SMALL_BYTES:
            async for piece in local_bytes(self._data_directory, manifest, span):
                position += len(piece)
                yield piece
        rest = Span(position, span.start + span.length - position)
        if not rest.length:
            return
        if bucket.origin_id is None:
            source = self._managed.read(bucket, found, manifest, rest)
        else:
            source = await self._refetch(bucket, found, manifest, rest)
        async for piece in source:
            yield piece

    async def head(self, bucket: BucketInfo, key: str, *, client: str = "") -> ObjectVersion:
        """Ask the origin for an object's metadata; sha256 and checksums where the cache has them.

        client: the address of an anonymous client.
        Raises KeyRefused, OriginMissing, OriginError, Overloaded, DatabaseUnavailable.
        """
        check_key(key)
        if bucket.origin_id is None:
            found = await builtin_origin.head(self._database, bucket, key)
            if found is None:
                raise OriginMissing
            return found
        async with self.singleflight.origin(bucket, client) as driver:
            response = await driver.head(key)
        cached = await self._directory.find(bucket.id, key)
        if cached is not None and cached.etag == response.etag:
            return cached
        return version_at((bucket.id, key, ""), response)

    async def version(
        self, bucket: BucketInfo, key: str, version_id: str
    ) -> ObjectVersion | DeleteMarker | None:
        """Return a version by its id, from the directory if it is the current one there.

        Raises KeyRefused, DatabaseUnavailable.
        """
        found = await self._directory.find(bucket.id, check_key(key))
        if found is not None and found.version_id == version_id:
            return found
        return await builtin_origin.version(self._database, bucket, key, version_id)

    async def list_versions(
        self,
        bucket: BucketInfo,
        prefix: str,
        start_after: str,
        position: int,
        delimiter: str,
        limit: int,
    ) -> VersionPage:
        """Return a page of versions and delete markers (``version_listing.list_versions``).

        In a bucket that never had versions each object is a null version. Raises as ``list`` does.
        """
        if bucket.versioning:
            return await version_listing.list_versions(
                self._database,
                bucket.id,
                prefix=prefix,
                start_after=start_after,
                position=position,
                delimiter=delimiter,
                limit=limit,
            )
        page = await self.list(bucket, prefix, start_after, delimiter, limit)
        versions = tuple(
            ListedVersion(row.key, 0, "", row.size, row.etag, row.last_modified, is_latest=True)
            for row in page.objects
        )
        last = next((each for each in versions[-1:] if each.key == page.next), page.next)
        return VersionPage(versions, page.prefixes, last)

    async def newest_marker(self, bucket: BucketInfo, key: str) -> DeleteMarker | None:
        """Return the delete marker that hides a key, or None. Raises DatabaseUnavailable."""
        return await builtin_origin.newest_marker(self._database, bucket, key)

    def open_version(self, bucket: BucketInfo, found: ObjectVersion) -> OpenObject:
        """Open a version of the built-in origin, which may not be the current one."""
        opened = OpenObject(self, bucket, found)
        opened.is_hit = bool(found.generation)
        return opened

    async def list(
        self,
        bucket: BucketInfo,
        prefix: str = "",
        start_after: str = "",
        delimiter: str = "",
        limit: int = 1000,
    ) -> KeyPage:
        """Return a page of the origin's keys, in the order of their UTF-8 bytes.

        Raises OriginError, Overloaded, DatabaseUnavailable.
        """
        if bucket.origin_id is not None:
            async with self.singleflight.origin(bucket) as driver:
                return await driver.list(prefix, start_after, delimiter, limit)
        return await builtin_origin.list_keys(
            self._database,
            bucket.id,
            prefix=prefix,
            start_after=start_after,
            delimiter=delimiter,
            limit=limit,
        )

    # --- writing ----------------------------------------------------------------------------

    async def put(
        self,
        bucket: BucketInfo,
        key: str,
        body: StagedFile | BufferedBody,
        fields: WrittenFields,
        *,
        conditions: Conditions = ALWAYS,
    ) -> ObjectVersion:
        """Write an object to its origin and to the directory; the body is consumed.

        body: in memory only for a bucket without an origin: drivers send files.
        Continues when the caller is cancelled. Raises KeyRefused, PreconditionFailed,
        OriginMissing (if_match, and nothing there), OriginError, NoSuchBucket, StorageFull,
        Overloaded, DatabaseUnavailable.
        """
        check_key(key)
        if bucket.origin_id is None:
            return await self._uncancelled(self._store(bucket, key, body, fields, conditions))
        if isinstance(body, BufferedBody):
            raise TypeError("A bucket's origin is sent files.")
        return await self._uncancelled(self._put(bucket, key, body, fields, conditions))

    async def put_pieces(
        self,
        bucket: BucketInfo,
        key: str,
        pieces: AsyncIterator[bytes],
        size: int,
        fields: WrittenFields,
        *,
        conditions: Conditions = ALWAYS,
    ) -> ObjectVersion:
        """Write a long object to the managed store as it arrives.

        Raises what ``put`` and the pieces raise.
        """
        async with self._managed.write_stream(bucket.tenant, pieces, size) as (manifest, placed):
            return await self._stored_writes.put(
                Write(bucket, check_key(key), manifest, placed, fields, conditions)
            )

    async def copy(
        self,
        source: tuple[BucketInfo, str],
        bucket: BucketInfo,
        key: str,
        describe: Callable[[ObjectVersion], WrittenFields] = fields_of,
        *,
        conditions: Conditions = ALWAYS,
        version_id: str | None = None,
    ) -> ObjectVersion:
        """Write an object with the bytes of another one.

        source: bucket and key. version_id: of the source; None for its current version.
        describe: returns the copy's fields for a version; raises to refuse it.

        Raises as ``put`` and ``open`` do; OriginChanged for a source that changes during the copy;
        TargetMissing where if_match finds nothing at the copy's key.
        """
        check_key(key)
        origin, source_key = source[0], check_key(source[1])
        if origin.origin_id is None and bucket.origin_id is None:
            for _ in range(COPY_ATTEMPTS):
                write = builtin_origin.copy(
                    self._coherence,
                    (origin, source_key),
                    bucket,
                    key,
                    describe,
                    conditions,
                    version_id=version_id,
                )
                copied = await self._uncancelled(self._remembered(bucket, key, write))
                if copied is not None:
                    return copied
        opened = await self.open_source(origin, source_key, version_id)
        fields = describe(opened.version)
        staged = await self._data_directory.take(opened.body())
        try:
            return await self.put(bucket, key, staged, fields, conditions=conditions)
        except OriginMissing as exc:
            raise TargetMissing from exc

    async def open_source(self, bucket: BucketInfo, key: str, version_id: str | None) -> OpenObject:
        """Open the source of a copy. version_id: None for the current version.

        Raises as ``open`` does.
        """
        if version_id is None:
            return await self.open(bucket, key)
        found = await self.version(bucket, key, version_id)
        if not isinstance(found, ObjectVersion):
            raise OriginMissing
        return self.open_version(bucket, found)

    async def delete(self, bucket: BucketInfo, keys: Sequence[str]) -> Mapping[str, str]:
        """Delete objects at their origin and from the directory, ignoring absent ones.

        Returns the ids of the delete markers by key, none in a bucket without versions. Continues
        when the caller is cancelled. Raises KeyRefused, OriginError, NoSuchBucket, Overloaded,
        DatabaseUnavailable.
        """
        wanted = list(dict.fromkeys(check_key(key) for key in keys))
        return await self._uncancelled(self._delete(bucket, wanted))

    async def delete_versions(
        self, bucket: BucketInfo, wanted: Collection[Deletion]
    ) -> tuple[set[Deletion], dict[tuple[str, str | None], bool]]:
        """Delete versions of the built-in origin whose conditions hold; the next become current.

        Returns those whose conditions do not hold; and those that existed, by key and id, with True
        for a delete marker. Continues when the caller is cancelled. Raises KeyRefused,
        NoSuchBucket, DatabaseUnavailable.
        """
        for each in wanted:
            check_key(each.key)
        return await self._uncancelled(
            builtin_origin.delete_versions(self._coherence, bucket, wanted)
        )

    async def delete_matching(
        self, bucket: BucketInfo, wanted: Collection[Deletion]
    ) -> tuple[set[Deletion], Mapping[str, str]]:
        """Delete objects of the built-in origin whose conditions hold.

        Returns those whose conditions do not hold, and the ids of the delete markers by key.
        Nothing comes between the comparison and the deletion. Continues when the caller is
        cancelled. Raises KeyRefused, NoSuchBucket, DatabaseUnavailable.
        """
        for each in wanted:
            check_key(each.key)
        return await self._uncancelled(
            builtin_origin.delete_matching(self._coherence, bucket, wanted)
        )

    async def tag_version(
        self, bucket: BucketInfo, key: str, tagging: str, version_id: str
    ) -> ObjectVersion | DeleteMarker | None:
        """Replace the tags of a version of the built-in origin. Raises as ``tag`` does."""
        write = builtin_origin.tag_version(
            self._coherence, bucket, check_key(key), tagging, version_id
        )
        return await self._uncancelled(write)

    async def tag(self, bucket: BucketInfo, key: str, tagging: str) -> ObjectVersion:
        """Replace the tags of an object of the built-in origin.

        Continues when the caller is cancelled. Raises KeyRefused, OriginMissing, NoSuchBucket,
        DatabaseUnavailable.
        """
        write = builtin_origin.tag(self._coherence, bucket, check_key(key), tagging)
        found = await self._uncancelled(self._remembered(bucket, key, write))
        if found is None:
            raise OriginMissing
        return found

    # --- internal ---------------------------------------------------------------------------

    async def _wait_for(
        self, bucket: BucketInfo, fetch: SharedFetch, request: FetchRequest
    ) -> OpenObject:
        """Wait for a fetch's head; start one for a range that another's fetch does not serve."""
        is_ranged, is_own = bool(request.origin_request.ranged), fetch.request is request
        try:
            found = await fetch.wait_for_version()
        except OriginRangeRefused:
            if is_own:
                raise
            found = None
        if found is None or (is_ranged and not is_own and not fetch.serves(request)):
            fetch = self.singleflight.start(bucket, fetch.name, request, alone=True)
            found = await fetch.wait_for_version()
        if fetch.may_be_kept_whole and fetch.request is request:
            self._keeping.add(self._keep_whole(bucket, fetch.name, request))
        return OpenObject(self, bucket, found, fetch)

    async def _open_head(self, bucket: BucketInfo, key: str, client: str) -> OpenObject:
        """Open a version whose size is wanted, for the error of a range behind its end."""
        opened = OpenObject(self, bucket, await self.head(bucket, key, client=client))
        opened.is_hit = False
        return opened

    async def _keep_whole(self, bucket: BucketInfo, name: Name, request: FetchRequest) -> None:
        """Fetch what a client has had a part of."""
        whole = replace(request, origin_request=replace(request.origin_request, ranged=()))
        with contextlib.suppress(BrainError):
            opened = await self.fetch(bucket, name[1], variant=name[2], request=whole)
            await opened.whole()

    async def _adopt(self, bucket: BucketInfo, key: str) -> OpenObject:
        """Open an object of the built-in origin and put it into the directory again."""
        if await builtin_origin.head(self._database, bucket, key) is None:
            raise OriginMissing
        write = builtin_origin.adopt(self._coherence, bucket, key)
        found = await self._remembered(bucket, key, write)
        if found is None:
            raise OriginMissing
        opened = OpenObject(self, bucket, found)
        opened.is_hit = False
        return opened

    async def _refetch(
        self, bucket: BucketInfo, found: ObjectVersion, manifest: BlobManifest, span: Span
    ) -> AsyncIterator[bytes]:
        """Return a version's bytes from the origin, checked against its manifest."""
        if found.variant:
            # A variant depends on the query or on request headers, which the key does not tell.
            raise OriginChanged
        wanted = Blocks(manifest.chunks, manifest.size).touched_by(span)
        ranged: tuple[tuple[str, str], ...] = ()
        if wanted.length < found.size and found.etag:
            text = f"bytes={wanted.start}-{wanted.start + wanted.length - 1}"
            ranged = (("range", text), ("if-range", f'"{found.etag}"'))
        request = FetchRequest(OriginRequest(ranged=ranged), above=found.generation)
        try:
            opened = await self.fetch(bucket, found.key, variant=found.variant, request=request)
        except OriginRangeRefused:
            raise OriginChanged from None
        is_same = opened.version.size in {-1, found.size} and opened.version.etag == found.etag
        if not is_same or not opened.covers(wanted):
            raise OriginChanged
        return verified(opened.body, manifest, span)

    async def _store(
        self,
        bucket: BucketInfo,
        key: str,
        body: StagedFile | BufferedBody,
        fields: WrittenFields,
        conditions: Conditions,
    ) -> ObjectVersion:
        async with self._managed.write(bucket.tenant, body) as placed:
            return await self._stored_writes.put(
                Write(bucket, key, body.manifest, placed, fields, conditions)
            )

    async def _put(
        self,
        bucket: BucketInfo,
        key: str,
        staged: StagedFile,
        fields: WrittenFields,
        conditions: Conditions,
    ) -> ObjectVersion:
        try:
            async with self.singleflight.origin(bucket) as driver:
                write = self.writes.put(driver, bucket, key, staged, fields, conditions)
                return await self._remembered(bucket, key, write)
        finally:
            await self._data_directory.discard(staged)

    async def _delete(self, bucket: BucketInfo, keys: Sequence[str]) -> Mapping[str, str]:
        if bucket.origin_id is not None:
            async with self.singleflight.origin(bucket) as driver:
                await self.writes.delete(driver, bucket, keys)
            return {}
        # With versions each delete leaves a marker of its own.
        if len(keys) == 1 and not bucket.versioning:
            self._unwanted.setdefault(bucket.id, set()).add(keys[0])
            return await self._deletes.share(bucket.id, lambda: self._delete_waiting(bucket))
        return await builtin_origin.delete(self._coherence, bucket, keys)

    async def _delete_waiting(self, bucket: BucketInfo) -> Mapping[str, str]:
        keys = sorted(self._unwanted.pop(bucket.id))
        markers: dict[str, str] = {}
        for start in range(0, len(keys), KEYS_LOCKED):
            part = keys[start : start + KEYS_LOCKED]
            markers |= await builtin_origin.delete(self._coherence, bucket, part)
        return markers

    async def _remembered(self, bucket: BucketInfo, key: str, write: Awaitable[V]) -> V:
        """Make a write, and put what it wrote into the directory."""
        with self._directory.watch((bucket.id, key, "")) as watch:
            found = await write
            if found is not None and found.generation:
                self._directory.remember(found, watch)
                self._on_stored(bucket, found)
            return found

    async def _uncancelled(self, write: Coroutine[Any, Any, T]) -> T:
        """Run a write to its end, even when the caller is cancelled."""
        return await asyncio.shield(self._running.add(write, has_caller=True))
