"""Kept-alive connections to workers: one GET at a time, read piece by piece, with back-pressure.

Workers may be foreign machines: a response other than exactly the requested bytes is a failure.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from edgecache.brain.delivery.delivery import Span
from edgecache.brain.nodes.client import Address, NodeFailed, resolve
from edgecache.brain.origins.egress.trust import trusting
from edgecache.protocol.names import TICKET_HEADER, object_path

CONNECT_TIMEOUT_S: Final = 2.0
# After so long without a byte the next source is asked.
STALL_S: Final = 4.0
SWEEP_S: Final = 0.25
IDLE_LIMIT: Final = 128
IDLE_S: Final = 20.0
RUNNING_LIMIT: Final = 1024
HEAD_LIMIT_BYTES: Final = 16_384
# Limit of what is read ahead of the client.
AHEAD_BYTES: Final = 2**18
NEVER: Final = float("inf")
HEAD_END: Final = b"\r\n\r\n"


class Stale(Exception):
    """A kept connection was closed by the worker before the request."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The bytes that a GET requests. size: of the whole blob."""

    wanted: Span
    size: int

    @property
    def is_whole(self) -> bool:
        """True if it is the whole blob."""
        return self.wanted.start == 0 and self.wanted.length == self.size


class WorkerConnection(asyncio.Protocol):
    """One connection; one GET at a time. ``deadline``: the loop's time at which it is given up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.deadline = NEVER
        self.idle_since = 0.0
        self.is_open = True
        self.is_new = True
        self._loop = loop
        self._transport: asyncio.Transport
        self._asked: Asked | None = None
        self._head = b""
        self._left = 0
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._is_paused = False
        self._failure: NodeFailed | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._waits_for_all = False

    # --- asyncio's side -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = transport  # type: ignore[assignment]  # create_connection gives one of these

    def data_received(self, data: bytes) -> None:
        """Parse the head, then collect the body."""
        if self._asked is not None:
            self._head = data = self._head + data
            end = data.find(HEAD_END)
            if end < 0:
                if len(data) > HEAD_LIMIT_BYTES:
                    self.give_up("head_too_long")
                return
            try:
                self._left = _length(data[:end], self._asked)
            except NodeFailed as failure:
                self._give_up(failure)
                return
            self._asked, self._head = None, b""
            data = data[end + len(HEAD_END) :]
        if data:
            self._keep(data)
        if not self._waits_for_all or self._left == 0:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake the reader."""
        self._give_up(self._failure or NodeFailed("closed"))

    # --- the reader's side --------------------------------------------------------------------

    async def ask(self, request: bytes, asked: Asked, *, waits_for_all: bool) -> None:
        """Send a GET and wait for the response's head, or for all of a small response.

        Raises NodeFailed: another status (which it has), another length, a timeout. Raises Stale.
        """
        self._asked = asked
        self._waits_for_all = waits_for_all
        self.deadline = self._loop.time() + STALL_S
        self._transport.write(request)
        while self._lacks_something():
            if self._failure is not None:
                if not self.is_new and self._asked is not None and not self._head:
                    raise Stale
                raise self._failure
            await self._wait()

    def _lacks_something(self) -> bool:
        return self._asked is not None or (self._waits_for_all and self._left > 0)

    async def piece(self) -> bytes:
        """Return the next bytes; empty at the end.

        Raises NodeFailed if the body ends too early, stalls or is too long.
        """
        while not self._pieces:
            if self._left == 0:
                self.deadline = NEVER
                return b""
            if self._failure is not None:
                raise self._failure
            self.deadline = self._loop.time() + STALL_S
            await self._wait()
        # A slow client is not a stall of the worker.
        self.deadline = NEVER
        data = self._pieces.popleft()
        self._held -= len(data)
        if self._is_paused and self._held <= AHEAD_BYTES // 2:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def all_of_it(self) -> bytes:
        """Return the body of a response that was awaited completely."""
        pieces = list(self._pieces)
        self._pieces.clear()
        self._held = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @property
    def is_spent(self) -> bool:
        """True if the response was read to its end, so that the connection can be used again."""
        return self.is_open and self._asked is None and self._left == 0 and not self._pieces

    def give_up(self, reason: str) -> None:
        """Break the connection."""
        self._give_up(NodeFailed(reason))

    def _give_up(self, failure: NodeFailed) -> None:
        if self.is_open:
            self.is_open = False
            self._failure = failure
            self._transport.abort()
        self._wake()

    def _keep(self, data: bytes) -> None:
        if len(data) > self._left:
            self._pieces.clear()
            self.give_up("too_long")
            return
        self._left -= len(data)
        self._pieces.append(data)
        self._held += len(data)
        if self._held > AHEAD_BYTES and not self._is_paused and not self._waits_for_all:
            self._is_paused = True
            self._transport.pause_reading()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class WorkerPool:
    """The brain's connections to all workers."""

    def __init__(self) -> None:
        self._idle: dict[Address, list[WorkerConnection]] = {}
        self._all: set[WorkerConnection] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to close connections that stall or idle."""
        self._task = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        """Close them all."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for connection in list(self._all):
            connection.give_up("stopped")
        self._all.clear()
        self._idle.clear()

    async def ask(
        self,
        address: Address,
        sha256: bytes,
        asked: Asked,
        *,
        ticket: str,
        waits_for_all: bool = False,
    ) -> WorkerConnection:
        """Request bytes of a blob; return the connection when the response's head has come.

        waits_for_all: wait for the body, too, which is small. The caller must ``release`` the
        connection. Raises NodeFailed.
        """
        request = _request(address, sha256, asked, ticket)
        connection = await self._connection(address)
        try:
            try:
                await connection.ask(request, asked, waits_for_all=waits_for_all)
            except Stale:
                self._drop(connection)
                connection = await self._connect(address)
                await connection.ask(request, asked, waits_for_all=waits_for_all)
        except BaseException:
            self._drop(connection)
            raise
        return connection

    def release(self, address: Address, connection: WorkerConnection) -> None:
        """Keep a connection for the next request if its response was read, else close it."""
        if connection.is_spent:
            idle = self._idle.get(address)
            if idle is None:
                idle = self._idle[address] = []
            if len(idle) < IDLE_LIMIT:
                connection.deadline = NEVER
                connection.idle_since = asyncio.get_running_loop().time()
                idle.append(connection)
                return
        self._drop(connection)

    async def _connection(self, address: Address) -> WorkerConnection:
        idle = self._idle.get(address)
        while idle:
            connection = idle.pop()
            if connection.is_open:
                connection.is_new = False
                return connection
            self._all.discard(connection)
        return await self._connect(address)

    async def _connect(self, address: Address) -> WorkerConnection:
        if len(self._all) >= RUNNING_LIMIT:
            raise NodeFailed("too_many_connections")
        loop = asyncio.get_running_loop()
        parts = urlsplit(address.endpoint)
        context = trusting() if parts.scheme == "https" else None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                target = await resolve(
                    parts.hostname or "", parts.port or 0, is_guarded=address.is_guarded
                )
                _, connection = await loop.create_connection(
                    lambda: WorkerConnection(loop),
                    target,
                    parts.port or 0,
                    ssl=context,
                    server_hostname=parts.hostname if context else None,
                )
        except (OSError, TimeoutError) as exc:
            raise NodeFailed("unreachable") from exc
        self._all.add(connection)
        return connection

    def _drop(self, connection: WorkerConnection) -> None:
        connection.give_up("dropped")
        self._all.discard(connection)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
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


