"""A server on loopback, and clients that speak to it byte by byte."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from edgecache.http.exchange import Exchange
from edgecache.http.scope import HttpScope
from edgecache.http.server.http_server import HttpServer
from tests.ports import free_port

App = Callable[[HttpScope, Exchange], Awaitable[None] | None]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(app: App, **options: Any) -> AsyncIterator[int]:
    """Serve an application; yield the port."""
    port = free_port()
    server = HttpServer(app, address="127.0.0.1", port=port, **options)
    await server.start()
    task = asyncio.create_task(server.serve())
    try:
        yield port
    finally:
        server.stop()
        await task


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Streams]:
    """Return a connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**16)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(port: int, request: bytes) -> bytes:
    """Send bytes; return everything until the server closes the connection."""
    async with connected(port) as (reader, writer):
        writer.write(request)
        return await asyncio.wait_for(reader.read(), 10)


async def echo(scope: HttpScope, exchange: Exchange) -> None:
    """Respond with the parsed request."""
    body = await exchange()
    said = f"{scope.method} {scope.raw_path} {scope.query_string} {body!r}"
    exchange.response_str(200, [("x-path", scope.path.encode().hex())], said)


def head(request: str, *lines: str, body: str = "") -> bytes:
    """Return the bytes of a request that closes the connection."""
    return "\r\n".join([request, "host: x", "connection: close", *lines, "", body]).encode()


def run(work: Awaitable[Any]) -> Any:
    """Run a coroutine."""

    async def limited() -> Any:
        return await asyncio.wait_for(work, 30)

    return uvloop.run(limited())
