"""Plain HTTP for public buckets: ``/p/{public_name}/{key}``, or a bucket's own host (RFC 9111).

Of a client's request the origin gets only the headers that choose a representation, so no stored
response belongs to one client. Unsafe methods are refused, unless the bucket's owner allows to
forward them (``forwarding``).
"""

import time
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote_to_bytes

import structlog

from edgecache.brain.cdn import cache_status, rules, selection
from edgecache.brain.cdn.forwarding import Forwarding, ForwardingRefused
from edgecache.brain.cdn.lookup import CdnRequest, Lookup, LookupResult, NotCached
from edgecache.brain.cdn.parts import CdnParts
from edgecache.brain.delivery.delivery import Source
from edgecache.brain.delivery.planning import delivery_of, sources_of
from edgecache.brain.errors import (
    BrainError,
    KeyRefused,
    OriginChanged,
    OriginError,
    OriginMissing,
    OriginReadOnly,
    OriginTimeout,
    Unavailable,
)
from edgecache.brain.values import BucketInfo, ObjectVersion
from edgecache.http.exchange import BodyTimeout, ClientGone, Exchange
from edgecache.http.heads import HeaderPairs, http_date
from edgecache.http.scope import Scope

log = structlog.get_logger(__name__)

PREFIX: Final = "/p/"
QUERY_LIMIT: Final = 2048
METHODS: Final = ("GET", "HEAD")


