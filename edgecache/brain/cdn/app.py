"""Plain HTTP for public buckets: ``/p/{public_name}/{key}``, or a bucket's own host (RFC 9111).

The origin gets only those parts of a client's request that the key has (``cache_keys``), so a
stored response never belongs to one client. The origin's responses are passed on unchanged, errors
and redirects too; kept texts are compressed (``content_codings``). Unsafe methods are refused,
unless the bucket's owner allows to forward them (``forwarding``).
"""

import re
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote_to_bytes

import structlog

from edgecache.brain.access import signed_links
from edgecache.brain.cdn import (
    cache_status,
    conditional_requests,
    content_codings,
    interim,
    refusals,
    website,
)
from edgecache.brain.cdn.dependencies import CdnDependencies
from edgecache.brain.cdn.forwarding import Forwarding
from edgecache.brain.cdn.lookup import Lookup, LookupResult
from edgecache.brain.cdn.refusals import METHODS, Refused
from edgecache.brain.cdn.urls import CacheUrl, CdnRequest, Page
from edgecache.brain.core.errors import (
    KeyRefused,
    KeyTooLong,
    NoSuchBucket,
    OriginChanged,
    OriginMissing,
    OriginReadOnly,
    Overloaded,
    StoreMissing,
)
from edgecache.brain.core.share_key import use_share_of_bucket
from edgecache.brain.core.values import BucketInfo, ObjectVersion, WorkerSource
from edgecache.brain.delivery.plan import DeliveryPlan, delivery_of, sources_of
from edgecache.brain.delivery.streaming import READ_ATTEMPTS
from edgecache.brain.http_caching import caching_rules
from edgecache.brain.http_caching.cache_keys import (
    COOKIE,
    ENCODING,
    KeyPolicy,
    Target,
    target_of,
)
from edgecache.brain.objects.open_object import OpenObject
from edgecache.brain.origins.connections import is_loop
from edgecache.brain.origins.http import HttpDriver
from edgecache.http.exchange import BODYLESS, ClientGone, Exchange
from edgecache.http.headers import lossless
from edgecache.http.response_head import HeaderPairs, http_date
from edgecache.http.scope import HttpScope

log = structlog.get_logger(__name__)

PREFIX: Final = "/p/"
QUERY_LIMIT: Final = 2048
# How long a whole response may take to be stored before it counts as not kept.
STORED_WITHIN_S: Final = 30.0
# Of current browsers, and of clients that name none.
BROWSER_CODINGS: Final = ("gzip, deflate, br, zstd", "")
MALFORMED: Final = re.compile("%(?![0-9A-Fa-f]{2})")


