"""POST, PUT, PATCH and DELETE on ``/p/…``, for buckets whose owner has them forwarded.

Off unless the bucket says so: the public name is open to everyone, and an origin may trust whom it
hears from. What goes there bears no power but the client's own: no credentials of the origin's, no
cookie. The body is taken whole first, so that a slow client holds no connection of the origin's.
Answers are not kept. What they invalidate (RFC 9111 §4.4) is forgotten by every brain before the
client hears of it, whoever dies in between.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

from edgecache.brain.cdn import rules, statuses
from edgecache.brain.cdn.parts import CdnParts
from edgecache.brain.delivery.delivery import Span
from edgecache.brain.errors import OriginReadOnly, Overloaded
from edgecache.brain.origins.exchange import Reply
from edgecache.brain.origins.http import SAFE, HttpDriver
from edgecache.brain.values import BucketInfo, StagedFile, check_key
from edgecache.http.exchange import BODYLESS, Exchange
from edgecache.http.headers import Headers
from edgecache.http.heads import HeaderPairs
from edgecache.http.limits import NEVER
from edgecache.http.scope import Scope

BODY_LIMIT_BYTES: Final = 8 * 2**20
# Of one bucket: nobody's clients take the place of another's.
AT_ONCE: Final = 32
# Where the places are all taken, who sends a body more slowly than that makes room.
UNHURRIED_S: Final = 5.0
UNHURRIED_BYTES_PER_S: Final = 65_536
LIMIT_S: Final = 300.0
# Of a request: what it says of its body, what it makes depend on what, and who says it.
PASSED_ON: Final = (
    "accept",
    "accept-language",
    "authorization",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
)
LOCATIONS: Final = frozenset({"location", "content-location"})
LOOP_MARK: Final = "zonal"


class Unforwarded(Exception):
    """A request that is not handed on. status: what its sender hears."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(slots=True, eq=False)
class Place:
    """A request under way. began: the loop's time when its client was to send, NEVER otherwise."""

    bucket_id: int
    exchange: Exchange
    began: float = NEVER

    def pace(self, now: float) -> float:
        """Give the bytes a second that its client sends; NEVER where nobody waits for them."""
        if self.exchange.is_complete or now - self.began < UNHURRIED_S:
            return NEVER
        return self.exchange.body_bytes / (now - self.began)


@dataclass(frozen=True, slots=True)
class Told:
    """What an origin is to be told, and where."""

    bucket: BucketInfo
    driver: HttpDriver
    key: str
    url: str


