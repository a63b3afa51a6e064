"""Singleflight: one fetch from an origin for each name at a time, across all brains.

Requests for a missing name share the origin's 404 (``negative_cache``).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import (
    BrainError,
    DatabaseUnavailable,
    OriginMissing,
    OriginTimeout,
    Overloaded,
    VariantChanged,
)
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.core.shared_calls import SharedCalls
from edgecache.brain.core.values import BucketInfo, Name, ObjectVersion
from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory import commits
from edgecache.brain.directory.index import KeyVariants
from edgecache.brain.directory.versions import Directory
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.objects.directory_writer import DirectoryWriter
from edgecache.brain.objects.leases import Leases
from edgecache.brain.objects.negative_cache import NegativeAnswer, NegativeCache
from edgecache.brain.objects.shared_fetch import FetchRequest, SharedFetch
from edgecache.brain.origins.driver import Driver
from edgecache.brain.origins.open_origins import Origins
from edgecache.http.addresses import network_of
from edgecache.runtime.fair_shares import ShareKey, Shares

# How long a fetch waits for its turn.
QUEUE_S: Final = 5.0
# A brain waits at most this long for another brain's fetch, then fetches itself.
TURN_LIMIT_S: Final = 30.0
# ... and this long for a replica of what another brain fetched.
REPLICA_LIMIT_S: Final = 3.0
POLL_S: Final = 0.05
# Purge records are kept for longer (``storage.garbage_collection``).
FETCH_LIMIT_S: Final = 6 * 3600


class Singleflight:
    """The fetches of this brain. limit: of concurrent ones. on_stored: called with what one stored.

    may_replicate: True if some node can store a bucket's objects.

    A fetch that waits for a slow origin costs its socket and some memory: no thread, no file, no
    database connection. So the limit is high.
    """

    def __init__(
        self,
        database: BrainDatabase,
        directory: Directory,
        data_directory: DataDirectory,
        origins: Origins,
        *,
        brain_id: UUID,
        limit: int,
        on_stored: Callable[[BucketInfo, ObjectVersion], None],
        may_replicate: Callable[[BucketInfo], bool],
    ) -> None:
        self._on_stored = on_stored
        self._may_replicate = may_replicate
        self.running: dict[Name, SharedFetch] = {}
        self._variants = KeyVariants()
        self._database = database
        self._directory = directory
        self._coherence: Coherence = directory.coherence
        self.negative = NegativeCache(self._coherence)
        self._data_directory = data_directory
        self._origins = origins
        # HEAD, listings and writes at origins have their permits here as well (``ObjectCache``).
        self.shares = Shares(limit, refusal=Overloaded, wait_s=QUEUE_S)
        self._tasks = BackgroundTasks()
        self._checks: SharedCalls[tuple[Name, int], bool] = SharedCalls()
        self._generations: SharedCalls[ShareKey, int] = SharedCalls()
        self._leases = Leases(database, self._coherence, brain_id)
        self._coherence.subscribe("key", self._on_key)
        self._coherence.subscribe("prefix", self._on_prefix)
        self._coherence.subscribe("fetches", lambda bucket_id: self._on_prefix(bucket_id, "", 0))
        self._coherence.on_loss(self._on_loss)

    def start(
        self, bucket: BucketInfo, name: Name, request: FetchRequest, *, alone: bool = False
    ) -> SharedFetch:
        """Start a fetch; others may share it until it ends or its key changes.

        alone: do not share it. It fails with Overloaded when its turn does not come in time.
        """
        fetch = SharedFetch(
            name,
            request,
            self._data_directory,
            on_header=self._header_received,
            on_failure=self._failed,
        )
        if not alone:
            self._attach(name, fetch)
        fetch.task = self._tasks.add(self._run(bucket, fetch, alone=alone))
        return fetch

    @asynccontextmanager
    async def origin(self, bucket: BucketInfo, client: str = "") -> AsyncIterator[Driver]:
        """Hold a permit at a bucket's origin, as a fetch does.

        client: the address of an anonymous client. Raises Overloaded, OriginFailed,
        DatabaseUnavailable.
        """
        async with self.shares.permit(_share_key(bucket, client)):
            yield await self._origins.driver(bucket)

    def queue_for_permit(self, bucket: BucketInfo, fetch: SharedFetch, client: str) -> None:
        """Add another client's quota to those in which a queued fetch waits.

        So a client that has used its quota does not delay others that join its fetch.
        """
        if fetch.is_queued:
            fetch.permit.wait(self.shares, _share_key(bucket, client))

    async def shareable(self, name: Name) -> SharedFetch | None:
        """Return the running fetch of a name, unless its key changed since it began.

        Raises DatabaseUnavailable.
        """
        fetch = self.running.get(name)
        if fetch is None or fetch.failure is not None or fetch.is_passing:
            return None
        began = fetch.began
        if self._coherence.is_current or began is None:
            return fetch
        # Without announcements the database has to be asked.
        is_late = await self._checks.share(
            (name, began), lambda: commits.is_overtaken(self._database, name, began)
        )
        return None if is_late or fetch.failure is not None else fetch

    def is_known_missing(self, name: Name) -> bool:
        """True if the origin has just answered 404 for it."""
        answer = self.negative.find(name)
        return answer is not None and answer.version is None

    @property
    def is_busy(self) -> bool:
        """True if a fetch is running."""
        return bool(self._tasks)

    async def stop(self) -> None:
        await self._tasks.stop()
        await self._leases.stop()

    async def _run(self, bucket: BucketInfo, fetch: SharedFetch, *, alone: bool) -> None:
        try:
            async with asyncio.timeout(FETCH_LIMIT_S), contextlib.AsyncExitStack() as stack:
                self.queue_for_permit(bucket, fetch, fetch.request.client)
                await stack.enter_async_context(fetch.permit.hold())
                fetch.is_queued = False
                stack.push_async_callback(self._release_lease, fetch)
                # What is not shared here is not shared with other brains either.
                found = None if alone else await self._acquire_lease(bucket, fetch)
                if found is not None:
                    fetch.is_of_other_brain = fetch.will_be_stored = True
                    fetch.complete(found)
                    return
                driver = await self._origins.driver(bucket)
                await fetch.run(driver, await self._writer(fetch))
        except TimeoutError:
            fetch.fail(OriginTimeout())
        except BrainError as exc:
            fetch.fail(exc)
        finally:
            self._end(bucket, fetch)

    async def _acquire_lease(self, bucket: BucketInfo, fetch: SharedFetch) -> ObjectVersion | None:
        """Take the lease, or return what its holder has fetched.

        None without the lease: after TURN_LIMIT_S, or while the database does not answer.
        Raises VariantChanged when the name is no longer the request's.
        """
        if not self._coherence.peers:
            return None
        request = fetch.request
        known = request.above
        with contextlib.suppress(TimeoutError, DatabaseUnavailable):
            async with asyncio.timeout(TURN_LIMIT_S):
                while True:
                    fetch.began = await self._leases.acquire(fetch.name)
                    fetch.has_lease = fetch.began is not None
                    if not fetch.has_lease:
                        await self._leases.wait(fetch.name)
                    found = await self._directory.find(*fetch.name)
                    if found is None and await _is_renamed(fetch):
                        raise VariantChanged
                    if found is not None and found.generation > known and request.takes(found):
                        # A variant can be fetched again only with the headers of its request.
                        if await self._wait_for_bytes(bucket, found) or not found.variant:
                            return found
                        known = found.generation
                    if fetch.has_lease:
                        return None
        return None

    async def _release_lease(self, fetch: SharedFetch) -> None:
        if fetch.has_lease:
            fetch.has_lease = False
            await self._leases.release(fetch.name)

    async def _wait_for_bytes(self, bucket: BucketInfo, found: ObjectVersion) -> bool:
        """Wait until a node holds what another brain fetched; False if none does in time.

        Its local files may be out of reach.
        """
        for _ in range(round(REPLICA_LIMIT_S / POLL_S)):
            is_local = await self._data_directory.local(found.sha256) is not None
            if is_local or await self._directory.locations(found.sha256):
                return True
            if not self._may_replicate(bucket):
                break
            await asyncio.sleep(POLL_S)
        return False

    async def _writer(self, fetch: SharedFetch) -> DirectoryWriter:
        if fetch.began is None:
            # By share key: an organization must not wait for the connection of another one.
            fetch.began = await self._generations.share(SHARE_KEY.get()[:2], self._next_generation)

        async def end_lease(change: AnnouncingTransaction) -> None:
            if fetch.has_lease:
                await self._leases.release_in(change, fetch.name)

        return DirectoryWriter(
            self._database,
            self._directory,
            self._data_directory,
            fetch.name,
            fetch.began,
            end_lease=end_lease,
        )

    async def _next_generation(self) -> int:
        """Return a number above all earlier ones; fetches that begin together may share it."""
        row = await self._database.one("SELECT nextval('brain_generation') AS generation")
        if row is None:
            raise DatabaseUnavailable
        return int(row.generation)

    def _end(self, bucket: BucketInfo, fetch: SharedFetch) -> None:
        # After any error, no request may be left waiting.
        fetch.close()
        for name in {fetch.name, (*fetch.name[:2], fetch.cacheability.variant)}:
            if self.running.get(name) is fetch:
                self._detach(name)
        if fetch.kept is not None and fetch.is_fetched:
            self._on_stored(bucket, fetch.kept)

    def _header_received(self, fetch: SharedFetch) -> None:
        """Share the fetch under the variant that the response turned out to be, as well.

        What is passed on is not shared: other brains do not wait for it either.
        """
        if fetch.is_passing:
            self._tasks.add(self._release_lease(fetch))
            return
        if fetch.cacheability.is_stored and self.running.get(fetch.name) is fetch:
            name = (*fetch.name[:2], fetch.cacheability.variant)
            if name not in self.running:
                self._attach(name, fetch)

    def _failed(self, fetch: SharedFetch, error: BrainError) -> None:
        is_shareable = self.running.get(fetch.name) is fetch
        if is_shareable and isinstance(error, OriginMissing) and error.is_cacheable:
            changes = self.negative.changes(fetch.name[0])
            self.negative.add(fetch.name, NegativeAnswer(), changes=changes)

    def _attach(self, name: Name, fetch: SharedFetch) -> None:
        self.running[name] = fetch
        self._variants.add(name)

    def _detach(self, name: Name) -> None:
        self.running.pop(name, None)
        self._variants.discard(name)

    # --- announcements: a request that comes afterwards must not share an older fetch --------

    def _on_key(
        self, bucket_id: int, key: str, _generation: int, filled: str | None = None
    ) -> None:
        """Stop sharing the key's fetches. filled: the variant that a fetch stored, no change."""
        if filled is not None:
            return
        for name in self._variants.names(bucket_id, key):
            self._detach(name)

    def _on_prefix(self, bucket_id: int, prefix: str, _generation: int) -> None:
        for name in list(self.running):
            if name[0] == bucket_id and name[1].startswith(prefix):
                self._detach(name)

    def _on_loss(self) -> None:
        self.running.clear()
        self._variants.clear()


async def _is_renamed(fetch: SharedFetch) -> bool:
    """True if its request has another variant, as responses are known that others stored."""
    find = fetch.request.find_variant
    return find is not None and await find() != fetch.name[2]


def _share_key(bucket: BucketInfo, client: str) -> ShareKey:
    share_key: ShareKey = (bucket.tenant.organization_id, bucket.id)
    return (*share_key, network_of(client)) if client else share_key
