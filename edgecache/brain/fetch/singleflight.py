"""Fetches from origins under way in this brain, and how their outcome enters the directory."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

from edgecache.brain.database import Database
from edgecache.brain.directory import commits
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.directory.directory import Directory
from edgecache.brain.directory.index import Name
from edgecache.brain.errors import (
    BrainError,
    DatabaseAway,
    OriginChanged,
    OriginMissing,
    OriginTimeout,
    Overloaded,
)
from edgecache.brain.fetch.leases import Leases
from edgecache.brain.fetch.negative_cache import NegativeCache
from edgecache.brain.fetch.shared_fetch import Cacheability, FetchRequest, SharedFetch
from edgecache.brain.origins.registry import Origins
from edgecache.brain.storage.staging import Staging
from edgecache.brain.values import BucketInfo, ObjectVersion, StagedFile, fields_of

# Brains wait so long for one another's fetch; then they fetch for themselves.
TURN_LIMIT_S: Final = 30.0
# So long for a copy of what came in elsewhere; then it is fetched once more.
REPLICA_LIMIT_S: Final = 3.0
LOOK_S: Final = 0.05
# Records of purges are kept for longer than this (``collector``).
FETCH_LIMIT_S: Final = 6 * 3600


class DirectoryWriter:
    """How one fetch's outcome enters the directory. began: the generation that it began after."""

    def __init__(self, directory: Directory, staging: Staging, name: Name, began: int) -> None:
        self._directory = directory
        self._staging = staging
        self._name = name
        self._began = began

    async def commit(
        self, staged: StagedFile, found: ObjectVersion, cacheability: Cacheability
    ) -> ObjectVersion | None:
        """Keep a body; None when something hit the key meanwhile, or its bucket is gone.

        Raises StorageFull, DatabaseAway.
        """
        bucket_id, key, _ = self._name
        fields = fields_of(found)
        version = commits.VersionRow(
            bucket_id,
            key,
            cacheability.variant,
            staged.manifest,
            fields,
            found.etag or staged.manifest.md5.hex(),
            found.last_modified,
            cacheability.http,
        )
        target = self._staging.blob_path(staged.manifest.sha256)
        name = (bucket_id, key, cacheability.variant)
        with self._directory.watch(name) as watch:
            async with self._directory.coherence.change(waits=False) as change:
                await commits.lock_keys(change, bucket_id, [key])
                if await commits.is_overtaken(change, name, self._began):
                    return None
                await commits.hold_blob(change, staged.manifest)
                await self._staging.run(self._staging.place, staged, target)
                kept = await commits.write_cached(change, version)
            self._directory.remember(kept, watch)
        return kept

    async def refresh(self, stale: ObjectVersion, cacheability: Cacheability) -> ObjectVersion:
        """Keep a version that the origin has just confirmed.

        Raises OriginChanged when it is not there any more, DatabaseAway.
        """
        bucket_id, key, _ = self._name
        name = (bucket_id, key, stale.variant)
        with self._directory.watch(name) as watch:
            async with self._directory.coherence.change(waits=False) as change:
                await commits.lock_keys(change, bucket_id, [key])
                if await commits.is_overtaken(change, name, self._began):
                    raise OriginChanged
                kept = await commits.refresh_cached(change, stale, cacheability.http)
            self._directory.remember(kept, watch)
        return kept


