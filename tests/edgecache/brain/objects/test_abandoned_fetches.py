"""Fetches whose clients disconnect: other clients are unaffected; large fetches are cancelled."""

import asyncio

import pytest

from edgecache.brain.core.values import BucketInfo, Span
from edgecache.brain.objects.open_object import OpenObject
from tests.edgecache.brain.brains import MIB, Brain, read, settled
from tests.edgecache.brain.http_origin import Asked, Gate, HttpOrigin
from tests.edgecache.brain.objects.plain_requests import looking_up, opened, plain_request


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
    await leaves_after_a_piece(await brain.objects.open(http_bucket, "k"))
    gate.opened.set()
    await settled(brain)

    assert await brain.directory.find(http_bucket.id, "k") is not None


async def test_the_fetch_of_a_large_body_is_cancelled_without_readers(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.objects.shared_fetch.ABANDON_S", 0.0)
    origin.handler = endless
    await leaves_after_a_piece(await brain.objects.open(http_bucket, "k"))
    await settled(brain)

    assert await brain.directory.find(http_bucket.id, "k") is None
    assert brain.data_directory.used_bytes == 0
    assert not list(brain.data_directory.temp.iterdir())


async def leaves_after_a_piece(opened: OpenObject) -> None:
    """Read a piece of a body, and disconnect."""
    body = aiter(opened.body())
    await anext(body)
    await body.aclose()  # type: ignore[attr-defined]  # it is a generator


async def test_a_fetch_goes_on_without_readers_when_more_than_half_is_there(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.objects.shared_fetch.ABANDON_S", 0.3)
    gate = Gate()

    async def slow(asked: Asked) -> None:
        asked.head("200 OK", f"Content-Length: {20 * MIB}")
        await asked.say(b"x" * 11 * MIB)
        await gate.wait()
        await asked.say(b"x" * 9 * MIB)

    origin.handler = slow
    opened = await brain.objects.open(http_bucket, "k")
    reading = opened.body(Span(0, 11 * MIB))
    assert len(b"".join([piece async for piece in reading])) == 11 * MIB
    # Longer than a fetch waits for a reader.
    await asyncio.sleep(0.5)
    gate.opened.set()
    await settled(brain)

    assert await brain.directory.find(http_bucket.id, "k") is not None


@pytest.mark.parametrize("framing", [f"Content-Length: {200 * MIB}", "Transfer-Encoding: chunked"])
async def test_a_fetch_reads_little_for_a_reader_that_left(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, framing: str
) -> None:
    sent = 0

    async def fast(asked: Asked) -> None:
        nonlocal sent
        asked.head("200 OK", framing)
        for _ in range(200):
            await asked.say(b"%x\r\n%b\r\n" % (MIB, bytes(MIB)))
            sent += MIB

    origin.handler = fast
    await leaves_after_a_piece(await brain.objects.open(http_bucket, "k"))
    await settled(brain)

    # What is small, and what the kernel has received.
    assert sent < 40 * MIB
    assert await brain.directory.find(http_bucket.id, "k") is None


async def test_a_refresh_in_the_background_is_finished_whatever_its_size(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.objects.shared_fetch.ABANDON_S", 0.3)
    control, gate = "Cache-Control: max-age=0, stale-while-revalidate=600", Gate()

    async def slow(asked: Asked) -> None:
        if len(origin.asked) == 1:
            await asked.answer(b"old", control)
            return
        asked.head("200 OK", f"Content-Length: {20 * MIB}", control)
        await asked.say(b"x" * 4 * MIB)
        await gate.wait()
        await asked.say(b"x" * 16 * MIB)

    origin.handler = slow
    looking, wanted = looking_up(brain), await plain_request(brain, http_bucket, "k")
    assert await read(await opened(looking, wanted)) == b"old"
    await settled(brain)
    assert await read(await opened(looking, wanted)) == b"old"
    await gate.came.wait()
    await asyncio.sleep(0.5)
    # Another reader does not begin it again.
    assert await read(await opened(looking, wanted)) == b"old"
    gate.opened.set()
    await settled(brain)

    assert (await opened(looking, wanted)).version.size == 20 * MIB
    assert origin.count("/k") == 2
    await looking.stop()


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
