"""Connections to origins: cancelled requests do not leak connections."""

import asyncio
from collections.abc import AsyncIterator

import httpcore
import pytest

from edgecache.brain.core.errors import OriginTimeout
from edgecache.brain.origins import connections
from edgecache.brain.origins.connections import OriginConnections, Request
from tests.edgecache.brain.brains import Brain, until
from tests.edgecache.brain.http_origin import Asked, HttpOrigin

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


async def test_an_unsent_request_that_is_cancelled_is_never_sent(
    origin: HttpOrigin,
) -> None:
    dialled, go_on = asyncio.Event(), asyncio.Event()

    class Slow(httpcore.AnyIOBackend):
        async def connect_tcp(
            self, *args: object, **options: object
        ) -> httpcore.AsyncNetworkStream:
            dialled.set()
            await go_on.wait()
            return await super().connect_tcp(*args, **options)  # type: ignore[arg-type]  # as given

    opened = OriginConnections(
        httpcore.AsyncConnectionPool(max_connections=1, network_backend=Slow())
    )

    async def ask() -> int:
        async with connections.exchange(
            opened, Request("GET", f"{origin.url}/k", [("host", "h")])
        ) as reply:
            return reply.status

    asking = asyncio.create_task(ask())
    await dialled.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    go_on.set()
    await until(lambda: not opened._abandoned)

    assert origin.asked == []
    assert await ask() == 404
    await opened.retire()


async def test_the_number_of_abandoned_requests_is_limited(
    origin: HttpOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "ABANDONED_LIMIT", 3)
    gate = asyncio.Event()

    async def silent(_asked: Asked) -> None:
        await gate.wait()

    origin.handler = silent
    opened = OriginConnections(httpcore.AsyncConnectionPool(max_connections=1))

    async def ask() -> None:
        request = httpcore.Request("GET", f"{origin.url}/k", headers={"host": "h"})
        async with opened.in_use():
            await opened.send(request)

    holding = asyncio.create_task(ask())
    await until(lambda: origin.asked)
    for _ in range(3):
        asking = asyncio.create_task(ask())
        await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    with pytest.raises(OriginTimeout):
        await ask()

    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)
    await until(lambda: not opened._abandoned)
    await opened.retire()


async def test_a_cancellation_while_a_response_is_closed_still_closes_it() -> None:
    began, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Body:
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b""

        async def aclose(self) -> None:
            began.set()
            await go_on.wait()
            ended.set()

    opened = OriginConnections(httpcore.AsyncConnectionPool())
    closing = asyncio.create_task(opened.close(httpcore.Response(200, content=Body())))
    await began.wait()
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    go_on.set()

    async with asyncio.timeout(20):
        await ended.wait()
    await opened.retire()