def _request(address: Address, sha256: bytes, asked: Asked, ticket: str) -> bytes:
    wanted = asked.wanted
    last = wanted.start + wanted.length - 1
    part = "" if asked.is_whole else f"range: bytes={wanted.start}-{last}\r\n"
    return (
        f"GET {object_path(sha256)} HTTP/1.1\r\nhost: {_host_of(address.endpoint)}\r\n"
        f"{TICKET_HEADER}: {ticket}\r\n{part}\r\n"
    ).encode("ascii")


@lru_cache(maxsize=4096)
def _host_of(endpoint: str) -> str:
    return urlsplit(endpoint).netloc


def _length(head: bytes, asked: Asked) -> int:
    """Parse a head; return the body's length, which must be the requested one."""
    wanted, is_whole, size = asked.wanted, asked.is_whole, asked.size
    status_line, *lines = head.split(b"\r\n")
    words = status_line.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.1") or not words[1].isdigit():
        raise NodeFailed("no_answer")
    status = int(words[1])
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        if fields.setdefault(name.lower(), value.strip()) != value.strip():
            raise NodeFailed("ambiguous_head", status=status)
    if status != (200 if is_whole else 206):
        raise NodeFailed("refused", status=status)
    if b"transfer-encoding" in fields or fields.get(b"content-length") != b"%d" % wanted.length:
        raise NodeFailed("wrong_length", status=status)
    span = b"bytes %d-%d/%d" % (wanted.start, wanted.start + wanted.length - 1, size)
    if not is_whole and fields.get(b"content-range") != span:
        raise NodeFailed("wrong_range", status=status)
    return wanted.length
