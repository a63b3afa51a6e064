"""The HTTP server's limits: slow clients, idle connections, many of one address."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator

import pytest

from edgecache.http.exchange import BodyTimeout, Exchange
from edgecache.http.scope import HttpScope
from edgecache.http.server import http_server as servers
from edgecache.http.server.limits import ServerLimits
from tests.edgecache.http.support import ask, connected, echo, head, run, serving


def test_slow_request_heads_and_bodies_are_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ServerLimits(head_timeout_s=0.05, send_timeout_s=0.05)
    monkeypatch.setattr(servers, "SWEEP_S", 0.02)

    async def read(_scope: HttpScope, exchange: Exchange) -> None:
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
    limits = ServerLimits(take_timeout_s=0.05)
    monkeypatch.setattr(servers, "SWEEP_S", 0.02)
    gone = asyncio.Event()

    async def endless(_scope: HttpScope, exchange: Exchange) -> None:
        exchange.response_stream(200, [("content-length", str(2**30))])
        try:
            while True:
                await exchange.send_bytes(bytes(2**18))
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
            serving(echo, limits=ServerLimits(connections=2)) as port,
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
            port = await stack.enter_async_context(
                serving(echo, limits=ServerLimits(connections=8))
            )
            greedy = [await stack.enter_async_context(begun(port, "127.0.0.2")) for _ in range(8)]
            refused = [await each.readline() for each in greedy[4:]]
            assert {line[:12] for line in refused} == {b"HTTP/1.1 503"}
            # Idle ones of the same address are closed for new ones.
            for _ in range(3):
                reader = await stack.enter_async_context(begun(port, "127.0.0.3"))
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")

    run(main())


async def reset(port: int, address: str, data: bytes = b"") -> None:
    """Connect, send, and reset the connection."""
    with socket.socket() as sock:
        sock.bind((address, 0))
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        sock.send(data)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_connections_that_were_reset_immediately_keep_no_place() -> None:
    async def main() -> None:
        async with serving(echo, limits=ServerLimits(connections=8)) as port:
            for number in range(40):
                await reset(port, f"127.0.0.{2 + number % 4}")
            # All have been accepted when one that came after them has its answer.
            await ask_from("127.0.0.1", port)
            for number in range(4):
                address = f"127.0.0.{20 + number}"
                assert (await ask_from(address, port)).startswith(b"HTTP/1.1 200")

    async def ask_from(address: str, port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        with contextlib.closing(writer), contextlib.suppress(ConnectionResetError):
            writer.write(head("GET / HTTP/1.1"))
            return await reader.read()
        return b""

    run(main())


def test_a_request_that_was_followed_by_a_reset_is_its_clients() -> None:
    """Loopback is trusted with more than other addresses are."""
    seen: list[str] = []

    async def app(scope: HttpScope, exchange: Exchange) -> None:
        seen.append(scope.client_address)
        exchange.response_str(200, [], "")

    async def main() -> None:
        async with serving(app) as port:
            for _ in range(20):
                await reset(port, "127.0.0.5", b"DELETE / HTTP/1.1\r\nhost: x\r\n\r\n")
            await ask(port, head("GET / HTTP/1.1"))

    run(main())
    assert set(seen) <= {"127.0.0.5", "127.0.0.1"}
    assert seen.count("127.0.0.1") == 1
