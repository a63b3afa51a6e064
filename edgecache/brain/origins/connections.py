"""Requests to origins over HTTP; every failure becomes an OriginError."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from edgecache.brain.core.errors import OriginError, OriginFailed, OriginTimeout, Overloaded
from edgecache.brain.origins.driver import TakeInterim
from edgecache.brain.origins.headers import Pairs, pairs_of
from edgecache.http.client import HttpClient, ServerAddress, head_bytes
from edgecache.http.headers import Headers
from edgecache.http.outgoing import (
    BODYLESS,
    NEVER,
    OutgoingConnection,
    RequestFailed,
    ResponseHead,
    any_body,
)
from edgecache.protocol.resources import OriginOptions

# Unless an origin has its own.
CONNECT_TIMEOUT_S: Final = 5.0
STALL_TIMEOUT_S: Final = 30.0
# How long a request waits for one of the origin's connections.
PERMIT_WAIT_S: Final = 5.0
BUSY: Final = "All connections that the origin may have are in use."
EVENT_STREAM: Final = "text/event-stream"
# A safe request (RFC 9110 §9.2.1) is repeated once.
SAFE_METHODS: Final = ("GET", "HEAD")
ATTEMPTS: Final = 2
PAUSE_S: Final = 0.2
# A larger body is sent in pieces, as fast as the origin takes them.
PIECE_BYTES: Final = 2**16
# What is left of a response that is not wanted is read up to here, so that its connection is kept.
REST_BYTES: Final = 2**16
REST_S: Final = 0.2
TRY_AGAIN: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
# A mark by which a request loop is recognized (RFC 8586).
LOOP: Final = "cdn-loop"
LOOP_MARK: Final = "zonal"
COMMON: Final = (("user-agent", "zonal"), (LOOP, LOOP_MARK), ("accept-encoding", "identity"))
# By the reason of ``RequestFailed``; the others are an answer that is not HTTP.
CAUSES: Final = {
    "head_too_long": "head-too-long",
    "unclear_end": "length-unclear",
    "malformed_chunk": "chunk-malformed",
    "malformed_request": "request-malformed",
}
FRAMED: Final = frozenset({"content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class OriginConnections:
    """The connections of one organization to an origin, or of the platform to its store.

    options: None for the client's own timeouts. permits: for the origin's requests, None without a
    limit.
    """

    client: HttpClient
    owner: int = 0
    options: OriginOptions | None = None
    permits: asyncio.Semaphore | None = None

    @classmethod
    def of(cls, client: HttpClient, owner: int, options: OriginOptions) -> "OriginConnections":
        """Return the connections to an origin with these options."""
        permits = asyncio.Semaphore(options.connections) if options.connections else None
        return cls(client, owner, options, permits)

    def address(self, url: str) -> ServerAddress:
        """Return where a URL is asked for."""
        parts = urlsplit(url)
        return ServerAddress(f"{parts.scheme}://{parts.netloc}", owner=self.owner)

    @asynccontextmanager
    async def permit(self) -> AsyncIterator[None]:
        """Hold one of the origin's connections. Raises Overloaded."""
        if self.permits is None:
            yield
            return
        try:
            async with asyncio.timeout(PERMIT_WAIT_S):
                await self.permits.acquire()
        except TimeoutError:
            raise Overloaded(BUSY, cause="too-many-connections") from None
        try:
            yield
        finally:
            self.permits.release()


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    url: encoded. body: sent in pieces; its length is in the headers. take_interim: called with
    status and fields of each interim response.
    """

    method: str
    url: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | AsyncIterator[bytes] = b""
    take_interim: TakeInterim | None = None


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
                raise OriginFailed(
                    "The origin's answer is larger than it should be.", cause="answer-too-large"
                )
        return bytes(whole)


@asynccontextmanager
async def exchange(
    connections: OriginConnections,
    request: Request,
    *,
    try_again: frozenset[HTTPStatus] = TRY_AGAIN,
    attempts: int = 0,
) -> AsyncIterator[Reply]:
    """Send a request and yield the reply; its connection is then kept for the next one.

    A safe request is sent again if it fails; try_again: the statuses for which it is, too. Others
    are sent once: the origin may have acted before the connection broke.
    attempts: how often it is sent at most, whatever the method, if its body is no iterator.
    Raises OriginTimeout, OriginFailed, OriginForbidden, Overloaded.
    """
    async with (
        connections.permit(),
        _exchange(connections, request, try_again, attempts) as reply,
    ):
        yield reply


@asynccontextmanager
async def _exchange(
    connections: OriginConnections,
    request: Request,
    try_again: frozenset[HTTPStatus],
    attempts: int,
) -> AsyncIterator[Reply]:
    client, address = connections.client, connections.address(request.url)
    attempts = attempts or (ATTEMPTS if request.method in SAFE_METHODS else 1)
    for attempt in range(1, attempts + 1):
        is_last = attempt == attempts
        try:
            connection = await _send(connections, address, request)
        except OriginFailed:
            if is_last:
                raise
        else:
            if is_last or connection.status not in try_again:
                break
            await _read_rest(connection)
            client.release(address, connection)
        await asyncio.sleep(PAUSE_S)
    try:
        pairs = _pairs(connection.head)
        if connections.options is not None:
            connection.stall_s = _idle_timeout_s(connections.options, pairs)
        is_complete = partial(_is_complete, connection, pairs)
        yield Reply(connection.status, pairs, _body(connection), is_complete)
        await _read_rest(connection)
    except OriginError:
        # A status that is an error; who is cancelled waits for nothing.
        await _read_rest(connection)
        raise
    finally:
        client.release(address, connection)


def is_loop(headers: Headers) -> bool:
    """True if Zonal has sent a request already (RFC 8586): its bucket's origin leads here."""
    if LOOP not in headers:
        return False
    marks = ",".join(headers.get_all(LOOP)).lower().split(",")
    return any(mark.partition(";")[0].strip() == LOOP_MARK for mark in marks)


