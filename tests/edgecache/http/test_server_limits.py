"""The HTTP server's limits: slow clients, idle connections, many of one address."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from edgecache.http import server as servers
from edgecache.http.exchange import BodyTimeout, Exchange
from edgecache.http.limits import Limits
from edgecache.http.scope import Scope
from tests.edgecache.http.support import ask, connected, echo, run, serving


def test_slow_request_heads_and_bodies_are_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(head_timeout_s=0.05, send_timeout_s=0.05)
    monkeypatch.setattr(servers, "SWEEP_S", 0.02)

    async def read(_scope: Scope, exchange: Exchange) -> None:
        try:
            await exchange()
        except BodyTimeout:
            exchange.response_str(400, [], "too slow")

    async def main() -> None:
        async with serving(read, limits=limits) as port:
            assert (await ask(port, b"GET / HT")).startswith(b"HTTP/1.1 408")
            assert await ask(port, b"") == b""
            late = await ask(port, b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc")
            assert late.startswith(b"HTTP/1.1 400")
            assert late.endswith(b"too slow")

    run(main())


def test_a_client_that_does_not_read_its_response_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = Limits(take_timeout_s=0.05)
    monkeypatch.setattr(servers, "SWEEP_S", 0.02)
    gone = asyncio.Event()

    async def endless(_scope: Scope, exchange: Exchange) -> None:
        stream = exchange.response_stream(200, [("content-length", str(2**30))])
        try:
            while True:
                await stream.send_bytes(bytes(2**18))
        finally:
            gone.set()

    async def main() -> None:
        async with serving(endless, limits=limits) as port, connected(port) as (_, writer):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await asyncio.wait_for(gone.wait(), 10)

    run(main())


def test_idle_connections_are_closed_when_there_are_too_many() -> None:
    async def main() -> None:
        async with (
            serving(echo, limits=Limits(connections=2)) as port,
            connected(port) as (idle, writer),
            connected(port) as (busy, second),
        ):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await idle.readuntil(b"b''")
            second.write(b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n")
            await asyncio.sleep(0.01)
            async with connected(port) as (third, last):
                last.write(b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n")
                assert await asyncio.wait_for(idle.read(), 10) == b""
                # Both connections are busy now: the next one is closed.
                assert (await ask(port, b"")).startswith(b"HTTP/1.1 503")
                last.write(b"abc")
                second.write(b"abc")
                assert await third.readuntil(b"b'abc'")
                assert await busy.readuntil(b"b'abc'")

    run(main())


def test_one_address_leaves_connections_to_others() -> None:
    @contextlib.asynccontextmanager
    async def begun(port: int, address: str) -> AsyncIterator[asyncio.StreamReader]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        with contextlib.closing(writer):
            writer.write(b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n")
            writer.write(b"1" if address == "127.0.0.3" else b"")
            yield reader

    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            port = await stack.enter_async_context(serving(echo, limits=Limits(connections=8)))
            greedy = [await stack.enter_async_context(begun(port, "127.0.0.2")) for _ in range(8)]
            refused = [await each.readline() for each in greedy[4:]]
            assert {line[:12] for line in refused} == {b"HTTP/1.1 503"}
            # Idle ones of the same address are closed for new ones.
            for _ in range(3):
                reader = await stack.enter_async_context(begun(port, "127.0.0.3"))
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")

    run(main())
