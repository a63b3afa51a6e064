"""Finds the response for a URL: stored and fresh, stored and revalidated, or fetched."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog

from edgecache.brain.cdn import cache_status, rules
from edgecache.brain.cdn.rules import Reuse, StoredResponse
from edgecache.brain.directory.directory import Directory
from edgecache.brain.directory.index import Name
from edgecache.brain.errors import BrainError, OriginChanged, OriginError, OriginMissing
from edgecache.brain.fetch.cacheability import Cacheability
from edgecache.brain.fetch.object_cache import ObjectCache, OpenObject
from edgecache.brain.fetch.shared_fetch import FetchRequest, SharedFetch
from edgecache.brain.origins.driver import OriginRequest, OriginResponse
from edgecache.brain.values import BucketInfo, ObjectVersion, check_key

log = structlog.get_logger(__name__)

CONFIRMED = 304
# How often a request shares a fetch whose response turns out to be another variant.
SHARED_LIMIT: Final = 3
REMEMBERED: Final = 100_000


@dataclass(frozen=True, slots=True)
class CdnRequest:
    """A client's request. fields: its headers, lower-case names. client: its address."""

    bucket: BucketInfo
    key: str
    query: str
    fields: Mapping[str, str]
    only_if_cached: bool = False
    client: str = ""


@dataclass(frozen=True, slots=True)
class LookupResult:
    """A response, and where it comes from. stored: None if it must not be stored."""

    opened: OpenObject
    stored: StoredResponse | None
    cache_status: str


class NotCached(Exception):
    """The client accepts a stored response only, and there is none (RFC 9111 §5.2.1.7)."""


class VaryNames:
    """The headers that each URL's responses vary on: by bucket, key and query.

    Learned from the origin's Vary; the oldest are forgotten, and learned again.
    """

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._names: OrderedDict[tuple[int, str, str], tuple[str, ...]] = OrderedDict()
        self._limit = limit

    def of(self, bucket_id: int, key: str, query: str) -> tuple[str, ...]:
        """Return the names; () for a URL whose responses do not vary, as far as is known."""
        return self._names.get((bucket_id, key, query), ())

    def learn(self, bucket_id: int, key: str, query: str, names: tuple[str, ...]) -> None:
        """Store the names of a response's Vary."""
        name = (bucket_id, key, query)
        if not names:
            self._names.pop(name, None)
            return
        self._names[name] = names
        self._names.move_to_end(name)
        if len(self._names) > self._limit:
            self._names.popitem(last=False)


