"""The HTTP client of brains and workers, for origins, stores and each other.

Connections are kept and shared. Environment variables for proxies mean nothing here.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from edgecache.http.addresses import is_public, parse_address
from edgecache.http.outgoing import (
    LENGTH_DIGITS,
    NEVER,
    HeadCheck,
    OutgoingConnection,
    RequestFailed,
    ResponseHead,
    Stale,
    TakeInterim,
)
from edgecache.runtime.fair_shares import ShareKey, Shares

SWEEP_S: Final = 0.25
IDLE_LIMIT: Final = 128
IDLE_S: Final = 20.0
RUNNING_LIMIT: Final = 1024
ALL: Final[ShareKey] = ("all",)
NO_CONTENT: Final = 204
BODYLESS: Final = frozenset(("GET", "DELETE"))


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is. is_guarded: connect to public addresses only.

    ca: a PEM file; its authorities alone are trusted.
    owner: the organization that connects; organizations share no connections.
    """

    endpoint: str
    is_guarded: bool = False
    ca: Path | None = None
    owner: int = 0


# Returns the addresses to connect to, in this order. Raises RequestFailed, OSError, or an error of
# its own, which the caller gets.
Resolve = Callable[[ServerAddress, str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class ShortResponse:
    """A short response of any status."""

    status: int
    body: bytes


class ConnectionShareExhausted(RequestFailed):
    """The caller's share of the connections is in use: no server has failed."""

    def __init__(self) -> None:
        super().__init__("too_many_connections")


class HttpClient:
    """The connections of one process.

    stall_s: a connection without a byte of a response for this time is closed.
    local: this machine's address for connections; '' leaves it to the system.
    running: permits for requests until their responses are read; it refuses with
        ConnectionShareExhausted. None where those who ask are limited.
    share_key: returns the share key of a request.
    resolve: looks up a server's name, and refuses forbidden addresses.
    trust: the authorities that are trusted, where a server has none of its own.
    idle_limit: connections to a server that are kept.

    Idle connections are closed when their room is needed.
    """

    def __init__(
        self,
        *,
        connect_timeout_s: float,
        stall_s: float,
        local: str = "",
        running: Shares | None = None,
        share_key: Callable[[], ShareKey] = lambda: ALL,
        resolve: Resolve | None = None,
        trust: ssl.SSLContext | None = None,
        idle_limit: int = IDLE_LIMIT,
    ) -> None:
        self._running = running
        self._limit = RUNNING_LIMIT if running is None else running.limit
        self._share_key = share_key
        self._local = (local, 0) if local else None
        self._connect_timeout_s = connect_timeout_s
        self._stall_s = stall_s
        self._resolve = resolve or _resolve
        self._trust = trust
        self._idle_limit = idle_limit
        self._idle: dict[ServerAddress, list[OutgoingConnection]] = {}
        self._all: set[OutgoingConnection] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def stop(self) -> None:
        """Close all connections; a later request opens new ones."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in list(self._all):
            connection.give_up("stopped")
        self._all.clear()
        self._idle.clear()

    async def request(
        self,
        address: ServerAddress,
        request: bytes,
        check: HeadCheck,
        *,
        body: AsyncIterator[bytes] | None = None,
        waits_for_all: bool = False,
        connect_timeout_s: float | None = None,
        stall_s: float | None = None,
        has_no_timeout: bool = False,
        is_repeatable: bool = True,
        take_interim: TakeInterim | None = None,
    ) -> OutgoingConnection:
        """Send a request; return when the response's head has arrived.

        body: what follows; an early response, such as an error, ends it.
        waits_for_all: wait for the response's body, too, which is small.
        connect_timeout_s: if different from the client's.
        stall_s: while the body is sent, and until the response; if different from the client's.
        has_no_timeout: wait for a permit without a limit.
        is_repeatable: send it again if a kept connection turns out to be closed; with a body it
            goes on a new one.
        take_interim: called with each interim response, but 100 and 101.

        The caller must ``release`` the connection. Raises RequestFailed.
        """
        share_key = self._share_key()
        if self._running is not None:
            await self._running.take(share_key, has_no_timeout=has_no_timeout)
        send = partial(
            OutgoingConnection.send,
            request=request,
            check=check,
            waits_for_all=waits_for_all,
            take_interim=take_interim,
        )
        try:
            connection = await self._answering(
                address,
                send,
                body,
                connect_s=connect_timeout_s or self._connect_timeout_s,
                wait_s=self._stall_s if stall_s is None else stall_s,
                is_repeatable=is_repeatable,
            )
        except BaseException:
            self._give_back(share_key)
            raise
        connection.share_key = share_key
        return connection

    async def _answering(
        self,
        address: ServerAddress,
        send: Callable[[OutgoingConnection], None],
        body: AsyncIterator[bytes] | None,
        *,
        connect_s: float,
        wait_s: float,
        is_repeatable: bool,
    ) -> OutgoingConnection:
        """Return a connection, kept or new, on which the response's head has arrived."""
        goes_on_new = body is not None and is_repeatable
        connection = await (self._connect if goes_on_new else self._connection)(address, connect_s)
        try:
            send(connection)
            try:
                if body is not None:
                    async for piece in body:
                        if not await connection.send_piece(piece, wait_s):
                            break
                await connection.answered(wait_s)
            except Stale:
                if not is_repeatable:
                    raise RequestFailed("closed") from None
                self._drop(connection)
                connection = await self._connect(address, connect_s)
                send(connection)
                await connection.answered(wait_s)
        except BaseException:
            self._drop(connection)
            raise
        return connection

    async def fetch(
        self,
        address: ServerAddress,
        request: bytes,
        *,
        limit_bytes: int,
        timeout_s: float,
        body: AsyncIterator[bytes] | None = None,
    ) -> ShortResponse:
        """Return a response of any status with at most limit_bytes. Raises RequestFailed."""
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self.request(
                    address,
                    request,
                    _at_most(limit_bytes),
                    body=body,
                    waits_for_all=True,
                    stall_s=timeout_s,
                )
        except TimeoutError as exc:
            raise RequestFailed("too_slow") from exc
        response = ShortResponse(connection.status, connection.whole_body())
        self.release(address, connection)
        return response

    def release(self, address: ServerAddress, connection: OutgoingConnection) -> None:
        """Keep a connection for the next request if its response was read, otherwise close it."""
        if connection.share_key is not None:
            self._give_back(connection.share_key)
            connection.share_key = None
        if connection.is_spent:
            idle = self._idle.get(address)
            if idle is None:
                idle = self._idle[address] = []
            if len(idle) < self._idle_limit:
                connection.deadline = NEVER
                connection.idle_since = asyncio.get_running_loop().time()
                idle.append(connection)
                return
        self._drop(connection)

    def _give_back(self, share_key: ShareKey) -> None:
        if self._running is not None:
            self._running.give_back(share_key)

    async def _connection(self, address: ServerAddress, timeout_s: float) -> OutgoingConnection:
        idle = self._idle.get(address)
        while idle:
            connection = idle.pop()
            if connection.is_silent():
                connection.is_new = False
                return connection
            self._drop(connection)
        return await self._connect(address, timeout_s)

    async def _connect(self, address: ServerAddress, timeout_s: float) -> OutgoingConnection:
        if len(self._all) >= self._limit:
            self._close_idle()
        loop = asyncio.get_running_loop()
        parts = urlsplit(address.endpoint)
        host = parts.hostname or ""
        is_secure = parts.scheme == "https"
        port = parts.port or (443 if is_secure else 80)
        context = None
        if is_secure:
            context = _context(address.ca) if address.ca or not self._trust else self._trust
        failure: Exception | None = None
        try:
            async with asyncio.timeout(timeout_s):
                addresses = await self._resolve(address, host, port)
        except (OSError, TimeoutError) as exc:
            raise RequestFailed("unreachable") from exc
        for each in addresses:
            try:
                async with asyncio.timeout(timeout_s):
                    _, connection = await loop.create_connection(
                        lambda: OutgoingConnection(loop, stall_s=self._stall_s),
                        each,
                        port,
                        ssl=context,
                        server_hostname=host if is_secure else None,
                        local_addr=self._local,
                    )
            except (OSError, TimeoutError, ValueError) as exc:
                failure = exc
                continue
            self._all.add(connection)
            if self._timer is None:
                self._timer = loop.call_later(SWEEP_S, self._sweep)
            return connection
        raise RequestFailed("unreachable") from failure

    def _close_idle(self) -> None:
        """Close one connection that waits for a request, to the server with the most of these."""
        idle = max(self._idle.values(), key=len, default=None)
        if idle:
            self._drop(idle.pop(0))

    def _drop(self, connection: OutgoingConnection) -> None:
        connection.give_up("dropped")
        self._all.discard(connection)

    def _sweep(self) -> None:
        """Close connections that stall or idle, as long as there are connections."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [each for each in self._all if each.deadline < now]:
            connection.give_up("stalled")
        for address, idle in list(self._idle.items()):
            fresh = [each for each in idle if each.idle_since > now - IDLE_S and each.is_open]
            for connection in set(idle) - set(fresh):
                self._drop(connection)
            if fresh:
                self._idle[address] = fresh
            else:
                del self._idle[address]
        self._timer = loop.call_later(SWEEP_S, self._sweep) if self._all else None


def head_bytes(method: str, target: str, fields: Iterable[tuple[str, str]]) -> bytes:
    """Return a request's head. Raises RequestFailed if a part of it has a line break or a NUL."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    text = "\r\n".join(lines)
    breaks = len(lines) - 1
    if text.count("\n") != breaks or text.count("\r") != breaks or "\0" in text or " " in target:
        raise RequestFailed("malformed_request")
    return f"{text}\r\n\r\n".encode("utf-8", "surrogateescape")


def request_head(
    address: ServerAddress, method: str, target: str, fields: Mapping[str, str], *, length: int = 0
) -> bytes:
    """Return the bytes of a request's head. length: of the body; 0 for none."""
    pairs = [("host", _host_of(address.endpoint)), *fields.items()]
    if length or method not in BODYLESS:
        pairs.append(("content-length", str(length)))
    return head_bytes(method, target, pairs)


@lru_cache(maxsize=4096)
def _host_of(endpoint: str) -> str:
    return urlsplit(endpoint).netloc


def _at_most(limit_bytes: int) -> HeadCheck:
    """Return a check that accepts responses of any status up to a length."""

    def check(head: ResponseHead) -> int:
        if head.status == NO_CONTENT:
            return 0
        text = head.field(b"content-length")
        if head.field(b"transfer-encoding") or not text.isdigit() or len(text) > LENGTH_DIGITS:
            raise RequestFailed("no_length", status=head.status)
        if int(text) > limit_bytes:
            raise RequestFailed("too_long", status=head.status)
        return int(text)

    return check


async def _resolve(server: ServerAddress, host: str, port: int) -> Sequence[str]:
    """Return a name's addresses. Raises RequestFailed for a forbidden one, OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    texts = [str(row[4][0]) for row in found]
    addresses = [parse_address(text) for text in texts]
    if server.is_guarded and not all(address and is_public(address) for address in addresses):
        raise RequestFailed("address_forbidden")
    return texts


# Made once: reading the machine's authorities takes tens of milliseconds, which block the loop.
_machine_context: Final = cache(ssl.create_default_context)


def _context(ca: Path | None) -> ssl.SSLContext:
    # The file is read for each connection, because it may have been replaced.
    return ssl.create_default_context(cafile=str(ca)) if ca else _machine_context()
