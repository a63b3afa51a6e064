"""Connections to origins: kept after use, and not leaked by cancelled requests."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edgecache.brain.core.errors import OriginError, OriginFailed
from edgecache.brain.origins.connections import OriginConnections, Request, exchange
from edgecache.brain.origins.open_origins import IDLE_CONNECTIONS
from edgecache.http.client import HttpClient, ServerAddress
from edgecache.http.outgoing import OutgoingConnection
from tests.edgecache.brain import certificates
from tests.edgecache.brain.brains import Brain, until
from tests.edgecache.brain.http_origin import Asked, Gate, HttpOrigin

WAITING = 100
# More turns of the loop than a whole request takes.
STEPS = 150


@pytest.mark.slow
async def test_a_request_cancelled_at_any_moment_leaks_no_connection(
    brain: Brain, origin: HttpOrigin
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    driver = await brain.origins.driver(bucket)

    async def closing(asked: Asked) -> None:
        # So that each request has its own connection.
        await asked.answer(b"whole", "Connection: close")

    origin.handler = closing
    for steps in range(0, STEPS, 3):
        asking = [asyncio.create_task(driver.head("k")) for _ in range(6)]
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in asking[::2]:
            task.cancel()
        outcomes = await asyncio.gather(*asking, return_exceptions=True)
        assert not [each for each in outcomes[1::2] if isinstance(each, BaseException)]

    assert (await driver.head("k")).size == 5
    await until(lambda: not origin.connections)


def opened(**options: Any) -> HttpClient:
    """Return a client as for origins."""
    return HttpClient(connect_timeout_s=5.0, stall_s=20.0, idle_limit=IDLE_CONNECTIONS, **options)


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    """Return a client."""
    one = opened()
    yield one
    await one.stop()


async def get(client: HttpClient, url: str, path: str = "/k", *, is_read: bool = True) -> int:
    """Send a request; return the status."""
    request = Request("GET", f"{url}{path}", [("host", "h")])
    async with exchange(OriginConnections(client), request) as reply:
        if is_read:
            async for _ in reply.body:
                pass
        return reply.status


async def test_an_unsent_request_that_is_cancelled_is_never_sent(origin: HttpOrigin) -> None:
    dialled, go_on = asyncio.Event(), asyncio.Event()

    async def resolve(_server: ServerAddress, host: str, _port: int) -> list[str]:
        dialled.set()
        await go_on.wait()
        return [host]

    client = opened(resolve=resolve)
    asking = asyncio.create_task(get(client, origin.url))
    await dialled.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    go_on.set()

    assert await get(client, origin.url) == 404
    assert len(origin.asked) == 1
    await client.stop()


def connections_of(origin: HttpOrigin) -> int:
    """Return how many connections an origin's requests came by."""
    return len({id(asked.writer) for asked in origin.asked})


async def test_a_connection_is_used_again_when_its_response_was_read(
    client: HttpClient, origin: HttpOrigin
) -> None:
    origin.objects = {"/k": bytes(2_000_000)}
    assert [await get(client, origin.url) for _ in range(3)] == [200] * 3
    assert connections_of(origin) == 1

    assert await get(client, origin.url, is_read=False) == 200
    assert await get(client, origin.url) == 200
    assert connections_of(origin) == 2


