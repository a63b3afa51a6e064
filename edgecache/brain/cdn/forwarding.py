"""POST, PUT, PATCH, DELETE and other unsafe methods, for buckets that forward them.

Off by default: anyone may send to the public name, and an origin may trust its clients. A request
carries the client's own headers and credentials (``cache_keys``), not the origin's. The body is
received completely first, so that a slow client does not occupy a connection to the origin.
Responses are not stored. Every brain forgets what they invalidate (RFC 9111 §4.4) before the client
gets the response, even if this brain crashes before that.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from edgecache.brain.cdn import cache_status, interim
from edgecache.brain.cdn.dependencies import CdnDependencies
from edgecache.brain.cdn.refusals import Refused
from edgecache.brain.cdn.urls import CacheUrl
from edgecache.brain.core.errors import OriginReadOnly, Overloaded
from edgecache.brain.core.values import Span, StagedFile, check_url_key
from edgecache.brain.http_caching import caching_rules
from edgecache.brain.http_caching.cache_keys import KeyPolicy
from edgecache.brain.origins.connections import LOOP, LOOP_MARK, Reply
from edgecache.brain.origins.http import HttpDriver
from edgecache.http.exchange import BODYLESS, Exchange
from edgecache.http.scope import HttpScope
from edgecache.http.server.limits import NEVER
from edgecache.runtime.fair_shares import Shares
from edgecache.runtime.futures import retrieve

BODY_LIMIT_BYTES: Final = 8 * 2**20
# Forwarded requests of all buckets.
FORWARDS: Final = 1024
# Forwarded requests of a bucket, so that its clients cannot block another bucket's.
FORWARD_LIMIT: Final = 32
# At the limit, the client that sends or reads slowest, below this rate, is cut after this time.
SLOW_AFTER_S: Final = 5.0
SLOW_BYTES_PER_S: Final = 65_536
LIMIT_S: Final = 300.0


@dataclass(slots=True, eq=False)
class RunningForward:
    """A running request.

    began: the loop's time when its body was first read, or NEVER.
    answered: the loop's time when its response began, or NEVER.
    """

    bucket_id: int
    exchange: Exchange
    began: float = NEVER
    answered: float = NEVER

    def rate(self, now: float) -> float:
        """Return the bytes per second that its client sends or takes; NEVER if it is not slow."""
        if self.answered != NEVER:
            is_waited_for = self.exchange.transport.get_write_buffer_size() > 0
            if not is_waited_for or now - self.answered < SLOW_AFTER_S:
                return NEVER
            return self.exchange.sent_bytes / (now - self.answered)
        if self.exchange.is_complete or now - self.began < SLOW_AFTER_S:
            return NEVER
        return self.exchange.body_bytes / (now - self.began)


@dataclass(frozen=True, slots=True)
class ForwardTarget:
    """Where a request is forwarded to."""

    cache_url: CacheUrl
    driver: HttpDriver
    url: str


class Forwarding:
    """Forwards unsafe requests; they run to their end when their clients disconnect."""

    def __init__(self, dependencies: CdnDependencies) -> None:
        self._dependencies = dependencies
        self._running: dict[asyncio.Task[Any], RunningForward] = {}
        self._shares = Shares(FORWARDS, refusal=Overloaded)

    async def forward(self, scope: HttpScope, exchange: Exchange, cache_url: CacheUrl) -> None:
        """Forward a request to the origin, and the origin's response to the client.

        Raises OriginReadOnly, Refused (413, 504), KeyRefused, OriginError's kinds,
        NoSuchBucket, Overloaded, StorageFull, DatabaseUnavailable, BodyTimeout, ClientGone.
        """
        bucket, driver = cache_url.bucket, cache_url.driver
        if not bucket.forwards_writes or driver is None:
            raise OriginReadOnly
        check_url_key(cache_url.target.key)
        target = ForwardTarget(cache_url, driver, cache_url.url)
        _check_length(scope)
        self._make_room(bucket.id)
        share_key = (bucket.tenant.organization_id,)
        if not self._shares.try_take(share_key):
            raise Overloaded
        running = RunningForward(bucket.id, exchange)
        task = asyncio.create_task(self._forward(scope, running, target))
        self._running[task] = running
        task.add_done_callback(self._ended)
        task.add_done_callback(lambda _task: self._shares.give_back(share_key))
        await asyncio.shield(task)

    async def stop(self) -> None:
        """Cancel what runs; garbage collection cleans up."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _make_room(self, bucket_id: int) -> None:
        """Make room for a request, if necessary by cancelling the slowest. Raises Overloaded."""
        runs = [running for running in self._running.values() if running.bucket_id == bucket_id]
        if len(runs) < FORWARD_LIMIT:
            return
        now = asyncio.get_running_loop().time()
        slowest = min(runs, key=lambda running: running.rate(now))
        # Cancelled requests take a moment to end, so the hard limit is twice as high.
        if slowest.rate(now) > SLOW_BYTES_PER_S or len(runs) >= 2 * FORWARD_LIMIT:
            raise Overloaded
        if slowest.answered != NEVER:
            slowest.answered = NEVER
            slowest.exchange.cut()
            return
        slowest.began = NEVER
        slowest.exchange.expire()

    async def _forward(
        self, scope: HttpScope, running: RunningForward, target: ForwardTarget
    ) -> None:
        running.began = asyncio.get_running_loop().time()
        staged = await self._dependencies.data_directory.take(_limited(running.exchange))
        running.began = NEVER
        try:
            async with asyncio.timeout(LIMIT_S), AsyncExitStack() as stack:
                reply = await self._send(target, scope, running.exchange, staged, stack)
                running.answered = asyncio.get_running_loop().time()
                await self._respond(target, running.exchange, reply)
        except TimeoutError:
            raise Refused(HTTPStatus.GATEWAY_TIMEOUT, "forward-timeout") from None
        finally:
            await self._dependencies.data_directory.discard(staged)

    async def _send(
        self,
        target: ForwardTarget,
        scope: HttpScope,
        exchange: Exchange,
        staged: StagedFile,
        stack: AsyncExitStack,
    ) -> Reply:
        """Return the origin's response, once every brain has forgotten what it invalidates."""
        size = staged.manifest.size
        body = self._dependencies.data_directory.read(staged.path, Span(0, size)) if size else b""
        bucket, is_shared = target.cache_url.bucket, target.cache_url.is_shared
        policy = KeyPolicy.of(bucket.forwarded_headers, is_shared_host=is_shared)
        loop = [*scope.headers.get_all(LOOP), LOOP_MARK]
        headers = [
            *policy.forwarded(scope.headers.items()),
            (LOOP, ", ".join(loop)),
            ("content-length", str(size)),
        ]
        replies: list[Reply] = []
        take_interim = interim.handed_on(target.cache_url, exchange)

        async def send() -> list[str]:
            asking = target.driver.forward(scope.method, target.url, headers, body, take_interim)
            reply = await stack.enter_async_context(asking)
            replies.append(reply)
            urls = [
                url
                for page in (target.url, target.driver.named(target.url))
                for url in caching_rules.invalidated(page, reply.status, reply.pairs)
            ]
            keys = (target.driver.key_of(urlsplit(url).path) for url in urls)
            return list(dict.fromkeys(key for key in keys if key is not None))

        await self._dependencies.objects.writes.run_recorded(
            bucket, target.cache_url.target.key, send
        )
        return replies[0]

    async def _respond(self, target: ForwardTarget, exchange: Exchange, reply: Reply) -> None:
        status = cache_status.forwarded("method", stored=False, status=reply.status)
        headers = [
            *target.cache_url.for_client(tuple(caching_rules.end_to_end(reply.pairs))),
            ("cache-status", status),
        ]
        if reply.status in BODYLESS:
            exchange.response_empty(reply.status, headers)
            bucket = target.cache_url.bucket
            self._dependencies.streamer.count_empty(
                bucket.tenant, bucket.id, exchange, is_hit=False
            )
            return
        length = dict(reply.pairs).get("content-length", "")
        if length.isascii() and length.isdigit():
            headers.append(("content-length", length))
        streamer = self._dependencies.streamer
        await streamer.pass_through(
            target.cache_url.bucket, exchange, (reply.status, headers), reply.body
        )

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        # The client may have disconnected.
        retrieve(task)


def _check_length(scope: HttpScope) -> None:
    """Refuse a body that is too large before the client is asked to send it (Expect)."""
    length = scope.headers.get("content-length")
    if length.isdecimal() and int(length) > BODY_LIMIT_BYTES:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large")


async def _limited(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    left = BODY_LIMIT_BYTES
    async for piece in body:
        left -= len(piece)
        if left < 0:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large")
        yield piece
