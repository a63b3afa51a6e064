"""``/p/{public_name}/{key}``, or a host of its own: public buckets, cached as RFC 9111 says.

The origin hears of a client no more than which representations it takes, so what is kept is
nobody's own. Unsafe methods are refused, unless the bucket's owner has them forwarded
(``forwarding``).
"""

import time
from email.utils import formatdate
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote_to_bytes

import structlog

from edgecache.brain.cdn import representations, rules, statuses
from edgecache.brain.cdn.forwarding import Forwarding, Unforwarded
from edgecache.brain.cdn.looking import Looked, Looking, NotCached, Wanted
from edgecache.brain.cdn.parts import CdnParts
from edgecache.brain.delivery.delivery import Delivery, Source
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
from edgecache.brain.values import BucketInfo, Found
from edgecache.http.exchange import BodyTimeout, ClientGone, Exchange
from edgecache.http.heads import HeaderPairs
from edgecache.http.scope import Scope

log = structlog.get_logger(__name__)

PREFIX: Final = "/p/"
QUERY_LIMIT: Final = 2048
METHODS: Final = ("GET", "HEAD")


class PullApi:
    """Answers one request after the other."""

    def __init__(self, parts: CdnParts) -> None:
        self._parts = parts
        self._looking = Looking(parts.fills, parts.directory)
        self._forwarding = Forwarding(parts)

    async def stop(self) -> None:
        """Give up what runs behind answers."""
        await self._looking.stop()
        await self._forwarding.stop()

    async def __call__(
        self, scope: Scope, exchange: Exchange, bucket_id: int | None = None
    ) -> None:
        """Answer one request; what goes wrong is a short text.

        bucket_id: of the host that was asked for; the whole path is a key there.
        """
        try:
            await self._answer(scope, exchange, bucket_id)
        except ClientGone:
            raise
        except Exception as exc:
            status = _status_of(exc)
            if status == HTTPStatus.INTERNAL_SERVER_ERROR:
                log.exception("pull_request_failed")
            if exchange.is_answered:
                exchange.cut()
            else:
                allowed = status == HTTPStatus.METHOD_NOT_ALLOWED
                _refuse(exchange, status, [("allow", ", ".join(METHODS))] if allowed else None)

    async def _answer(self, scope: Scope, exchange: Exchange, bucket_id: int | None) -> None:
        if scope.method not in METHODS and scope.method not in rules.UNSAFE:
            raise OriginReadOnly
        bucket, key = await self._where(scope, bucket_id)
        if scope.method in rules.UNSAFE:
            await self._forwarding.forward(scope, exchange, bucket, key)
            return
        fields = {name.lower(): value for name, value in scope.headers.items()}
        control = rules.directives([fields.get("cache-control", "")])
        wanted = Wanted(
            bucket, key, scope.query_string, fields, only_if_cached="only-if-cached" in control
        )
        looked = await self._looking.look(wanted)
        try:
            await self._deliver(scope, exchange, wanted, looked)
        except OriginChanged:
            if exchange.is_answered:
                raise
            # Nobody has the bytes any more, and the origin has others: those, then.
            looked = await self._looking.fetch(wanted)
            await self._deliver(scope, exchange, wanted, looked)

    async def _where(self, scope: Scope, bucket_id: int | None) -> tuple[BucketInfo, str]:
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
        self, scope: Scope, exchange: Exchange, wanted: Wanted, looked: Looked
    ) -> None:
        opened, fields = looked.opened, wanted.fields
        found = opened.found
        headers = self._headers(found, looked)
        chosen = representations.choose(found, headers, fields)
        if found.size < 0 and chosen.status == HTTPStatus.OK and scope.method == "GET":
            # The origin has not said how much it is: it goes on as it comes.
            await self._parts.streamer.pass_through(
                wanted.bucket, exchange, (HTTPStatus.OK, headers), opened.body()
            )
            return
        if found.size < 0:
            found = await opened.whole()
            chosen = representations.choose(found, headers, fields)
        sends_body = scope.method == "GET" and chosen.status in {200, 206}
        if not sends_body:
            length = [("content-length", str(chosen.span.length))] if chosen.has_length else []
            exchange.response_empty(chosen.status, [*chosen.headers, *length])
            return
        delivery = Delivery(
            tenant=wanted.bucket.tenant,
            bucket_id=wanted.bucket.id,
            key=wanted.key,
            generation=found.generation,
            sha256=found.sha256,
            size=found.size,
            span=chosen.span,
            status=chosen.status,
            headers=list(chosen.headers),
            sources=await self._sources(scope, wanted.bucket, found, is_hit=opened.is_hit),
            is_verified=wanted.bucket.verifies_reads,
            is_hit=opened.is_hit,
            crc32=found.crc32,
        )
        await self._parts.streamer.deliver(delivery, exchange, opened.body)

    async def _sources(
        self, scope: Scope, bucket: BucketInfo, found: Found, *, is_hit: bool
    ) -> tuple[Source, ...]:
        holders = await self._parts.directory.locations(found.sha256) if is_hit else ()
        if not holders:
            return ()
        return self._parts.nodes.sources(
            holders,
            self._parts.locator.region_of(
                self._parts.streamer.offload.client_of(scope), scope.headers
            ),
            organization_id=bucket.tenant.organization_id,
            is_public=True,
        )

    def _headers(self, found: Found, looked: Looked) -> HeaderPairs:
        status = ("cache-status", looked.cache_status)
        if looked.kept is None:
            modified = formatdate(found.last_modified.timestamp(), usegmt=True)
            return [
                ("content-type", found.content_type),
                *found.headers.items(),
                ("etag", f'"{found.etag}"'),
                ("last-modified", modified),
                status,
            ]
        age_s = rules.age_s(looked.kept, now=time.time())
        return [*looked.kept.headers, ("age", str(age_s)), status]


def _status_of(exc: Exception) -> HTTPStatus:
    if isinstance(exc, OriginMissing | KeyRefused):
        return HTTPStatus.NOT_FOUND
    if isinstance(exc, NotCached | OriginTimeout):
        return HTTPStatus.GATEWAY_TIMEOUT
    if isinstance(exc, representations.Refused | Unforwarded):
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


def _refuse(exchange: Exchange, status: HTTPStatus, headers: HeaderPairs | None = None) -> None:
    pairs = [
        ("content-type", "text/plain; charset=utf-8"),
        ("cache-control", "no-store"),
        ("cache-status", statuses.NAME),
        *(headers or []),
    ]
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        pairs.append(("retry-after", "1"))
    exchange.response_str(status, pairs, f"{status.value} {status.phrase}\n")