@pytest.mark.parametrize("status", ["302 Found", "403 Forbidden", "404 Not Found", "500 Oops"])
async def test_a_response_that_is_not_wanted_leaves_its_connection_for_the_next_request(
    brain: Brain, origin: HttpOrigin, status: str
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    ports = set()

    async def refuse(asked: Asked) -> None:
        ports.add(asked.writer.get_extra_info("peername"))
        asked.head(status, "Content-Length: 2", "Location: /elsewhere", "Cache-Control: no-store")
        if asked.method == "GET":
            # The body comes after the head was read.
            await asyncio.sleep(0)
            await asked.say(b"no")

    origin.handler = refuse
    for read in (brain.objects.head, brain.objects.open):
        for _ in range(3):
            with pytest.raises(OriginError):
                await read(bucket, "k")
    assert len(ports) == 1


async def test_a_connection_that_the_origin_has_closed_is_not_used_again(
    client: HttpClient, origin: HttpOrigin
) -> None:
    origin.objects = {"/k": b"x"}
    assert await get(client, origin.url) == 200
    origin.asked[0].writer.close()
    await origin.asked[0].writer.wait_closed()
    assert await get(client, origin.url) == 200
    assert connections_of(origin) == 2


@pytest.mark.parametrize("is_one_record", [True, False])
async def test_bytes_that_tls_has_after_a_response_end_its_connection(
    tmp_path: Path, *, is_one_record: bool
) -> None:
    async def two_at_once(asked: Asked) -> None:
        response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        both = [response, response.replace(b"200", b"299")]
        # Two records reach the client in one piece: the second one is not decrypted yet.
        asked.writer.writelines([b"".join(both)] if is_one_record else both)

    trust, tls = certificates.issue(tmp_path, "127.0.0.1")
    client = opened(trust=ssl.create_default_context(cafile=str(trust)))
    async with HttpOrigin(tls=tls, handler=two_at_once) as origin:
        assert [await get(client, origin.url) for _ in range(3)] == [200] * 3
        assert connections_of(origin) == 3
        origin.handler, origin.objects = None, {"/k": b"x"}
        assert [await get(client, origin.url) for _ in range(3)] == [200] * 3
        assert connections_of(origin) == 4
        await client.stop()


async def test_a_response_that_comes_byte_by_byte_is_read(
    client: HttpClient, origin: HttpOrigin
) -> None:
    async def byte_by_byte(asked: Asked) -> None:
        for byte in (
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nTransfer-Encoding: Chunked\r\n\r\n"
            b"5;name=value\r\nhello\r\n06\r\n world\r\n0\r\nX-Trailer: y\r\n\r\n"
        ):
            await asked.say(bytes([byte]))
            await asyncio.sleep(0)

    origin.handler = byte_by_byte
    for _ in range(2):
        request = Request("GET", f"{origin.url}/k", [("host", "h")])
        async with exchange(OriginConnections(client), request) as reply:
            assert await reply.text(100) == b"hello world"
            assert reply.pairs == [("x-folded", "a b"), ("transfer-encoding", "Chunked")]
            assert reply.is_complete()
    assert connections_of(origin) == 1


@pytest.mark.parametrize(
    "chunks",
    [
        b"zz\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"5\r\nhello!\r\n0\r\n\r\n",
        b"\r\n0\r\n\r\n",
        b"1" * 16 + b"\r\n",
        b"5;" + b"x" * 5000,
        b"0\r\n" + b"X: y\r\n" * 20_000,
        b"5\r\nhello\r\n",
    ],
)
async def test_chunks_that_are_malformed_or_end_early_are_an_error(
    client: HttpClient, origin: HttpOrigin, chunks: bytes
) -> None:
    async def broken(asked: Asked) -> None:
        asked.head("200 OK", "Transfer-Encoding: chunked")
        await asked.say(chunks)
        asked.writer.close()

    origin.handler = broken
    with pytest.raises(OriginFailed):
        await get(client, origin.url)


async def test_a_request_with_a_line_break_is_not_sent(
    client: HttpClient, origin: HttpOrigin
) -> None:
    for request in (
        Request("GET", f"{origin.url}/k", [("host", "h"), ("x", "a\r\ny: b")]),
        Request("GET", f"{origin.url}/k HTTP/1.1\r\ny: b\r\n", [("host", "h")]),
        Request("GET", f"{origin.url}/a b", [("host", "h")]),
    ):
        with pytest.raises(OriginFailed):
            async with exchange(OriginConnections(client), request):
                pass
    assert origin.asked == []


async def test_another_site_gets_connections_of_its_own(
    client: HttpClient, origin: HttpOrigin
) -> None:
    origin.objects = {"/k": b"x"}
    async with HttpOrigin({"/k": b"y"}) as other:
        for _ in range(2):
            assert await get(client, origin.url) == 200
            assert await get(client, other.url) == 200
        assert connections_of(origin) == connections_of(other) == 1


async def test_a_request_checks_few_connections_however_many_wait(
    client: HttpClient, origin: HttpOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, checks = Gate(), 0
    real = OutgoingConnection.is_silent

    async def held(asked: Asked) -> None:
        if asked.path == "/slow":
            await gate.wait()
        await asked.answer(b"x")

    def counted(connection: OutgoingConnection) -> bool:
        nonlocal checks
        checks += 1
        return real(connection)

    origin.handler = held
    waiting = [asyncio.create_task(get(client, origin.url, "/slow")) for _ in range(WAITING)]
    await until(lambda: len(origin.asked) == WAITING)
    monkeypatch.setattr(OutgoingConnection, "is_silent", counted)
    assert await get(client, origin.url) == 200
    assert checks <= 1

    gate.opened.set()
    assert set(await asyncio.gather(*waiting)) == {200}
    # All but a few are closed afterwards.
    await until(
        lambda: sum(not asked.reader.at_eof() for asked in origin.asked) <= IDLE_CONNECTIONS + 1
    )


async def test_connections_are_closed_with_the_client(
    client: HttpClient, origin: HttpOrigin
) -> None:
    gate = Gate()

    async def held(asked: Asked) -> None:
        if asked.path == "/slow":
            await gate.wait()
        await asked.answer(b"x")

    origin.handler = held
    waiting = asyncio.create_task(get(client, origin.url, "/slow"))
    await gate.came.wait()
    assert await get(client, origin.url) == 200
    before = list(origin.asked)
    await client.stop()
    for asked in before:
        await until(asked.reader.at_eof)
    # A safe request is sent again.
    gate.opened.set()
    assert await waiting == 200
