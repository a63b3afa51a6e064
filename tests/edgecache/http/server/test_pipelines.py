"""Pipelined requests: the order of responses, and clients that do not read them."""

import asyncio
import contextlib
from collections.abc import Awaitable

import pytest

from edgecache.http.exchange import Exchange
from edgecache.http.scope import HttpScope
from edgecache.http.server import http_server as servers
from edgecache.http.server.limits import ServerLimits
from tests.edgecache.http.support import connected, run, serving

pytestmark = pytest.mark.slow

GET = b"GET /%b HTTP/1.1\r\nhost: x\r\n\r\n"


async def name(scope: HttpScope, exchange: Exchange) -> None:
    """Respond with the path, one turn of the loop later."""
    await asyncio.sleep(0)
    exchange.response_str(200, [], f"app {scope.path}")


def test_responses_keep_the_order_of_their_requests() -> None:
    async def work() -> None:
        async with serving(name) as port, connected(port) as (reader, writer):
            paths = [b"1", b"2", b"3", b"last"]
            writer.write(b"".join(GET % path for path in paths))
            said = b""
            while not said.endswith(b"app /last"):
                said += await reader.read(2**16)
            bodies = [part.partition(b"\r\n\r\n")[2] for part in said.split(b"HTTP/1.1 200 OK")[1:]]
            assert bodies == [b"app /" + path for path in paths]
            # The connection continues to work.
            writer.write(GET % b"more")
            assert (await reader.readuntil(b"app /more")).count(b"HTTP/1.1") == 1

    run(work())


def test_a_response_that_is_not_read_yet_does_not_change_the_order() -> None:
    ends = asyncio.Event()

    def answer(scope: HttpScope, exchange: Exchange) -> Awaitable[None] | None:
        if scope.path == "/waits":
            return wait(exchange)
        exchange.response_bytes(200, [], bytes(2**23) if scope.path == "/large" else b"app /last")
        return None

    async def wait(exchange: Exchange) -> None:
        await ends.wait()
        exchange.response_str(200, [], "app /waits")

    async def work() -> None:
        async with serving(answer) as port, connected(port) as (reader, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined] # a StreamWriter's transport reads, too
            writer.write(b"".join(GET % path for path in (b"large", b"waits", b"last")))
            await asyncio.sleep(0.1)
            writer.transport.resume_reading()  # type: ignore[attr-defined] # a StreamWriter's transport reads, too
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(2**23)
            await asyncio.sleep(0.05)
            ends.set()
            said = await reader.readuntil(b"app /last")
            assert said.index(b"app /waits") < said.index(b"app /last")

    run(work())


def test_a_client_that_pipelines_without_reading_fills_no_memory() -> None:
    async def work() -> None:
        asked = 0

        async def large(_scope: HttpScope, exchange: Exchange) -> None:
            nonlocal asked
            asked += 1
            exchange.response_bytes(200, [], bytes(2**18))

        async with serving(large) as port, connected(port) as (reader, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined] # a StreamWriter's transport reads, too
            for _ in range(3):
                writer.write(GET % b"" * 20)
                await asyncio.sleep(0.1)
            # As much as the kernel buffers on both sides, and one response more.
            assert asked < 45
            writer.transport.resume_reading()  # type: ignore[attr-defined] # a StreamWriter's transport reads, too
            for _ in range(60):
                await reader.readuntil(b"\r\n\r\n")
                assert len(await reader.readexactly(2**18)) == 2**18
            assert asked == 60

    run(work())


def test_a_client_that_does_not_read_for_too_long_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(servers, "SWEEP_S", 0.05)
    limits = ServerLimits(take_timeout_s=0.2)

    async def work() -> None:
        async def large(_scope: HttpScope, exchange: Exchange) -> None:
            exchange.response_bytes(200, [], bytes(2**22))

        async with serving(large, limits=limits) as port, connected(port) as (reader, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined] # a StreamWriter's transport reads, too
            # Half a request head follows: it gets no response when it times out.
            writer.write(GET % b"" * 10 + b"GET / HT")
            await asyncio.sleep(0.8)
            writer.transport.resume_reading()  # type: ignore[attr-defined] # a StreamWriter's transport reads, too
            said = bytearray()
            with contextlib.suppress(ConnectionResetError):
                while piece := await reader.read(2**16):
                    said += piece
            assert b" 408 " not in said
            assert len(said) < 10 * 2**22

    run(work())


