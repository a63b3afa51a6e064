"""Connections and requests to origins over HTTP; every failure becomes an OriginError."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import urlsplit

import httpcore

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import OriginFailed, OriginTimeout
from edgecache.brain.origins.egress.bounded_heads import head_came
from edgecache.brain.origins.headers import Pairs, pairs_of

CONNECT_TIMEOUT_S: Final = 5.0
# For the first byte of the headers, and for each piece of a body.
STALL_TIMEOUT_S: Final = 30.0
# The limit for all headers, in units of STALL_TIMEOUT_S, because an origin could send interim
# responses forever.
HEAD_STALLS: Final = 2
# A safe request (RFC 9110 §9.2.1) is repeated once.
SAFE_METHODS: Final = ("GET", "HEAD")
ATTEMPTS: Final = 2
PAUSE_S: Final = 0.2
# After this event a cancelled request closes its connection.
SENDING: Final = "http11.send_request_headers.started"
# Cancelled requests that have not reached that event; an origin with more of them is stuck.
ABANDONED_LIMIT: Final = 1024
TRY_AGAIN: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
# The brain's name, and a mark by which a request loop is recognized (RFC 8586).
COMMON: Final = (("user-agent", "zonal"), ("cdn-loop", "zonal"), ("accept-encoding", "identity"))
BODYLESS: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
FRAMED: Final = frozenset({"content-length", "transfer-encoding"})


class Pool(Protocol):
    """What sends a request. It may send it when no caller waits for the response any more."""

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response: ...
    async def aclose(self) -> None: ...


class OriginConnections:
    """Connections to one origin. stall_timeout_s: how long one of them may be silent."""

    def __init__(self, pool: Pool, stall_timeout_s: float = STALL_TIMEOUT_S) -> None:
        self._pool = pool
        self._timeouts = {
            "connect": CONNECT_TIMEOUT_S,
            "read": stall_timeout_s,
            "write": stall_timeout_s,
        }
        self.head_timeout_s = HEAD_STALLS * stall_timeout_s
        self._users = 0
        self._is_retired = False
        self._abandoned: set[asyncio.Task[httpcore.Response]] = set()
        self._closing = BackgroundTasks()

    async def send(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request; a cancelled one does not cost the pool a connection.

        If it is cancelled while it gets its connection, it continues up to the event SENDING;
        otherwise it would keep the connection forever. Raises OriginTimeout, httpcore's errors.
        """
        if len(self._abandoned) >= ABANDONED_LIMIT:
            raise OriginTimeout
        is_sent = is_abandoned = False

        async def trace(event: str, _info: object) -> None:
            nonlocal is_sent
            if event == SENDING:
                is_sent = True
                if is_abandoned:
                    raise asyncio.CancelledError

        request.extensions["timeout"] = self._timeouts
        request.extensions["trace"] = trace
        sending = asyncio.create_task(self._pool.handle_async_request(request))
        try:
            response = await asyncio.shield(sending)
        except asyncio.CancelledError:
            is_abandoned = True
            if is_sent:
                sending.cancel()
            self._abandoned.add(sending)
            sending.add_done_callback(self._ended)
            raise
        head_came(response.extensions)
        return response

    async def close(self, response: httpcore.Response) -> None:
        """Close a response: its connection returns to the pool even if the caller is cancelled."""
        await asyncio.shield(self._close(response))

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """Keep the connections open while the block runs, even if the origin is deleted."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            await self._close_if_done()

    async def retire(self) -> None:
        """Close the connections as soon as they are unused."""
        self._is_retired = True
        await self._close_if_done()

    async def _close_if_done(self) -> None:
        if self._is_retired and not self._users:
            for sending in self._abandoned:
                sending.cancel()
            await asyncio.gather(*self._abandoned, return_exceptions=True)
            await self._closing.finish()
            await self._pool.aclose()

    def _ended(self, sending: asyncio.Task[httpcore.Response]) -> None:
        self._abandoned.discard(sending)
        if not sending.cancelled() and sending.exception() is None:
            # The response arrived at the same moment.
            self._close(sending.result())

    def _close(self, response: httpcore.Response) -> asyncio.Task[None]:
        return self._closing.add(response.aclose())


@dataclass(frozen=True, slots=True)
class Request:
    """A request. url: encoded. body: sent in pieces; its length is in the headers."""

    method: str
    url: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | AsyncIterator[bytes] = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response; ``body`` is read while the exchange is open.

    is_complete: called after the body, while the exchange is open; False if the body ended with the
    connection in a way that a broken connection ends, too.
    """

    status: int
    pairs: Pairs
    body: AsyncIterator[bytes]
    is_complete: Callable[[], bool] = lambda: True

    async def text(self, limit: int) -> bytes:
        """Return the whole body.

        Raises OriginFailed when it is larger than the limit, and as the body does.
        """
        whole = bytearray()
        async for piece in self.body:
            whole += piece
            if len(whole) > limit:
                raise OriginFailed("The origin's answer is larger than it should be.")
        return bytes(whole)


