"""Connections for one origin: kept after use; the work for each does not grow with their number."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpcore
import pytest

from edgecache.brain.origins.egress.bounded_heads import head_came
from edgecache.brain.origins.egress.pool import MAX_IDLE_CONNECTIONS, ConnectionPool
from tests.edgecache.brain import certificates
from tests.edgecache.brain.brains import until
from tests.edgecache.brain.http_origin import Asked, Gate, HttpOrigin

WAITING = 100


@pytest.fixture
async def pool() -> AsyncIterator[ConnectionPool]:
    """Return a pool."""

    async def resolve(host: str, _port: int) -> list[str]:
        return [host]

    opened = ConnectionPool(resolve, ssl.create_default_context())
    yield opened
    await opened.aclose()


async def get(pool: ConnectionPool, url: str, path: str = "/k", *, is_read: bool = True) -> int:
    """Send a request; return the status."""
    request = httpcore.Request("GET", f"{url}{path}", headers={"host": "h"})
    response = await pool.handle_async_request(request)
    head_came(response.extensions)
    if is_read:
        async for _ in response.aiter_stream():
            pass
    await response.aclose()
    return response.status


def connections_of(origin: HttpOrigin) -> int:
    """Return how many connections an origin's requests came by."""
    return len({id(asked.writer) for asked in origin.asked})


async def test_a_connection_is_used_again_when_its_response_was_read(
    pool: ConnectionPool, origin: HttpOrigin
) -> None:
    origin.objects = {"/k": bytes(200_000)}
    assert [await get(pool, origin.url) for _ in range(3)] == [200] * 3
    assert connections_of(origin) == 1

    assert await get(pool, origin.url, is_read=False) == 200
    assert await get(pool, origin.url) == 200
    assert connections_of(origin) == 2


async def test_a_connection_that_the_origin_has_closed_is_not_used_again(
    pool: ConnectionPool, origin: HttpOrigin
) -> None:
    origin.objects = {"/k": b"x"}
    assert await get(pool, origin.url) == 200
    origin.asked[0].writer.close()
    await origin.asked[0].writer.wait_closed()
    assert await get(pool, origin.url) == 200
    assert connections_of(origin) == 2


@pytest.mark.parametrize("is_one_record", [True, False])
async def test_bytes_that_tls_has_after_a_response_end_its_connection(
    tmp_path: Path, *, is_one_record: bool
) -> None:
    async def resolve(host: str, _port: int) -> list[str]:
        return [host]

    async def two_at_once(asked: Asked) -> None:
        response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        both = [response, response.replace(b"200", b"299")]
        # Two records reach the client in one piece: the second one is not decrypted yet.
        asked.writer.writelines([b"".join(both)] if is_one_record else both)

    trust, tls = certificates.issue(tmp_path, "127.0.0.1")
    pool = ConnectionPool(resolve, ssl.create_default_context(cafile=str(trust)))
    async with HttpOrigin(tls=tls, handler=two_at_once) as origin:
        assert [await get(pool, origin.url) for _ in range(3)] == [200] * 3
        assert connections_of(origin) == 3
        origin.handler, origin.objects = None, {"/k": b"x"}
        assert [await get(pool, origin.url) for _ in range(3)] == [200] * 3
        assert connections_of(origin) == 4
        await pool.aclose()


async def test_another_site_gets_connections_of_its_own(
    pool: ConnectionPool, origin: HttpOrigin
) -> None:
    origin.objects = {"/k": b"x"}
    async with HttpOrigin({"/k": b"y"}) as other:
        for _ in range(2):
            assert await get(pool, origin.url) == 200
            assert await get(pool, other.url) == 200
        assert connections_of(origin) == connections_of(other) == 1


async def test_a_request_looks_at_few_connections_however_many_wait(
    pool: ConnectionPool, origin: HttpOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, looks = Gate(), 0

    async def held(asked: Asked) -> None:
        if asked.path == "/slow":
            await gate.wait()
        await asked.answer(b"x")

    def counted(connection: httpcore.AsyncHTTPConnection, name: str) -> bool:
        nonlocal looks
        looks += 1
        return bool(real[name](connection))

    origin.handler = held
    waiting = [asyncio.create_task(get(pool, origin.url, "/slow")) for _ in range(WAITING)]
    await until(lambda: len(origin.asked) == WAITING)
    names = ("is_idle", "is_closed", "is_available", "has_expired")
    real = {name: getattr(httpcore.AsyncHTTPConnection, name) for name in names}
    for name in names:
        monkeypatch.setattr(
            httpcore.AsyncHTTPConnection, name, lambda each, name=name: counted(each, name)
        )
    assert await get(pool, origin.url) == 200
    assert looks < 5

    monkeypatch.undo()
    gate.opened.set()
    assert set(await asyncio.gather(*waiting)) == {200}
    # All but a few are closed afterwards.
    await until(
        lambda: sum(not asked.reader.at_eof() for asked in origin.asked) <= MAX_IDLE_CONNECTIONS + 1
    )


async def test_connections_are_closed_with_the_pool(
    pool: ConnectionPool, origin: HttpOrigin
) -> None:
    gate = Gate()

    async def held(asked: Asked) -> None:
        if asked.path == "/slow":
            await gate.wait()
        await asked.answer(b"x")

    origin.handler = held
    waiting = asyncio.create_task(get(pool, origin.url, "/slow"))
    await gate.came.wait()
    assert await get(pool, origin.url) == 200
    await pool.aclose()
    await until(origin.asked[1].reader.at_eof)
    gate.opened.set()
    assert await waiting == 200
    await until(origin.asked[0].reader.at_eof)