class Lookup:
    """Finds responses, and revalidates stale ones in the background."""

    def __init__(self, objects: ObjectCache, directory: Directory) -> None:
        self._objects = objects
        self._directory = directory
        self._vary = VaryNames()
        # One at a time for each variant.
        self._refreshes: dict[Name, asyncio.Task[Any]] = {}

    async def find(self, request: CdnRequest) -> LookupResult:
        """Return a response.

        Raises NotCached, OriginMissing, OriginError's kinds, BrainError.
        """
        version = await self._find(request)
        if version is None:
            return await self.fetch(request)
        stored = StoredResponse.from_json(version.http) if version.http else None
        now = time.time()
        if stored is None:
            # From an origin of objects, without HTTP's freshness: valid until it is purged.
            opened = OpenObject(self._objects, request.bucket, version)
            return LookupResult(opened, None, f"{cache_status.NAME}; hit")
        ttl_s = stored.lifetime_s - rules.age_s(stored, now=now)
        use = rules.use(stored, now=now)
        if use is Reuse.REVALIDATE and not request.only_if_cached:
            return await self._confirm(request, version, stored)
        if use is Reuse.REVALIDATE:
            raise NotCached
        if use is Reuse.STALE_WHILE_REVALIDATE:
            self._refresh(request, version, stored)
        return LookupResult(
            OpenObject(self._objects, request.bucket, version),
            stored,
            cache_status.hit(ttl_s=ttl_s),
        )

    async def stop(self) -> None:
        """Cancel the refreshes."""
        tasks = tuple(self._refreshes.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _find(self, request: CdnRequest) -> ObjectVersion | None:
        bucket_id, key = request.bucket.id, check_key(request.key)
        names = self._vary.of(bucket_id, key, request.query)
        variant = rules.variant(request.query, names, request.fields)
        version = await self._directory.find(bucket_id, key, variant)
        while version is None and variant != self._variant(request):
            # Vary was learned meanwhile, from a response that may be this variant.
            variant = self._variant(request)
            version = await self._directory.find(bucket_id, key, variant)
        names = self._vary.of(bucket_id, key, request.query)
        if version is None or not version.http or set(version.http["vary"]) <= set(names):
            return version
        # Stored by a read through S3, which knows no variants: learn now that it varies.
        self._vary.learn(bucket_id, key, request.query, tuple(version.http["vary"]))
        variant = rules.variant(request.query, version.http["vary"], request.fields)
        return await self._directory.find(bucket_id, key, variant)

    async def fetch(self, request: CdnRequest) -> LookupResult:
        """Fetch from the origin, whatever is stored.

        Raises as ``find`` does.
        """
        if request.only_if_cached:
            raise NotCached
        fetch_request = self._fetch_request(request, None, None)
        opened = await self._fetch(request, fetch_request)
        return self._result(request, opened, fetch_request, why="uri-miss")

    async def _confirm(
        self, request: CdnRequest, version: ObjectVersion, stored: StoredResponse
    ) -> LookupResult:
        fetch_request = self._fetch_request(request, version, stored)
        try:
            opened = await self._fetch(request, fetch_request)
        except OriginMissing:
            raise
        except OriginChanged:
            # The key was purged or changed before the revalidation was stored.
            return await self.fetch(request)
        except OriginError as exc:
            if not rules.serves_on_error(stored, now=time.time()):
                raise
            log.info("stale_response_served", bucket_id=request.bucket.id, error=type(exc).__name__)
            stale = OpenObject(self._objects, request.bucket, version)
            return LookupResult(stale, stored, cache_status.failed("stale-if-error"))
        return self._result(request, opened, fetch_request, why="stale")

    async def _fetch(self, request: CdnRequest, fetch_request: FetchRequest) -> OpenObject:
        """Share a fetch of the same variant; fetch alone where responses cannot be shared.

        Raises as ``ObjectCache.fetch``.
        """
        bucket, key = request.bucket, request.key
        for _ in range(SHARED_LIMIT):
            opened = await self._objects.fetch(
                bucket, key, variant=self._variant(request), request=fetch_request
            )
            fetch = opened.fetch
            if fetch is None or fetch.request is fetch_request or fetch.cacheability.is_shared:
                return opened
            if not fetch.cacheability.is_stored:
                break
            # One variant is good for all requests that want it.
            self._vary.learn(bucket.id, key, request.query, tuple(fetch.cacheability.http["vary"]))
            if fetch.cacheability.variant == self._variant(request):
                return opened
            stored = await self._kept_since(request, fetch)
            if stored is not None:
                return stored
        variant = self._variant(request)
        return await self._objects.fetch(
            bucket, key, variant=variant, request=fetch_request, alone=True
        )

    async def _kept_since(self, request: CdnRequest, fetch: SharedFetch) -> OpenObject | None:
        """Return what another fetch has stored of the wanted variant since a fetch began."""
        version = await self._directory.find(request.bucket.id, request.key, self._variant(request))
        if version is None or fetch.began is None or version.generation < fetch.began:
            return None
        return OpenObject(self._objects, request.bucket, version)

    def _variant(self, request: CdnRequest) -> str:
        names = self._vary.of(request.bucket.id, request.key, request.query)
        return rules.variant(request.query, names, request.fields)

    def _fetch_request(
        self, request: CdnRequest, stale: ObjectVersion | None, stored: StoredResponse | None
    ) -> FetchRequest:
        asked_at = time.time()
        conditions = rules.conditions(stored) if stored is not None else []
        known = self._vary.of(request.bucket.id, request.key, request.query)

        def judge(answer: OriginResponse) -> Cacheability:
            answered_at = time.time()
            if answer.status == CONFIRMED and stored is not None:
                judged = rules.renewed(
                    stored, answer.raw, asked_at=asked_at, answered_at=answered_at
                )
                return Cacheability(
                    variant=stale.variant if stale else "",
                    http=(judged or stored).as_json(),
                )
            judged = rules.judge(answer.raw, asked_at=asked_at, answered_at=answered_at)
            if judged is None:
                return Cacheability(is_stored=False, is_shared=False)
            self._vary.learn(request.bucket.id, request.key, request.query, judged.vary)
            return Cacheability(
                # A response that varies on more than was known cannot be shared.
                is_shared=set(judged.vary) <= set(known),
                variant=rules.variant(request.query, judged.vary, request.fields),
                http=judged.as_json(),
            )

        origin_request = OriginRequest(
            headers=[*rules.passed_on(request.fields), *conditions],
            query=request.query,
            accepts=frozenset({CONFIRMED}) if conditions else frozenset(),
        )
        return FetchRequest(
            origin_request,
            stale=stale if conditions else None,
            assess=judge,
            joins=_comes_in_time,
            client=request.client,
        )

    def _result(
        self, request: CdnRequest, opened: OpenObject, fetch_request: FetchRequest, *, why: str
    ) -> LookupResult:
        version, fetch = opened.version, opened.fetch
        stored = StoredResponse.from_json(version.http) if version.http else None
        is_confirmed = bool(version.sha256) and fetch_request.stale is not None
        status = cache_status.forwarded(
            why,
            stored=fetch is None or fetch.cacheability.is_stored,
            status=CONFIRMED if is_confirmed else None,
            collapsed=fetch is not None and fetch.request is not fetch_request,
        )
        return LookupResult(opened, stored, status)

    def _refresh(self, request: CdnRequest, version: ObjectVersion, stored: StoredResponse) -> None:
        name = (version.bucket_id, version.key, version.variant)
        if name in self._refreshes:
            return
        task = asyncio.create_task(self._confirm(request, version, stored))
        self._refreshes[name] = task
        task.add_done_callback(partial(self._ended, name))

    def _ended(self, name: Name, task: asyncio.Task[Any]) -> None:
        del self._refreshes[name]
        if not task.cancelled() and isinstance(task.exception(), BrainError):
            log.info("refresh_failed", error=type(task.exception()).__name__)


def _comes_in_time(fetch: SharedFetch) -> bool:
    """True if a fetch that is running may answer a request that comes now.

    A fetch runs until its bytes are stored; by then the origin may have another version, and a
    response that must be revalidated (max-age=0) cannot be used.
    """
    answer = fetch.cacheability.http or (fetch.kept.http if fetch.kept is not None else {})
    return (
        not answer
        or rules.use(StoredResponse.from_json(answer), now=time.time()) is not Reuse.REVALIDATE
    )