@asynccontextmanager
async def exchange(
    connections: OriginConnections,
    request: Request,
    *,
    try_again: frozenset[HTTPStatus] = TRY_AGAIN,
    attempts: int = 0,
) -> AsyncIterator[Reply]:
    """Send a request and yield the reply; the connection then returns to the pool.

    A safe request is sent again if it fails; try_again: the statuses for which it is, too. Others
    are sent once: the origin may have acted before the connection broke.
    attempts: how often it is sent at most, whatever the method, if its body is no iterator.
    Raises OriginTimeout, OriginFailed, OriginForbidden.
    """
    attempts = attempts or (ATTEMPTS if request.method in SAFE_METHODS else 1)
    async with connections.in_use(), contextlib.AsyncExitStack() as stack:
        for attempt in range(1, attempts + 1):
            is_last = attempt == attempts
            try:
                response = await _send(connections, request)
            except OriginFailed:
                if is_last:
                    raise
            else:
                if is_last or response.status not in try_again:
                    break
                await connections.close(response)
            await asyncio.sleep(PAUSE_S)
        stack.push_async_callback(connections.close, response)
        pairs = pairs_of(response.headers)
        yield Reply(response.status, pairs, _body(response), lambda: _is_complete(response, pairs))


async def _send(connections: OriginConnections, request: Request) -> httpcore.Response:
    given = {name.lower() for name, _ in request.headers}
    common = (pair for pair in COMMON if pair[0] not in given)
    headers = [(name.encode(), value.encode()) for name, value in (*common, *request.headers)]
    sent = httpcore.Request(
        request.method,
        _url(request.url),
        headers=headers,
        content=request.body,
    )
    with _named():
        if request.body:
            return await connections.send(sent)
        try:
            async with asyncio.timeout(connections.head_timeout_s):
                return await connections.send(sent)
        except TimeoutError as exc:
            raise OriginTimeout from exc


def _url(url: str) -> httpcore.URL:
    """Return the URL with its target unchanged; httpcore's own parser drops what follows a ';'."""
    parts = urlsplit(url)
    target = "/" + url.partition("://")[2].partition("/")[2]
    return httpcore.URL(
        scheme=parts.scheme.encode(),
        host=(parts.hostname or "").encode(),
        port=parts.port,
        target=target.encode(),
    )


async def _body(response: httpcore.Response) -> AsyncIterator[bytes]:
    with _named():
        async for piece in response.aiter_stream():
            yield piece


def _is_complete(response: httpcore.Response, pairs: Pairs) -> bool:
    """True if the end of a body cannot be a broken connection's (RFC 9112 §8).

    A body that ends with its connection is complete if HTTP/1.1 announced that (Connection: close)
    and the connection was closed properly: over TLS with its closing message. A process that
    crashes closes its connections as well, so others are not taken for complete.
    """
    fields = dict(pairs)
    if not FRAMED.isdisjoint(fields) or response.status in BODYLESS:
        return True
    options = {option.strip().lower() for option in fields.get("connection", "").split(",")}
    if response.extensions["http_version"] != b"HTTP/1.1" or "close" not in options:
        return False
    secured = response.extensions["network_stream"].get_extra_info("ssl_object")
    try:
        return secured is None or secured.read(1) == b""
    except ssl.SSLError:
        return False


@contextlib.contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except httpcore.TimeoutException as exc:
        raise OriginTimeout from exc
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol) as exc:
        raise OriginFailed(_sentence(exc)) from exc


def _sentence(exc: Exception) -> str:
    if isinstance(exc, httpcore.ConnectError):
        return "The origin cannot be reached."
    if isinstance(exc, httpcore.ProtocolError):
        return "The origin's answer broke off or is not HTTP."
    return "The connection to the origin broke."
