"""Connections to origins over HTTP, each to an address that the guard has checked."""

import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final

import httpcore

from edgecache.brain.origins.egress.bounded_heads import BoundedHeads
from edgecache.brain.origins.egress.guard import Resolve

MAX_IDLE_CONNECTIONS: Final = 16
KEPT_S: Final = 15.0
# The fields that say where a body ends; a response that has both has one end too many.
FRAMINGS: Final = frozenset({b"content-length", b"transfer-encoding"})


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects for httpcore. TLS still checks the certificate against the name."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._dialler = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that answers.

        Raises OriginForbidden, OriginFailed, OriginTimeout, and httpcore's errors.
        """
        failure: httpcore.ConnectError | httpcore.ConnectTimeout = httpcore.ConnectError()
        for address in await self._resolve(host, port):
            try:
                stream = await self._dialler.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
                return BoundedHeads(stream)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                failure = exc
        raise failure

    async def sleep(self, seconds: float) -> None:
        """Wait between httpcore's attempts."""
        await self._dialler.sleep(seconds)


class ConnectionPool:
    """Connections for one origin and those that it redirects to, kept for a while after use.

    It has no limit, because callers limit an origin's concurrent requests. The work of httpcore's
    own pool for each request grows with its connections: with 3,000 that wait for a slow origin it
    blocked the brain.
    """

    def __init__(self, resolve: Resolve, trust: ssl.SSLContext) -> None:
        self._backend = GuardedBackend(resolve)
        self._trust = trust
        # The most recently used one is at the end.
        self._idle: list[tuple[httpcore.Origin, httpcore.AsyncHTTPConnection]] = []
        self._is_closed = False

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request on its own connection; the caller closes the response.

        Raises OriginForbidden, OriginFailed, OriginTimeout, and httpcore's errors.
        """
        origin = request.url.origin
        connection = None
        try:
            connection = await self._kept(origin) or self._new(origin)
            response = await connection.handle_async_request(request)
        except BaseException:
            if connection is not None:
                await connection.aclose()
            raise
        headers = response.headers
        is_clear = not {name.lower() for name, _ in headers} >= FRAMINGS
        if not is_clear:
            # RFC 9112 §6.3: the chunks are right, and the sender may mean another end than we.
            headers = [pair for pair in headers if pair[0].lower() != b"content-length"]
        end = partial(self._end, origin, connection, may_be_kept=is_clear)
        return httpcore.Response(
            response.status,
            headers=headers,
            content=_Body(response, end),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connections; one that is in use is closed after it."""
        self._is_closed = True
        idle, self._idle = self._idle, []
        for _, connection in idle:
            await connection.aclose()

    async def _kept(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection | None:
        """Return a connection to an origin that is still open, and on which nothing came since."""
        for index in reversed(range(len(self._idle))):
            if self._idle[index][0] == origin:
                _, connection = self._idle.pop(index)
                if _is_free(connection):
                    return connection
                await connection.aclose()
                return await self._kept(origin)
        return None

    def _new(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        return httpcore.AsyncHTTPConnection(
            origin,
            ssl_context=self._trust,
            keepalive_expiry=KEPT_S,
            network_backend=self._backend,
        )

    async def _end(
        self,
        origin: httpcore.Origin,
        connection: httpcore.AsyncHTTPConnection,
        *,
        may_be_kept: bool,
    ) -> None:
        """Keep a connection if its response was read and nothing follows it, otherwise close it."""
        if may_be_kept and _is_free(connection) and not self._is_closed:
            self._idle.append((origin, connection))
        else:
            await connection.aclose()
        while self._idle and (
            len(self._idle) > MAX_IDLE_CONNECTIONS or self._idle[0][1].has_expired()
        ):
            await self._idle.pop(0)[1].aclose()


def _is_free(connection: httpcore.AsyncHTTPConnection) -> bool:
    """True if a response was read to its end, and nothing came after it (RFC 9112 §6.3).

    Such bytes would become the response to the next request. httpcore looks for them in the stream
    (``BoundedHeads``), but not among those that its parser has already.
    """
    http11 = connection._connection  # noqa: SLF001 - httpcore does not say what is left over
    if not isinstance(http11, httpcore.AsyncHTTP11Connection) or not connection.is_idle():
        return False
    left_over, _ = http11._h11_state.trailing_data  # noqa: SLF001 - as above
    return not left_over and not connection.has_expired()


class _Body:
    """The body of a response, which ends the use of its connection. on_end: called once."""

    def __init__(
        self, response: httpcore.Response, on_end: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._response = response
        self._on_end = on_end
        self._is_over = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_stream():
            yield piece

    async def aclose(self) -> None:
        """Close the response. Once is enough, twice is harmless."""
        if self._is_over:
            return
        self._is_over = True
        try:
            await self._response.aclose()
        finally:
            await self._on_end()