async def large(scope: HttpScope, exchange: Exchange) -> None:
    """Send a large body."""
    exchange.response_bytes(200, [], bytes(2**23 if scope.raw_path == "/one" else 2**17))


async def endless(scope: HttpScope, exchange: Exchange) -> None:
    """Respond to ``/app`` without end, to other paths with a large body."""
    if scope.raw_path != "/app":
        await large(scope, exchange)
        return
    exchange.response_stream(200, [("content-length", str(2**40))])
    while True:
        await exchange.send_bytes(bytes(2**16))


def test_every_connection_ends_after_its_time_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "SWEEP_S", 0.05)

    async def work(behind: bytes, *, takes: bool) -> None:
        # A client that reads has time to do so, on a busy machine too.
        is_read = takes and b"/app" not in behind
        limit_s = 2.0 if is_read else 0.3
        limits = ServerLimits(
            take_timeout_s=limit_s, head_timeout_s=limit_s, idle_timeout_s=limit_s
        )
        async with serving(endless, limits=limits) as port, connected(port) as (reader, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined] # as above
            # More than the kernel buffers, so that the rest waits in the server.
            writer.write(GET % b"one")
            await asyncio.sleep(0.05)
            writer.write(behind)
            await asyncio.sleep(0.05)
            if is_read:
                writer.transport.resume_reading()  # type: ignore[attr-defined] # as above
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(2**23)
            else:
                await asyncio.sleep(1)
                writer.transport.resume_reading()  # type: ignore[attr-defined] # as above
            with contextlib.suppress(ConnectionResetError):
                async with asyncio.timeout(20):
                    while await reader.read(2**16):
                        pass

    async def all_of_them() -> None:
        unfinished = (b"GET /h", b"GET /app HTTP/1.1\r\nhost: x\r\n\r\n", b"")
        await asyncio.gather(
            *(work(behind, takes=takes) for behind in unfinished for takes in (True, False))
        )

    run(all_of_them())


def test_a_client_with_unread_responses_frees_its_connection_at_most_once() -> None:
    # So that writing is never paused and the connection looks idle.
    limits = ServerLimits(write_high_bytes=2**26, connections=1)

    async def work() -> None:
        async with (
            serving(large, limits=limits) as port,
            connected(port) as (_, writer),
        ):
            writer.transport.pause_reading()  # type: ignore[attr-defined] # as above
            writer.write(GET % b"" * 60)
            await asyncio.sleep(0.1)
            for _ in range(5):
                async with connected(port) as (second, asking):
                    asking.write(GET % b"")
                    assert (await second.read()).startswith(b"HTTP/1.1 503")

    run(work())


def test_requests_behind_unread_responses_are_not_run_after_the_stop() -> None:
    async def work() -> None:
        asked: list[str] = []

        async def app(scope: HttpScope, exchange: Exchange) -> None:
            asked.append(scope.raw_path)
            exchange.response_bytes(200, [], bytes(2**23))

        async with serving(app) as port, connected(port) as (reader, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined] # as above
            writer.write(GET % b"first" + GET % b"second")
            while not asked:  # noqa: ASYNC110 - set by the server's task
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            assert asked == ["/first"]
            stopping = asyncio.get_running_loop().create_task(_read_later(reader, writer))
        await stopping
        assert asked == ["/first"]

    run(work())


async def _read_later(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read everything once the server is about to stop."""
    await asyncio.sleep(0.2)
    writer.transport.resume_reading()  # type: ignore[attr-defined] # as above
    with contextlib.suppress(ConnectionResetError):
        while await reader.read(2**16):
            pass
