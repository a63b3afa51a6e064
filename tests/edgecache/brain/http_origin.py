"""An HTTP origin; a test can change its behaviour."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from edgecache.brain.core.background import BackgroundTasks

StreamHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class StreamServer:
    """Serves each connection with a handler, and closes it after, even one that comes at the stop.

    ``asyncio.start_server`` runs its own task for each connection, and one that is cancelled before
    it began never reaches the ``finally`` that would have closed it. limit: of a line, in bytes.
    """

    def __init__(
        self, handler: StreamHandler, *, limit: int = 2**16, tls: ssl.SSLContext | None = None
    ) -> None:
        self._handler = handler
        self._limit = limit
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks = BackgroundTasks()
        self._is_stopped = False

    @property
    def port(self) -> int:
        """Return the port. Raises RuntimeError before ``start``."""
        if self._server is None:
            raise RuntimeError("the server is not open")
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, host: str) -> None:
        """Listen on a free port. Raises OSError."""
        self._server = await asyncio.start_server(
            self._accept, host, 0, limit=self._limit, ssl=self._tls
        )

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        self._is_stopped = True
        if self._server is not None:
            self._server.close()
        await self._tasks.stop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_stopped:
            writer.close()
        else:
            task = self._tasks.add(self._handler(reader, writer))
            task.add_done_callback(lambda _: writer.close())


@dataclass
class Asked:
    """A received request. path: as it was sent."""

    method: str
    target: str
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    body: bytes = b""

    @property
    def path(self) -> str:
        """Return the path, decoded."""
        return unquote(self.target.partition("?")[0])

    def head(self, status: str, *fields: str) -> None:
        """Send the head of a response."""
        lines = [f"HTTP/1.1 {status}", *fields, "", ""]
        self.writer.write("\r\n".join(lines).encode())

    async def say(self, data: bytes) -> None:
        """Send a part of the body."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, data: bytes, *fields: str, status: str = "200 OK") -> None:
        """Send a complete response."""
        self.head(status, f"Content-Length: {len(data)}", *fields)
        await self.say(b"" if self.method == "HEAD" else data)


Handler = Callable[[Asked], Awaitable[None]]


@dataclass
class HttpOrigin:
    """A server of ``objects`` by path, or with ``handler`` if it is set.

    connections: the open ones, even after a response with ``Connection: close``.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    handler: Handler | None = None
    asked: list[Asked] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    connections: int = 0

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        self._server = StreamServer(self._serve, tls=self.tls)
        await self._server.start(self.host)
        self.port = self._server.port
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the server and its connections."""
        await self._server.stop()

    @property
    def url(self) -> str:
        """Return its base URL."""
        return f"http{'s' if self.tls else ''}://{self.host}:{self.port}"

    def count(self, path: str, method: str = "GET") -> int:
        """Count the requests for a path."""
        return sum(row.path == path and row.method == method for row in self.asked)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    asked = await _read(reader, writer)
                    self.asked.append(asked)
                    await (self.handler or self._answer)(asked)
        finally:
            self.connections -= 1

    async def _answer(self, asked: Asked) -> None:
        data = self.objects.get(asked.path)
        if data is None:
            await asked.answer(b"no", status="404 Not Found")
        else:
            await asked.answer(data, 'ETag: "v1"', "Content-Type: text/plain")


class Gate:
    """Holds an origin's response until the test opens it."""

    def __init__(self) -> None:
        self.came = asyncio.Event()
        self.opened = asyncio.Event()

    async def wait(self) -> None:
        """Signal that the request has arrived, and wait."""
        self.came.set()
        await self.opened.wait()

    async def between_halves(self, asked: Asked) -> None:
        """Send five bytes before the gate and five after it."""
        asked.head("200 OK", "Content-Length: 10")
        await asked.say(b"first")
        await self.wait()
        await asked.say(b"later")


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.split("\r\n")
    method, target, _ = line.split(" ")
    headers = {}
    for entry in fields:
        name, colon, value = entry.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, reader, writer, body)
