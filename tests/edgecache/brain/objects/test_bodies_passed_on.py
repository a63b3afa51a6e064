"""Bodies that are not kept: too large for the disk's share, or for one client only."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgecache.brain.core.errors import OriginFailed
from edgecache.brain.core.values import BucketInfo, Span
from tests.edgecache.brain.brains import MIB, Brain, Rows, running, settled, until
from tests.edgecache.brain.http_origin import Asked, Gate, HttpOrigin

DATA = bytes(range(256)) * (3 * MIB // 256)
LENGTH = f"Content-Length: {len(DATA)}"
CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture
async def small(rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Return a brain with 1 MiB for unfinished bodies."""
    async with running(rows.url, tmp_path / "small", limit_bytes=MIB) as brain:
        yield brain


@pytest.fixture
async def bucket(small: Brain, origin: HttpOrigin) -> BucketInfo:
    """Return a bucket with the origin."""
    return await small.origin_bucket("http", {"url": origin.url})


async def say(asked: Asked, data: bytes, framing: str) -> None:
    """Send a part of a body."""
    for start in range(0, len(data), 2**15):
        piece = data[start : start + 2**15]
        await asked.say(b"%x\r\n%b\r\n" % (len(piece), piece) if framing == CHUNKED else piece)


async def end(asked: Asked, framing: str) -> None:
    """End a body."""
    if framing == CHUNKED:
        await asked.say(b"0\r\n\r\n")


@pytest.mark.parametrize("framing", [LENGTH, CHUNKED])
async def test_a_body_that_does_not_fit_is_passed_on_and_not_kept(
    small: Brain, origin: HttpOrigin, bucket: BucketInfo, framing: str
) -> None:
    async def large(asked: Asked) -> None:
        asked.head("200 OK", framing)
        await say(asked, DATA, framing)
        await end(asked, framing)

    origin.handler = large
    assert await small.get(bucket, "k") == DATA
    assert await small.get(bucket, "k", Span(2 * MIB, 5)) == DATA[2 * MIB : 2 * MIB + 5]
    await settled(small)

    assert await small.directory.find(bucket.id, "k") is None
    assert small.data_directory.used_bytes == 0
    assert not list(small.data_directory.temp.iterdir())


async def test_a_body_without_a_length_that_outgrows_the_disk_reaches_all_its_readers(
    small: Brain, origin: HttpOrigin, bucket: BucketInfo
) -> None:
    gate = Gate()

    async def large(asked: Asked) -> None:
        asked.head("200 OK", CHUNKED)
        await say(asked, DATA[:100], CHUNKED)
        await gate.wait()
        await say(asked, DATA[100:], CHUNKED)
        await end(asked, CHUNKED)

    origin.handler = large
    opened = [await small.objects.open(bucket, "k") for _ in range(3)]
    bodies = [aiter(one.body()) for one in opened]
    firsts = [await anext(body) for body in bodies]
    gate.opened.set()
    # One reader is far ahead of the others.
    ahead = asyncio.create_task(collected(bodies[0]))
    fetch = opened[0].fetch
    await until(lambda: fetch is not None and fetch.is_passing)
    rests = await asyncio.gather(ahead, *(collected(body) for body in bodies[1:]))

    assert [first + rest for first, rest in zip(firsts, rests, strict=True)] == [DATA] * 3
    assert origin.count("/k") == 1
    await settled(small)
    assert small.data_directory.used_bytes == 0


async def collected(body: AsyncIterator[bytes]) -> bytes:
    """Return what is left of a body."""
    return b"".join([piece async for piece in body])


async def test_the_disk_is_given_back_while_an_endless_body_is_passed_on(
    small: Brain, origin: HttpOrigin, bucket: BucketInfo
) -> None:
    gate = Gate()

    async def endless(asked: Asked) -> None:
        asked.head("200 OK", CHUNKED)
        await say(asked, DATA, CHUNKED)
        await gate.wait()
        asked.writer.close()

    origin.handler = endless
    opened = await small.objects.open(bucket, "k")
    body, came = aiter(opened.body()), 0
    while came < len(DATA):
        came += len(await anext(body))

    assert small.data_directory.used_bytes == 0
    assert not list(small.data_directory.temp.iterdir())
    gate.opened.set()
    with pytest.raises(OriginFailed):
        await collected(body)


async def test_what_breaks_off_while_it_is_passed_on_does_not_look_complete(
    small: Brain, origin: HttpOrigin, bucket: BucketInfo
) -> None:
    async def breaks_off(asked: Asked) -> None:
        asked.head("200 OK", LENGTH)
        await asked.say(DATA[:-1])
        asked.writer.close()

    origin.handler = breaks_off
    with pytest.raises(OriginFailed):
        await small.get(bucket, "k")


async def test_what_is_for_one_client_never_touches_the_disk(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    gate = Gate()

    async def private(asked: Asked) -> None:
        asked.head("200 OK", LENGTH, "Cache-Control: no-store")
        await asked.say(DATA[:MIB])
        await gate.wait()
        await asked.say(DATA[MIB:])

    origin.handler = private
    opened = await brain.objects.open(http_bucket, "k")
    body, came = aiter(opened.body()), b""
    while len(came) < MIB:
        came += await anext(body)
    assert not list(brain.data_directory.temp.iterdir())
    gate.opened.set()

    assert came + await collected(body) == DATA


async def test_an_origin_is_read_as_fast_as_its_reader_takes_what_is_not_kept(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    sent = 0

    async def large(asked: Asked) -> None:
        nonlocal sent
        asked.head("200 OK", f"Content-Length: {60 * MIB}", "Cache-Control: private")
        for _ in range(60):
            await asked.say(bytes(MIB))
            sent += MIB

    origin.handler = large
    opened = await brain.objects.open(http_bucket, "k")
    body = aiter(opened.body())
    await anext(body)
    before = -1
    while sent > before:
        before = sent
        # The origin has come to a stop.
        await asyncio.sleep(0.1)

    assert sent < 30 * MIB
    assert len(await collected(body)) > 59 * MIB
