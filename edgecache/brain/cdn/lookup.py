"""Finds the response for a URL: stored and fresh, stored and revalidated, or fetched."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import structlog

from common.machine.reasons import reason
from edgecache.brain.cdn import cache_status
from edgecache.brain.cdn.assessment import CONFIRMED, Assessment
from edgecache.brain.cdn.refusals import Refused
from edgecache.brain.cdn.urls import CdnRequest
from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import BrainError, OriginChanged, OriginError, VariantChanged
from edgecache.brain.core.values import Name, ObjectVersion, check_key, check_url_key
from edgecache.brain.directory.versions import Directory
from edgecache.brain.http_caching import cache_tags, caching_rules
from edgecache.brain.http_caching.cache_keys import AUTHORIZATION, Target, query_name
from edgecache.brain.http_caching.caching_rules import Reuse, StoredResponse
from edgecache.brain.objects.negative_cache import NegativeAnswer
from edgecache.brain.objects.object_cache import ObjectCache
from edgecache.brain.objects.open_object import OpenObject
from edgecache.brain.objects.shared_fetch import FetchRequest, SharedFetch
from edgecache.brain.origins.driver import OriginRequest
from edgecache.runtime.bounded_cache import BoundedCache

log = structlog.get_logger(__name__)

# How often a request joins a fetch whose response is for another variant.
SHARED_LIMIT: Final = 3
NEGATIVE_WAIT_S: Final = 0.05
NEGATIVE_STATUSES: Final = frozenset({404, 410})
NEGATIVE_BODY_BYTES: Final = 16_384
STORING_S: Final = 1.0
MAX_VARYING_URLS: Final = 100_000


@dataclass(frozen=True, slots=True)
class LookupResult:
    """A response, and its source.

    stored: its HTTP head, even if it is not kept; None for an object.
    small: its body, if that is in memory.
    """

    version: ObjectVersion
    opened: OpenObject | None
    stored: StoredResponse | None
    cache_status: str
    small: bytes = b""

    @property
    def is_hit(self) -> bool:
        """Return how the answer is counted."""
        return cache_status.is_hit(self.cache_status)

    @property
    def status(self) -> int:
        """Return the status of the response as the origin sent it."""
        return 200 if self.stored is None else self.stored.status


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to ask the origin for a request. sent: the client's headers that go there.

    known: the names that Vary of the URL is known to have. changes: of the negative responses.
    """

    fetch_request: FetchRequest
    variant: str
    sent: Mapping[str, str]
    known: tuple[str, ...]
    changes: int


