"""Fetches whose clients disconnect: other clients are unaffected; large fetches are cancelled."""

import asyncio

import pytest

from edgecache.brain.core.values import BucketInfo
from tests.edgecache.brain.brains import MIB, Brain, settled
from tests.edgecache.brain.http_origin import Asked, Gate, HttpOrigin


async def endless(asked: Asked) -> None:
    """Send a body without end, often enough that the brain does not time out."""
    asked.head("200 OK", f"Content-Length: {100 * MIB}")
    for _ in range(100 * MIB):
        await asked.say(b"x")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("leaver", [0, 1])
async def test_a_reader_that_disconnects_does_not_affect_the_others(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, leaver: int
) -> None:
    gate = Gate()

    async def halting(asked: Asked) -> None:
        await gate.wait()
        await asked.answer(b"whole")

    origin.handler = halting
    asking = [asyncio.create_task(brain.get(http_bucket, "k")) for _ in range(2)]
    await gate.came.wait()
    asking[leaver].cancel()
    await asyncio.gather(asking[leaver], return_exceptions=True)
    gate.opened.set()

    assert await asking[1 - leaver] == b"whole"
    await settled(brain)
    assert await brain.directory.find(http_bucket.id, "k") is not None
    assert origin.count("/k") == 1


async def test_a_small_body_is_fetched_completely_without_readers(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    gate = Gate()
    origin.handler = gate.between_halves
    opened = await brain.objects.open(http_bucket, "k")
    body = aiter(opened.body())
    await anext(body)
    await body.aclose()  # type: ignore[attr-defined]  # it is a generator
    gate.opened.set()
    await settled(brain)

    assert await brain.directory.find(http_bucket.id, "k") is not None


async def test_the_fetch_of_a_large_body_is_cancelled_without_readers(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.objects.shared_fetch.ABANDON_S", 0.0)
    origin.handler = endless
    opened = await brain.objects.open(http_bucket, "k")
    body = aiter(opened.body())
    await anext(body)
    await body.aclose()  # type: ignore[attr-defined]  # it is a generator
    await settled(brain)

    assert await brain.directory.find(http_bucket.id, "k") is None
    assert brain.data_directory.used_bytes == 0
    assert not list(brain.data_directory.temp.iterdir())


async def test_a_large_fetch_is_cancelled_if_its_reader_left_before_the_headers(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.objects.shared_fetch.ABANDON_S", 0.01)
    gate = Gate()

    async def late(asked: Asked) -> None:
        await gate.wait()
        await endless(asked)

    origin.handler = late
    asking = asyncio.create_task(brain.objects.open(http_bucket, "k"))
    await gate.came.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    gate.opened.set()
    await settled(brain)

    assert await brain.directory.find(http_bucket.id, "k") is None
    assert brain.data_directory.used_bytes == 0


async def test_a_late_reader_keeps_a_fetch_that_the_first_reader_left(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.objects.shared_fetch.ABANDON_S", 0.01)
    gate, rest = Gate(), Gate()
    data = b"x" * 20 * MIB

    async def slow(asked: Asked) -> None:
        await gate.wait()
        asked.head("200 OK", f"Content-Length: {len(data)}")
        await asked.say(data[:MIB])
        await rest.wait()
        await asked.say(data[MIB:])

    origin.handler = slow
    asking = [asyncio.create_task(brain.get(http_bucket, "k")) for _ in range(2)]
    await gate.came.wait()
    asking[0].cancel()
    await asyncio.gather(asking[0], return_exceptions=True)
    gate.opened.set()
    await rest.came.wait()
    # Longer than the time after which the fetch would be cancelled.
    await asyncio.sleep(0.05)
    rest.opened.set()

    assert await asking[1] == data