class Forwarding:
    """The way of unsafe requests. What was begun goes on to its end when its client goes away."""

    def __init__(self, parts: CdnParts) -> None:
        self._parts = parts
        self._under_way: dict[asyncio.Task[Any], Place] = {}

    async def forward(self, scope: Scope, exchange: Exchange, bucket: BucketInfo, key: str) -> None:
        """Hand a request to the origin, and the origin's answer to the client.

        Raises OriginReadOnly, Unforwarded (413, 508), KeyRefused, OriginError's kinds,
        NoSuchBucket, Overloaded, StorageFull, DatabaseAway, BodyTimeout, ClientGone.
        """
        if not bucket.forwards_writes or bucket.origin_id is None:
            raise OriginReadOnly
        if LOOP_MARK in ",".join(scope.headers.get_all("cdn-loop")).lower():
            # It came from here: without end, were it handed on again (RFC 8586).
            raise Unforwarded(HTTPStatus.LOOP_DETECTED)
        key = check_key(key)
        _check_length(scope)
        self._make_room(bucket.id)
        place = Place(bucket.id, exchange)
        task = asyncio.create_task(self._forward(scope, place, bucket, key))
        self._under_way[task] = place
        task.add_done_callback(self._ended)
        await asyncio.shield(task)

    async def stop(self) -> None:
        """Give up what is under way; the collector settles it."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _make_room(self, bucket_id: int) -> None:
        """Have a place free, at the cost of the slowest sender. Raises Overloaded."""
        places = [place for place in self._under_way.values() if place.bucket_id == bucket_id]
        if len(places) < AT_ONCE:
            return
        now = asyncio.get_running_loop().time()
        slowest = min(places, key=lambda place: place.pace(now))
        # Who was told to go may take a moment; so many more are let in meanwhile.
        if slowest.pace(now) > UNHURRIED_BYTES_PER_S or len(places) >= 2 * AT_ONCE:
            raise Overloaded
        slowest.began = NEVER
        slowest.exchange.expire()

    async def _forward(self, scope: Scope, place: Place, bucket: BucketInfo, key: str) -> None:
        driver = await self._parts.origins.driver(bucket)
        if not isinstance(driver, HttpDriver):
            raise OriginReadOnly
        told = Told(bucket, driver, key, driver.url(key, scope.query_string))
        place.began = asyncio.get_running_loop().time()
        staged = await self._parts.staging.take(_limited(place.exchange))
        place.began = NEVER
        try:
            async with asyncio.timeout(LIMIT_S), AsyncExitStack() as stack:
                reply = await self._tell(told, scope, staged, stack)
                await self._answer(told, place.exchange, reply)
        except TimeoutError:
            raise Unforwarded(HTTPStatus.GATEWAY_TIMEOUT) from None
        finally:
            await self._parts.staging.discard(staged)

    async def _tell(
        self, told: Told, scope: Scope, staged: StagedFile, stack: AsyncExitStack
    ) -> Reply:
        """Give the origin's answer, once every brain has forgotten what it invalidates."""
        size = staged.manifest.size
        body = self._parts.staging.read(staged.path, Span(0, size)) if size else b""
        headers = [*_passed_on(scope.headers), ("content-length", str(size))]
        replies: list[Reply] = []

        async def deed() -> list[str]:
            asking = told.driver.forward(scope.method, told.url, headers, body)
            reply = await stack.enter_async_context(asking)
            replies.append(reply)
            urls = rules.invalidated(told.url, reply.status, reply.pairs)
            keys = (told.driver.key_of(urlsplit(url).path) for url in urls)
            return list(dict.fromkeys(key for key in keys if key is not None))

        await self._parts.fills.writes.around(told.bucket, told.key, deed)
        return replies[0]

    async def _answer(self, told: Told, exchange: Exchange, reply: Reply) -> None:
        status = statuses.forwarded("method", stored=False, status=reply.status)
        headers = [
            *(_here(told, pair) for pair in rules.end_to_end(reply.pairs)),
            ("cache-status", status),
        ]
        if reply.status in BODYLESS:
            exchange.response_empty(reply.status, headers)
            return
        length = dict(reply.pairs).get("content-length", "")
        if length.isascii() and length.isdigit():
            headers.append(("content-length", length))
        streamer = self._parts.streamer
        await streamer.pass_through(told.bucket, exchange, (reply.status, headers), reply.body)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.pop(task, None)
        if not task.cancelled():
            # Looked at, so that a failure that nobody waits for is not an unheard one.
            task.exception()


def _check_length(scope: Scope) -> None:
    """Refuse what is too large before the client is told to go on with it (Expect)."""
    length = scope.headers.get("content-length")
    if length.isdecimal() and int(length) > BODY_LIMIT_BYTES:
        raise Unforwarded(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


async def _limited(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    left = BODY_LIMIT_BYTES
    async for piece in body:
        left -= len(piece)
        if left < 0:
            raise Unforwarded(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        yield piece


def _passed_on(request: Headers) -> HeaderPairs:
    return [(name, request[name]) for name in PASSED_ON if name in request]


def _here(told: Told, pair: tuple[str, str]) -> tuple[str, str]:
    """Give a field as clients of the cache are to read it: URLs of the bucket are the cache's."""
    name, value = pair
    if name not in LOCATIONS:
        return pair
    url = rules.resolved(told.url, value)
    parts = urlsplit(url)
    is_home = rules.site(url) == rules.site(told.url)
    key = told.driver.key_of(parts.path) if is_home else None
    if key is None:
        return (name, url)
    query = f"?{parts.query}" if parts.query else ""
    return (name, f"/p/{told.bucket.public_name}/{quote(key, safe=SAFE)}{query}")