class CdnApi:
    """Serves requests."""

    def __init__(self, parts: CdnParts) -> None:
        self._parts = parts
        self._lookup = Lookup(parts.objects, parts.directory)
        self._forwarding = Forwarding(parts)

    async def stop(self) -> None:
        """Cancel what runs in the background."""
        await self._lookup.stop()
        await self._forwarding.stop()

    async def __call__(
        self, scope: Scope, exchange: Exchange, bucket_id: int | None = None
    ) -> None:
        """Serve one request; errors are sent as short texts.

        bucket_id: of the bucket whose host the request is for; there the whole path is the key.
        """
        try:
            await self._serve(scope, exchange, bucket_id)
        except ClientGone:
            raise
        except Exception as exc:
            status = _status_of(exc)
            if status == HTTPStatus.INTERNAL_SERVER_ERROR:
                log.exception("cdn_request_failed")
            if exchange.is_answered:
                exchange.cut()
            else:
                allowed = status == HTTPStatus.METHOD_NOT_ALLOWED
                _send_error(exchange, status, [("allow", ", ".join(METHODS))] if allowed else None)

    async def _serve(self, scope: Scope, exchange: Exchange, bucket_id: int | None) -> None:
        if scope.method not in METHODS and scope.method not in rules.UNSAFE:
            raise OriginReadOnly
        bucket, key = await self._target(scope, bucket_id)
        if scope.method in rules.UNSAFE:
            await self._forwarding.forward(scope, exchange, bucket, key)
            return
        fields = {name.lower(): value for name, value in scope.headers.items()}
        control = rules.directives([fields.get("cache-control", "")])
        request = CdnRequest(
            bucket,
            key,
            scope.query_string,
            fields,
            only_if_cached="only-if-cached" in control,
            client=self._parts.streamer.offload.client_of(scope),
        )
        result = await self._lookup.find(request)
        try:
            await self._deliver(scope, exchange, request, result)
        except OriginChanged:
            if exchange.is_answered:
                raise
            # The bytes are lost, and the origin has a newer version: send that one.
            result = await self._lookup.fetch(request)
            await self._deliver(scope, exchange, request, result)

    async def _target(self, scope: Scope, bucket_id: int | None) -> tuple[BucketInfo, str]:
        directory = self._parts.directory
        bucket: BucketInfo | None
        if bucket_id is None:
            public_name, _, raw_key = scope.raw_path.removeprefix(PREFIX).partition("/")
            bucket = await directory.bucket_by_public_name(public_name)
        else:
            raw_key = scope.raw_path.removeprefix("/")
            bucket = await directory.bucket_by_id(bucket_id)
        if bucket is None or not bucket.is_public:
            raise OriginMissing
        if len(scope.query_string) > QUERY_LIMIT:
            raise KeyRefused
        try:
            return bucket, unquote_to_bytes(raw_key).decode()
        except UnicodeDecodeError:
            raise KeyRefused from None

    async def _deliver(
        self, scope: Scope, exchange: Exchange, request: CdnRequest, result: LookupResult
    ) -> None:
        opened, fields = result.opened, request.fields
        version = opened.version
        headers = self._headers(version, result)
        selected = selection.select(version, headers, fields)
        if version.size < 0 and selected.status == HTTPStatus.OK and scope.method == "GET":
            # The origin did not announce the length: the body is passed through as it comes.
            await self._parts.streamer.pass_through(
                request.bucket, exchange, (HTTPStatus.OK, headers), opened.body()
            )
            return
        if version.size < 0:
            version = await opened.whole()
            selected = selection.select(version, headers, fields)
        sends_body = scope.method == "GET" and selected.status in {200, 206}
        if not sends_body:
            length = [("content-length", str(selected.span.length))] if selected.has_length else []
            exchange.response_empty(selected.status, [*selected.headers, *length])
            return
        delivery = delivery_of(
            request.bucket,
            version,
            span=selected.span,
            status=selected.status,
            headers=selected.headers,
            sources=await self._sources(scope, request.bucket, version, is_hit=opened.is_hit),
            is_hit=opened.is_hit,
        )
        await self._parts.streamer.deliver(delivery, exchange, opened.body)

    async def _sources(
        self, scope: Scope, bucket: BucketInfo, version: ObjectVersion, *, is_hit: bool
    ) -> tuple[Source, ...]:
        if not is_hit:
            return ()
        parts = self._parts
        region = parts.locator.region_of(parts.streamer.offload.client_of(scope), scope.headers)
        return await sources_of(parts.directory, parts.nodes, bucket, version, region)

    def _headers(self, version: ObjectVersion, result: LookupResult) -> HeaderPairs:
        status = ("cache-status", result.cache_status)
        if result.stored is None:
            modified = http_date(int(version.last_modified.timestamp()))
            return [
                ("content-type", version.content_type),
                *version.sent_headers.items(),
                ("etag", f'"{version.etag}"'),
                ("last-modified", modified),
                status,
            ]
        age_s = rules.age_s(result.stored, now=time.time())
        return [*result.stored.headers, ("age", str(age_s)), status]


def _status_of(exc: Exception) -> HTTPStatus:
    if isinstance(exc, OriginMissing | KeyRefused):
        return HTTPStatus.NOT_FOUND
    if isinstance(exc, NotCached | OriginTimeout):
        return HTTPStatus.GATEWAY_TIMEOUT
    if isinstance(exc, selection.ConditionFailed | ForwardingRefused):
        return exc.status
    if isinstance(exc, OriginReadOnly):
        return HTTPStatus.METHOD_NOT_ALLOWED
    if isinstance(exc, BodyTimeout):
        return HTTPStatus.REQUEST_TIMEOUT
    if isinstance(exc, OriginError):
        return HTTPStatus.BAD_GATEWAY
    if isinstance(exc, Unavailable):
        return HTTPStatus.SERVICE_UNAVAILABLE
    return HTTPStatus.NOT_FOUND if isinstance(exc, BrainError) else HTTPStatus.INTERNAL_SERVER_ERROR


def _send_error(exchange: Exchange, status: HTTPStatus, headers: HeaderPairs | None = None) -> None:
    pairs = [
        ("content-type", "text/plain; charset=utf-8"),
        ("cache-control", "no-store"),
        ("cache-status", cache_status.NAME),
        *(headers or []),
    ]
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        pairs.append(("retry-after", "1"))
    exchange.response_str(status, pairs, f"{status.value} {status.phrase}\n")