class VaryNames:
    """What this process knows of these headers, by bucket and URL.

    Learned from the origin's responses, and from the directory: another process may have stored
    one, or this one before it was restarted. Those not used lately are learned again.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._names: BoundedCache[tuple[int, Target], tuple[str, ...]] = BoundedCache(
            MAX_VARYING_URLS, owner_of=lambda name, _: name[0]
        )

    def of(self, bucket_id: int, target: Target) -> tuple[str, ...]:
        """Return the names; () for a URL whose responses are not known to vary."""
        return self._names.get((bucket_id, target)) or ()

    def learn(self, bucket_id: int, target: Target, names: tuple[str, ...]) -> None:
        """Store the names that a response depends on."""
        if not names:
            self._names.pop((bucket_id, target))
            return
        self._names.put((bucket_id, target), names)

    async def recall(self, bucket_id: int, target: Target) -> bool:
        """Learn the names from the directory if none are known; True if there are some.

        Raises DatabaseUnavailable.
        """
        if self.of(bucket_id, target):
            return False
        names = await self._directory.vary_names(bucket_id, target.key, query_name(target.query))
        self.learn(bucket_id, target, names)
        return bool(names)


class Lookup:
    """Finds responses, and revalidates stale ones in the background."""

    def __init__(self, objects: ObjectCache, directory: Directory) -> None:
        self._objects = objects
        self._fetches = objects.singleflight.running
        self._directory = directory
        self._vary = VaryNames(directory)
        self._negative = objects.singleflight.negative
        # One at a time for each variant.
        self._refreshes: dict[Name, asyncio.Task[Any]] = {}
        self._keeping = BackgroundTasks()

    async def find(self, request: CdnRequest) -> LookupResult:
        """Return a response.

        Raises Refused (504), OriginMissing, OriginError's kinds, BrainError.
        """
        version, running = await self._find(request)
        if version is None:
            negative = self._find_negative(request)
            if negative is not None:
                return negative
            is_news = request.is_http and await self._vary.recall(request.bucket.id, request.target)
            # A fetch that ended since then has stored its response.
            if is_news or (running is not None and self._fetches.get(running.name) is not running):
                version, _ = await self._find(request)
        if version is None:
            return await self.fetch(request)
        stored = StoredResponse.from_json(version.http) if version.http else None
        now = time.time()
        if stored is None:
            # From an origin of objects, without HTTP's freshness: valid until it is purged.
            opened = OpenObject(self._objects, request.bucket, version)
            return LookupResult(version, opened, None, cache_status.HIT)
        ttl_s = stored.lifetime_s - caching_rules.age_s(stored, now=now)
        use = caching_rules.use(stored, now=now)
        if use is Reuse.REVALIDATE and not request.only_if_cached:
            return await self._confirm(request, version, stored)
        if use is Reuse.REVALIDATE:
            raise Refused(HTTPStatus.GATEWAY_TIMEOUT, "only-if-cached")
        if use is Reuse.STALE_WHILE_REVALIDATE:
            self._refresh(request, version, stored)
        opened = OpenObject(self._objects, request.bucket, version)
        return LookupResult(version, opened, stored, cache_status.hit(ttl_s=ttl_s))

    async def stop(self) -> None:
        tasks = tuple(self._refreshes.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._keeping.stop()

    async def _find(self, request: CdnRequest) -> tuple[ObjectVersion | None, SharedFetch | None]:
        """Return the stored response, and the fetch of the same name that was running before."""
        # Only an origin that speaks plain HTTP has something at its root.
        check = check_key if request.cache_url.driver is None else check_url_key
        bucket_id, key = request.bucket.id, check(request.key)
        variant = self._variant(request)
        running = self._fetches.get((bucket_id, key, variant))
        version = await self._directory.find(bucket_id, key, variant)
        while version is None and variant != self._variant(request):
            # Vary has become known from a response that may be this variant.
            variant = self._variant(request)
            version = await self._directory.find(bucket_id, key, variant)
        fetch = self._fetches.get((bucket_id, key, variant))
        if version is None and fetch is not None and not _comes_in_time(fetch):
            # It may not be used again without being revalidated, which takes its stored version.
            await fetch.wait_until_stored(STORING_S)
            version = await self._directory.find(bucket_id, key, variant)
        return version, running

    def _find_negative(self, request: CdnRequest) -> LookupResult | None:
        found = self._negative.find((request.bucket.id, request.key, self._variant(request)))
        if found is None or found.version is None:
            return None
        status = cache_status.hit(ttl_s=round(found.until - time.monotonic()))
        return LookupResult(found.version, None, found.stored, status, found.body)

    async def fetch(
        self, request: CdnRequest, *, above: int = 0, replaced: ObjectVersion | None = None
    ) -> LookupResult:
        """Fetch from the origin, whatever is stored.

        above: a generation whose bytes are lost.
        replaced: the stored response.

        Raises as ``find`` does.
        """
        if request.only_if_cached:
            raise Refused(HTTPStatus.GATEWAY_TIMEOUT, "only-if-cached")
        opened, attempt = await self._fetch(request, replaced, None, above=above)
        result = self._result(opened, attempt, why="uri-miss")
        fetch = opened.fetch
        is_shared = fetch is not None and fetch.cacheability.is_shared
        if is_shared and result.stored is not None and _is_negative(result.stored):
            keeping = self._keeping.add(
                self._keep_negative(request, attempt, result.stored, opened)
            )
            # Most are complete by now; a slow one must not delay its first bytes.
            await asyncio.wait({keeping}, timeout=NEGATIVE_WAIT_S)
        return result

    async def _keep_negative(
        self, request: CdnRequest, attempt: Attempt, stored: StoredResponse, opened: OpenObject
    ) -> None:
        body = bytearray()
        with contextlib.suppress(BrainError):
            async for piece in opened.body():
                body += piece
                if len(body) > NEGATIVE_BODY_BYTES:
                    return
            name = (request.bucket.id, request.key, opened.version.variant)
            version = replace(opened.version, size=len(body))
            answer = NegativeAnswer(version, stored, bytes(body))
            self._negative.add(name, answer, changes=attempt.changes)

    async def _confirm(
        self, request: CdnRequest, version: ObjectVersion, stored: StoredResponse
    ) -> LookupResult:
        try:
            opened, attempt = await self._fetch(request, version, stored)
        except OriginChanged:
            # The key was purged or changed before the revalidation was stored, or it confirms
            # another response.
            return await self.fetch(request, replaced=version)
        except OriginError as exc:
            exc.is_revalidation = True
            if not caching_rules.serves_on_error(stored, now=time.time()):
                raise
            log.info(
                "stale_response_served",
                bucket_id=request.bucket.id,
                cause=exc.cause,
                error=reason(exc),
            )
            stale = OpenObject(self._objects, request.bucket, version)
            return LookupResult(version, stale, stored, cache_status.failed("stale-if-error"))
        return self._result(opened, attempt, why="stale")

    async def _fetch(
        self,
        request: CdnRequest,
        stale: ObjectVersion | None,
        stored: StoredResponse | None,
        *,
        above: int = 0,
    ) -> tuple[OpenObject, Attempt]:
        """Share a fetch of the same variant; fetch alone where responses cannot be shared.

        Raises as ``ObjectCache.fetch``.
        """
        for _ in range(SHARED_LIMIT):
            attempt = self._attempt(request, stale, stored, above)
            try:
                opened = await self._ask(request, attempt)
            except VariantChanged:
                stale = stored = None
                continue
            fetch = opened.fetch
            if fetch is None or _is_answer(request, fetch, attempt):
                return opened, attempt
            is_news = self._learn(request, fetch, attempt)
            # One variant is good for all requests that want it.
            is_wanted = fetch.cacheability.variant == self._variant(request)
            if fetch.cacheability.is_stored and is_wanted:
                return opened, attempt
            if not is_news:
                # It is not for all clients, regardless of Vary.
                break
            found = await self._kept_since(request, fetch)
            if found is not None:
                return found, attempt
            stale = stored = None
        attempt = self._attempt(request, stale, stored, above)
        return await self._ask(request, attempt, alone=True), attempt

    async def _ask(
        self, request: CdnRequest, attempt: Attempt, *, alone: bool = False
    ) -> OpenObject:
        return await self._objects.fetch(
            request.bucket,
            request.key,
            variant=attempt.variant,
            request=attempt.fetch_request,
            alone=alone,
        )

    def _learn(self, request: CdnRequest, fetch: SharedFetch, attempt: Attempt) -> bool:
        """Learn what a response varies on; True if the attempt did not know all names."""
        names = tuple(fetch.cacheability.http.get("vary", ()))
        is_news = not set(names) <= set(attempt.known)
        if is_news:
            self._vary.learn(request.bucket.id, request.target, names)
        return is_news

    async def _kept_since(self, request: CdnRequest, fetch: SharedFetch) -> OpenObject | None:
        """Return what another fetch has stored of the wanted variant since a fetch began."""
        version = await self._directory.find(request.bucket.id, request.key, self._variant(request))
        if version is None or fetch.began is None or version.generation < fetch.began:
            return None
        return OpenObject(self._objects, request.bucket, version)

    def _variant(self, request: CdnRequest) -> str:
        if not request.is_http:
            return ""
        known = self._vary.of(request.bucket.id, request.target)
        return request.policy.variant(
            request.target, request.policy.sent(request.fields, known), known
        )

    async def _recalled_variant(self, request: CdnRequest) -> str:
        await self._vary.recall(request.bucket.id, request.target)
        return self._variant(request)

    def _attempt(
        self,
        request: CdnRequest,
        stale: ObjectVersion | None,
        stored: StoredResponse | None,
        above: int,
    ) -> Attempt:
        known = self._vary.of(request.bucket.id, request.target)
        changes = self._negative.changes(request.bucket.id)
        # What is stored before the fetch is no result of it, whatever its validators.
        above = max(above, 0 if stale is None else stale.generation)
        if not request.is_http:
            fetch_request = FetchRequest(
                OriginRequest(method=request.method, ranged=request.ranged),
                above=above,
                joins=_comes_in_time,
                client=request.client,
            )
            return Attempt(fetch_request, "", {}, known, changes)
        policy, target = request.policy, request.target
        sent = policy.sent(request.fields, known)
        conditions = caching_rules.conditions(stored) if stored is not None else []
        # A response to one client's credentials says nothing about the one stored for all, and one
        # without a body replaces none.
        replaced = None if AUTHORIZATION in sent or request.is_head else stale
        stale = stale if conditions else None
        assess = Assessment(
            policy=policy,
            target=target,
            sent=sent,
            known=known,
            stale=stale,
            stored=stored,
            asked_at=time.time(),
            learn=partial(self._vary.learn, request.bucket.id, target),
        )
        fetch_request = FetchRequest(
            _to_origin(request, [*sent.items(), *conditions]),
            stale=stale,
            replaced=replaced,
            above=above,
            assess=assess,
            joins=_comes_in_time,
            opens_at_head=True,
            client=request.client,
            takes=lambda found: _may_be_used(found.http),
            find_variant=partial(self._recalled_variant, request),
        )
        return Attempt(fetch_request, policy.variant(target, sent, known), sent, known, changes)

    def _result(self, opened: OpenObject, attempt: Attempt, *, why: str) -> LookupResult:
        version, fetch = opened.version, opened.fetch
        stored = StoredResponse.from_json(version.http) if version.http else None
        is_confirmed = bool(version.sha256) and attempt.fetch_request.stale is not None
        status = cache_status.forwarded(
            why,
            stored=fetch is not None and fetch.will_be_stored,
            status=CONFIRMED if is_confirmed else None,
            # Another request's fetch, here or in another brain, has the response.
            collapsed=fetch is None
            or fetch.is_of_other_brain
            or fetch.request is not attempt.fetch_request,
            is_stale=stored is not None and 0 < stored.lifetime_s <= stored.age_s,
            ignores_tags=stored is not None and cache_tags.of_response(stored.headers).ignored > 0,
        )
        return LookupResult(version, opened, stored, status)

    def _refresh(self, request: CdnRequest, version: ObjectVersion, stored: StoredResponse) -> None:
        name = (version.bucket_id, version.key, version.variant)
        if name in self._refreshes:
            return
        task = asyncio.create_task(self._renew(request, version, stored))
        self._refreshes[name] = task
        task.add_done_callback(partial(self._ended, name))

    async def _renew(
        self, request: CdnRequest, version: ObjectVersion, stored: StoredResponse
    ) -> None:
        """Revalidate a response for no client: the fetch has this reader until its end."""
        whole = replace(request, is_head=False, wants_whole=True)
        result = await self._confirm(whole, version, stored)
        if result.opened is not None:
            await result.opened.whole()

    def _ended(self, name: Name, task: asyncio.Task[Any]) -> None:
        del self._refreshes[name]
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, BrainError):
            log.info("refresh_failed", cause=failure.cause, error=reason(failure))


def _to_origin(request: CdnRequest, headers: list[tuple[str, str]]) -> OriginRequest:
    target = request.target
    return OriginRequest(
        headers=headers,
        path=target.path,
        query=target.query,
        takes_any_status=True,
        method=request.method,
        ranged=request.ranged,
        take_interim=request.take_interim,
    )


def _is_negative(stored: StoredResponse) -> bool:
    """True for a response that is kept although the origin says nothing about that."""
    return (
        stored.status in NEGATIVE_STATUSES
        and not caching_rules.is_useful(stored)
        and caching_rules.allows_negative_caching(stored.headers)
    )


def _is_answer(request: CdnRequest, fetch: SharedFetch, attempt: Attempt) -> bool:
    """True if a fetch's response is one for this request."""
    if fetch.request is not attempt.fetch_request:
        return fetch.cacheability.is_shared
    # It may depend on headers of the client that the origin was not sent.
    names = fetch.cacheability.http.get("vary", ())
    return not any(name in request.fields and name not in attempt.sent for name in names)


def _comes_in_time(fetch: SharedFetch) -> bool:
    """True if a fetch that is running may answer a request that comes now.

    A fetch runs until its bytes are stored; by then the origin may have another version, and a
    response that must be revalidated (max-age=0) cannot be used.
    """
    answer = fetch.cacheability.http or (fetch.kept.http if fetch.kept is not None else {})
    return _may_be_used(answer)


def _may_be_used(http: Mapping[str, Any]) -> bool:
    """True if a response may be used without being revalidated."""
    return (
        not http
        or caching_rules.use(StoredResponse.from_json(http), now=time.time())
        is not Reuse.REVALIDATE
    )