class CdnApi:
    def __init__(self, dependencies: CdnDependencies) -> None:
        self._dependencies = dependencies
        self._lookup = Lookup(dependencies.objects, dependencies.directory)
        self._forwarding = Forwarding(dependencies)

    async def stop(self) -> None:
        """Cancel what runs in the background."""
        await self._lookup.stop()
        await self._forwarding.stop()

    async def warm(self, bucket: BucketInfo, target: Target) -> str:
        """Fetch what browsers get of a URL of a bucket with an HTTP origin, unless it is kept.

        Return an error code, "" on success. Raises BrainError.
        """
        try:
            await self._warm(bucket, target)
        except Refused as refused:
            is_status = refused.status == HTTPStatus.BAD_GATEWAY
            return refused.cause.replace("-", "_") if is_status else "not_kept"
        return ""

    async def _warm(self, bucket: BucketInfo, target: Target) -> None:
        driver = await self._dependencies.origins.driver(bucket)
        if not isinstance(driver, HttpDriver):
            raise OriginReadOnly
        # A host of the bucket's own has another key only where cookies are part of it.
        is_cookie_keyed = COOKIE in bucket.forwarded_headers
        for prefix in (f"{PREFIX}{bucket.public_name}/", *(["/"] if is_cookie_keyed else [])):
            cache_url = CacheUrl(bucket, target, prefix, driver)
            policy = KeyPolicy.of(bucket.forwarded_headers, is_shared_host=cache_url.is_shared)
            for codings in BROWSER_CODINGS:
                fields = {ENCODING: codings}
                result = await self._lookup.find(CdnRequest(cache_url, fields, policy))
                if result.opened is not None:
                    await result.opened.whole()
                    if result.opened.fetch is not None:
                        await result.opened.fetch.wait_until_stored(STORED_WITHIN_S)
                if result.status >= HTTPStatus.BAD_REQUEST:
                    raise Refused(HTTPStatus.BAD_GATEWAY, f"status-{result.status}")
                kept = CdnRequest(cache_url, fields, policy, only_if_cached=True)
                await self._lookup.find(kept)

    async def __call__(
        self, scope: HttpScope, exchange: Exchange, bucket_id: int | None = None
    ) -> None:
        """Serve one request; errors are sent as short texts.

        bucket_id: set if the request's host belongs to a bucket; the whole path is then the key.
        """
        try:
            await self._serve(scope, exchange, bucket_id)
        except ClientGone:
            raise
        except Exception as exc:
            refusal = refusals.refusal_of(exc)
            exchange.cause = refusal.cause
            if refusal.cause == refusals.UNEXPECTED:
                log.exception("cdn_request_failed")
            if exchange.is_answered:
                exchange.cut()
            else:
                refusals.send(exchange, exc, refusal)

    async def _serve(self, scope: HttpScope, exchange: Exchange, bucket_id: int | None) -> None:
        if scope.method not in METHODS and scope.method in caching_rules.NOT_FORWARDED:
            raise OriginReadOnly
        cache_url = await self._cache_url(scope, bucket_id)
        if cache_url.expires_at is not None and scope.method not in METHODS:
            raise OriginReadOnly
        if bucket_id is None and scope.raw_path == cache_url.prefix.removesuffix("/"):
            # Relative links of the root would leave the bucket.
            query = f"?{scope.query_string}" if scope.query_string else ""
            location = ("location", f"{cache_url.prefix}{query}")
            exchange.response_empty(308, [location, ("cache-status", cache_status.NAME)])
            return
        try:
            await self._admit(scope, exchange, cache_url)
        except Exception as exc:
            refusal = refusals.refusal_of(exc)
            if refusal.is_failure:
                self._dependencies.meters.record_failure(cache_url.bucket.id, refusal.cause)
            raise

    async def _admit(self, scope: HttpScope, exchange: Exchange, cache_url: CacheUrl) -> None:
        """Answer a request in its bucket's share."""
        if cache_url.bucket.origin_id is not None and is_loop(scope.headers):
            raise Refused(HTTPStatus.LOOP_DETECTED, "loop")
        share_key = use_share_of_bucket(
            cache_url.bucket, self._dependencies.proxies.client_of(scope)
        )
        if not self._dependencies.running.try_take(share_key):
            raise Overloaded
        try:
            await self._answer(scope, exchange, cache_url)
        finally:
            self._dependencies.running.give_back(share_key)

    async def _answer(self, scope: HttpScope, exchange: Exchange, cache_url: CacheUrl) -> None:
        if scope.method not in METHODS:
            await self._forwarding.forward(scope, exchange, cache_url)
            return
        request = await self._request(scope, exchange, cache_url)
        try:
            if website.answers(request):
                request, result = await website.find(self._lookup, request)
            else:
                result = await self._lookup.find(request)
        except OriginMissing as missing:
            if request.bucket.origin_id is None:
                raise
            asked = cache_status.forwarded("uri-miss", stored=False)
            said = cache_status.HIT if missing.is_remembered else asked
            self._count_empty(exchange, request.bucket, is_hit=cache_status.is_hit(said))
            raise Refused(HTTPStatus.NOT_FOUND, "", said=said) from missing
        if request.page is Page.FOLDER:
            location = [("location", cache_url.folder), ("cache-status", result.cache_status)]
            exchange.response_empty(HTTPStatus.FOUND, location)
            self._count_empty(exchange, request.bucket, is_hit=result.is_hit)
            return
        for _ in range(READ_ATTEMPTS - 1):
            try:
                await self._deliver(scope, exchange, request, result)
            except (OriginChanged, StoreMissing):
                if exchange.is_answered:
                    raise
                # The bytes are lost, as of an object that was overwritten, and the origin has a
                # newer version, or it sent another part: send the whole from there, or a part.
                whole = replace(request, wants_whole=True)
                result = await self._lookup.fetch(whole, above=result.version.generation)
            else:
                return
        await self._deliver(scope, exchange, request, result)

    async def _cache_url(self, scope: HttpScope, bucket_id: int | None) -> CacheUrl:
        directory = self._dependencies.directory
        bucket: BucketInfo | None
        if bucket_id is None:
            public_name, _, path = scope.raw_path.removeprefix(PREFIX).partition("/")
            bucket = await directory.bucket_by_public_name(public_name)
            prefix = f"{PREFIX}{public_name}/"
        else:
            path, prefix = scope.raw_path.removeprefix("/"), "/"
            bucket = await directory.bucket_by_id(bucket_id)
        if bucket is None:
            raise NoSuchBucket
        query, link = signed_links.split(scope.query_string)
        if link is None and not bucket.is_public:
            raise NoSuchBucket
        if len(query) > QUERY_LIMIT:
            raise KeyTooLong(f"A query has at most {QUERY_LIMIT:,} characters.")
        if MALFORMED.search(path):
            raise KeyRefused("The path has a percent sign without two hexadecimal digits.")
        try:
            key = unquote_to_bytes(path.encode("latin-1")).decode()
        except UnicodeDecodeError:
            raise KeyRefused("The path is not UTF-8.") from None
        driver = (
            await self._dependencies.origins.driver(bucket)
            if bucket.origin_id is not None
            else None
        )
        driver = driver if isinstance(driver, HttpDriver) else None
        target = target_of(key, path, query)
        if link is None:
            return CacheUrl(bucket, target, prefix, driver)
        is_http = driver is not None
        self._dependencies.link_keys.check(bucket, target, link, is_http=is_http, now=time.time())
        return CacheUrl(bucket, target, prefix, driver, link.expires_at)

    async def _request(
        self, scope: HttpScope, exchange: Exchange, cache_url: CacheUrl
    ) -> CdnRequest:
        fields = caching_rules.fields_of(scope.headers.items())
        control = caching_rules.directives([fields.get("cache-control", "")])
        return CdnRequest(
            cache_url,
            fields,
            KeyPolicy.of(cache_url.bucket.forwarded_headers, is_shared_host=cache_url.is_shared),
            only_if_cached="only-if-cached" in control,
            client=self._dependencies.proxies.client_of(scope),
            is_head=scope.method == "HEAD",
            take_interim=interim.handed_on(cache_url, exchange),
        )

    async def _deliver(
        self, scope: HttpScope, exchange: Exchange, request: CdnRequest, result: LookupResult
    ) -> None:
        headers: HeaderPairs = self._headers(request, result)
        if result.opened is None:
            await self._send_small(exchange, request, result, headers)
            return
        version, opened = result.version, result.opened
        status = website.status_of(request, result)
        coding = ""
        if content_codings.is_offered(request, result, headers):
            headers = content_codings.varying(headers)
            # What is still being fetched goes on as it comes.
            coding = content_codings.coding_for(request.fields) if opened.version.sha256 else ""
        # RFC 9110 §14.2: ranges are of a GET.
        hidden = {"range"} if scope.method == "HEAD" else ()
        fields = {
            name: lossless(value) for name, value in request.fields.items() if name not in hidden
        }
        described = content_codings.weakened(headers) if coding else headers
        try:
            selected = (
                conditional_requests.select(version, described, fields)
                if status == HTTPStatus.OK
                else conditional_requests.whole(version, headers, status)
            )
        except conditional_requests.ConditionFailed as refused:
            self._count_empty(exchange, request.bucket, is_hit=result.is_hit)
            refused.cache_status = result.cache_status
            raise
        if coding and selected.status == HTTPStatus.OK:
            delivery = await self._delivery(scope, request, result, selected)
            if await self._send_compressed(exchange, request, opened, delivery, coding):
                return
            selected = conditional_requests.select(version, headers, fields)
        if selected.status in BODYLESS or scope.method == "HEAD":
            has_length = selected.status not in BODYLESS and version.size >= 0
            length = [("content-length", str(selected.span.length))] if has_length else []
            exchange.response_empty(selected.status, [*selected.headers, *length])
            self._count_empty(exchange, request.bucket, is_hit=result.is_hit)
            return
        if not opened.covers(selected.span):
            raise OriginChanged
        if not opened.version.sha256:
            # It is being fetched: its bytes go on as they come.
            await self._pass_through(exchange, request.bucket, selected, result)
            return
        delivery = await self._delivery(scope, request, result, selected)
        await self._dependencies.streamer.deliver(delivery, exchange, opened.body)

    async def _delivery(
        self,
        scope: HttpScope,
        request: CdnRequest,
        result: LookupResult,
        selected: conditional_requests.ResponseSelection,
    ) -> DeliveryPlan:
        return delivery_of(
            request.bucket,
            result.version,
            span=selected.span,
            status=selected.status,
            headers=selected.headers,
            sources=await self._sources(scope, request.bucket, result.version),
            is_hit=result.is_hit,
        )

    async def _send_compressed(
        self,
        exchange: Exchange,
        request: CdnRequest,
        opened: OpenObject,
        delivery: DeliveryPlan,
        coding: str,
    ) -> bool:
        """Respond with a body in a coding; False if it must be sent as it is."""
        dependencies = self._dependencies
        body = await dependencies.compression.body(
            coding, delivery, opened.body, began=exchange.began
        )
        if not body:
            return False
        headers = content_codings.encoded(delivery.headers, coding)
        if exchange.scope.method == "HEAD":
            length = ("content-length", str(len(body)))
            exchange.response_empty(delivery.status, [*headers, length])
            self._count_empty(exchange, request.bucket, is_hit=delivery.is_hit)
            return True
        packed = delivery._replace(headers=headers)
        await dependencies.streamer.deliver_compressed(packed, body, exchange)
        return True

    def _count_empty(self, exchange: Exchange, bucket: BucketInfo, *, is_hit: bool) -> None:
        self._dependencies.streamer.count_empty(bucket.tenant, bucket.id, exchange, is_hit=is_hit)

    async def _pass_through(
        self,
        exchange: Exchange,
        bucket: BucketInfo,
        selected: conditional_requests.ResponseSelection,
        result: LookupResult,
    ) -> None:
        opened = result.opened
        if opened is None:
            return
        headers, span = selected.headers, None
        if opened.version.size >= 0:
            headers = [*headers, ("content-length", str(selected.span.length))]
            span = selected.span
        head = (selected.status, headers)
        await self._dependencies.streamer.pass_through(
            bucket, exchange, head, opened.body(span), is_hit=result.is_hit
        )

    async def _send_small(
        self, exchange: Exchange, request: CdnRequest, result: LookupResult, headers: HeaderPairs
    ) -> None:
        """Send a response whose body is in memory."""

        async def body() -> AsyncIterator[bytes]:
            if exchange.scope.method != "HEAD" and result.small:
                yield result.small

        head = (result.status, [*headers, ("content-length", str(len(result.small)))])
        await self._dependencies.streamer.pass_through(
            request.bucket, exchange, head, body(), is_hit=result.is_hit
        )

    async def _sources(
        self, scope: HttpScope, bucket: BucketInfo, version: ObjectVersion
    ) -> tuple[WorkerSource, ...]:
        dependencies = self._dependencies
        region = dependencies.locator.region_of(
            dependencies.proxies.client_of(scope), scope.headers, peer=scope.client_address
        )
        return await sources_of(dependencies.directory, dependencies.nodes, bucket, version, region)

    def _headers(self, request: CdnRequest, result: LookupResult) -> list[tuple[str, str]]:
        cache_url = request.cache_url
        age_s, now = 0, time.time()
        if result.stored is None:
            headers = _object_headers(result.version)
        else:
            headers = cache_url.for_client(result.stored.headers)
            age_s = caching_rules.age_s(result.stored, now=now)
        if request.page is not None:
            headers = website.headers_of(request, headers)
        if cache_url.expires_at is not None:
            within_s = int(cache_url.expires_at - now) + age_s
            headers = caching_rules.for_one_client(headers, within_s=within_s)
            # Other sites must not learn the link, and the origin not what it is asked for.
            headers.append(("referrer-policy", "no-referrer"))
        age = [] if result.stored is None else [("age", str(age_s))]
        return [*headers, *age, ("cache-status", result.cache_status)]


def _object_headers(version: ObjectVersion) -> list[tuple[str, str]]:
    """Return the headers of an object from an origin that does not speak plain HTTP."""
    etag = [("etag", f'"{version.etag}"')] if version.etag else []
    modified = http_date(int(version.last_modified.timestamp()))
    return [
        ("content-type", version.content_type),
        *version.sent_headers.items(),
        *etag,
        ("last-modified", modified),
    ]