class Singleflight:
    """One fetch a name at a time, in all brains together. on_kept: called with what came in."""

    def __init__(
        self,
        database: Database,
        directory: Directory,
        staging: Staging,
        origins: Origins,
        *,
        brain_id: UUID,
        limit: int,
        on_stored: Callable[[ObjectVersion], None],
    ) -> None:
        self._on_kept = on_stored
        self.running: dict[Name, SharedFetch] = {}
        self.negative_cache = NegativeCache()
        self._database = database
        self._directory = directory
        self._coherence: Coherence = directory.coherence
        self._staging = staging
        self._origins = origins
        self._limit = limit
        self._tasks: set[asyncio.Task[None]] = set()
        self._leases = Leases(database, self._coherence, brain_id)
        self._coherence.subscribe("key", self._on_key)
        self._coherence.subscribe("prefix", self._on_prefix)
        self._coherence.on_loss(self._on_loss)

    def start(
        self, bucket: BucketInfo, name: Name, request: FetchRequest, *, alone: bool = False
    ) -> SharedFetch:
        """Begin a fetch that others may join until it ends, or until something hits its key.

        Raises Overloaded.
        """
        if len(self._tasks) >= self._limit:
            raise Overloaded
        fetch = SharedFetch(name, request, self._staging)
        fetch.on_header = partial(self._judged, fetch)
        fetch.on_failure = partial(self._failed, fetch)
        if not alone:
            self.running[name] = fetch
        fetch.task = asyncio.create_task(self._run(bucket, fetch))
        self._tasks.add(fetch.task)
        fetch.task.add_done_callback(self._tasks.discard)
        return fetch

    async def shareable(self, name: Name) -> SharedFetch | None:
        """Give the fetch of a name that may still be joined: nothing hit the key since it began.

        Raises DatabaseAway.
        """
        fetch = self.running.get(name)
        if fetch is None or fetch.failure is not None:
            return None
        if self._coherence.is_current or fetch.began is None:
            return fetch
        # Nobody tells this brain what happens, so it has to ask.
        is_late = await commits.is_overtaken(self._database, name, fetch.began)
        return None if is_late or fetch.failure is not None else fetch

    def is_known_missing(self, name: Name) -> bool:
        """Tell whether the origin has just said that it has no such thing."""
        return self._coherence.is_current and self.negative_cache.contains(name)

    @property
    def is_busy(self) -> bool:
        """Tell whether a fetch is under way."""
        return bool(self._tasks)

    async def stop(self) -> None:
        """Give up what is under way."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, bucket: BucketInfo, fetch: SharedFetch) -> None:
        try:
            async with asyncio.timeout(FETCH_LIMIT_S), contextlib.AsyncExitStack() as stack:
                found = await self._acquire_lease(fetch, stack)
                if found is not None:
                    fetch.complete(found)
                    return
                driver = await self._origins.driver(bucket)
                await fetch.fetch(driver, await self._keeper(fetch))
        except TimeoutError:
            fetch.fail(OriginTimeout())
        except BrainError as exc:
            fetch.fail(exc)
        finally:
            self._end(fetch)

    async def _acquire_lease(
        self, fetch: SharedFetch, stack: contextlib.AsyncExitStack
    ) -> ObjectVersion | None:
        """Have the turn until the stack unwinds, or give what the brain that had it brought."""
        if not self._coherence.peers:
            return None
        request = fetch.request
        known = max(request.above, request.stale.generation if request.stale is not None else 0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TURN_LIMIT_S):
                while True:
                    lease = await self._leases.take(fetch.name)
                    if lease is not None:
                        await stack.enter_async_context(lease)
                    else:
                        await self._leases.wait(fetch.name)
                    found = await self._directory.find(*fetch.name)
                    if found is not None and found.generation > known:
                        await self._wait_for_bytes(found)
                        return found
                    if lease is not None:
                        return None
        return None

    async def _wait_for_bytes(self, found: ObjectVersion) -> None:
        """Wait until a node holds what another brain has just brought; its own files are far."""
        for _ in range(round(REPLICA_LIMIT_S / LOOK_S)):
            is_here = await self._staging.local(found.sha256) is not None
            if is_here or await self._directory.locations(found.sha256):
                return
            await asyncio.sleep(LOOK_S)

    async def _keeper(self, fetch: SharedFetch) -> DirectoryWriter:
        row = await self._database.one("SELECT nextval('brain_generation') AS generation")
        if row is None:
            raise DatabaseAway
        fetch.began = row.generation
        return DirectoryWriter(self._directory, self._staging, fetch.name, row.generation)

    def _end(self, fetch: SharedFetch) -> None:
        # Whatever went wrong, nobody waits for ever.
        fetch.close()
        for name in {fetch.name, (*fetch.name[:2], fetch.cacheability.variant)}:
            if self.running.get(name) is fetch:
                self._detach(name)
        if fetch.kept is not None and fetch.is_fetched:
            self._on_kept(fetch.kept)

    def _judged(self, fetch: SharedFetch) -> None:
        """Let those join who want just what it turned out to bring."""
        if fetch.cacheability.is_stored and self.running.get(fetch.name) is fetch:
            self.running.setdefault((*fetch.name[:2], fetch.cacheability.variant), fetch)

    def _failed(self, fetch: SharedFetch, error: BrainError) -> None:
        is_joinable = self.running.get(fetch.name) is fetch
        if is_joinable and isinstance(error, OriginMissing) and error.is_kept:
            self.negative_cache.add(fetch.name)

    def _detach(self, name: Name) -> None:
        self.running.pop(name, None)

    # --- what is announced: whoever asks afterwards must not join what began before ----------

    def _on_key(self, bucket_id: int, key: str, generation: int, filled: str | None = None) -> None:
        """Hear of a change. filled: the variant that a fetch brought: that takes nothing away."""
        self.negative_cache.forget(bucket_id, key, generation)
        if filled is not None:
            return
        for name in [name for name in self.running if name[:2] == (bucket_id, key)]:
            self._detach(name)

    def _on_prefix(self, bucket_id: int, prefix: str, _generation: int) -> None:
        self.negative_cache.clear()
        for name in list(self.running):
            if name[0] == bucket_id and name[1].startswith(prefix):
                self._detach(name)

    def _on_loss(self) -> None:
        self.negative_cache.clear()
        self.running.clear()