def _idle_timeout_s(options: OriginOptions, pairs: Pairs) -> float:
    """Return how long a body may pause. Events come when they come."""
    kind = dict(pairs).get("content-type", "").partition(";")[0].strip().lower()
    return NEVER if kind == EVENT_STREAM else options.idle_timeout_s or NEVER


async def _send(
    connections: OriginConnections, address: ServerAddress, request: Request
) -> OutgoingConnection:
    options = connections.options
    given = {name.lower() for name, _ in request.headers}
    fields = [*request.headers, *(pair for pair in COMMON if pair[0] not in given)]
    if request.method not in SAFE_METHODS and "content-length" not in given and not request.body:
        fields.append(("content-length", "0"))
    target = "/" + request.url.partition("://")[2].partition("/")[2]
    is_short = isinstance(request.body, bytes) and len(request.body) <= PIECE_BYTES
    try:
        head = head_bytes(request.method, target, fields)
        return await connections.client.request(
            address,
            head + request.body if isinstance(request.body, bytes) and is_short else head,
            partial(any_body, is_head=request.method == "HEAD"),
            body=None if is_short else _pieces(request.body),
            connect_timeout_s=None if options is None else options.connect_timeout_s,
            stall_s=None if options is None else options.first_byte_timeout_s,
            is_repeatable=False,
            take_interim=partial(_hand_on, request.take_interim) if request.take_interim else None,
        )
    except RequestFailed as failure:
        raise _error(failure) from failure.__cause__ or failure


def _hand_on(take_interim: TakeInterim, head: ResponseHead) -> None:
    take_interim(head.status, pairs_of(head.fields))


async def _pieces(body: bytes | AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if isinstance(body, bytes):
        for start in range(0, len(body), PIECE_BYTES):
            yield body[start : start + PIECE_BYTES]
    else:
        async for piece in body:
            yield piece


async def _body(connection: OutgoingConnection) -> AsyncIterator[bytes]:
    try:
        while piece := await connection.piece():
            yield piece
    except RequestFailed as failure:
        raise _error(failure, in_body=True) from failure


async def _read_rest(connection: OutgoingConnection) -> None:
    """Read what is left of a short response: the connection can then be kept (RFC 9112 §9.3)."""
    left = REST_BYTES
    with contextlib.suppress(RequestFailed, TimeoutError):
        async with asyncio.timeout(REST_S):
            while left > 0 and connection.may_end_within(left):
                piece = await connection.piece()
                if not piece:
                    return
                left -= len(piece)


def _pairs(head: ResponseHead) -> Pairs:
    """Return a response's fields, with one length if it has several equal ones.

    Without one if it is sent in chunks, which count then.
    """
    pairs = pairs_of(head.fields)
    length = dict(pairs).get("content-length", "").partition(",")[0].strip()
    kept = [pair for pair in pairs if pair[0] != "content-length"]
    if length and "transfer-encoding" not in dict(pairs):
        kept.append(("content-length", length))
    return kept


def _is_complete(connection: OutgoingConnection, pairs: Pairs) -> bool:
    """True if the end of a body cannot be a broken connection's (RFC 9112 §8).

    A body that ends with its connection is complete if HTTP/1.1 announced that (Connection: close)
    and the connection was closed properly: over TLS with its closing message. A process that
    crashes closes its connections as well, so others are not taken for complete.
    """
    if not FRAMED.isdisjoint(dict(pairs)) or connection.status in BODYLESS:
        return True
    head = connection.head
    return head.is_http_1_1 and head.announces_close and connection.has_clean_end


def _error(failure: RequestFailed, *, in_body: bool = False) -> OriginError:
    """Return the error with its cause. in_body: the head had come."""
    reason, below = failure.reason, failure.__cause__
    if reason == "stalled":
        return OriginTimeout(cause="idle-timeout" if in_body else "first-byte-timeout")
    if isinstance(below, TimeoutError):
        return OriginTimeout(
            "The connection to the origin was not made in time.", cause="connect-timeout"
        )
    if reason == "unreachable":
        return OriginFailed("The origin cannot be reached.", cause=_cause_below(below))
    if reason == "too_many_connections":
        return OriginFailed("Too many requests wait for origins.", cause="too-many-connections")
    if reason == "closed":
        cause = "body-cut-short" if in_body else "closed-early"
    else:
        cause = CAUSES.get(reason, "answer-malformed")
    return OriginFailed("The origin's answer broke off or is not HTTP.", cause=cause)


def _cause_below(below: BaseException | None) -> str:
    """Return why a connection could not be made."""
    match below:
        case ssl.SSLCertVerificationError():
            return "certificate-invalid"
        case ssl.SSLError():
            return "tls-failed"
        case ConnectionRefusedError():
            return "connection-refused"
        case ConnectionResetError():
            return "connection-reset"
    return "unreachable"
