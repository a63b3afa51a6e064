"""Origins that stall, refuse, fail or lack the object: specific errors, nothing stored."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgecache.brain.core.errors import OriginDenied, OriginFailed, OriginMissing, OriginTimeout
from edgecache.brain.core.values import BucketInfo
from tests.edgecache.brain.brains import ALICE, Brain, Rows, read, running
from tests.edgecache.brain.http_origin import Asked, HttpOrigin


async def test_an_origin_that_stalls_times_out(rows: Rows, tmp_path: Path) -> None:
    async with HttpOrigin() as origin, short_patience(rows, tmp_path) as brain:
        bucket = await brain.origin_bucket("http", {"url": origin.url})

        async def silent(asked: Asked) -> None:
            await asyncio.Event().wait()

        async def stalling(asked: Asked) -> None:
            asked.head("200 OK", "Content-Length: 10")
            await asked.say(b"first")
            await asyncio.Event().wait()

        origin.handler = silent
        with pytest.raises(OriginTimeout):
            await brain.objects.open(bucket, "silent")
        origin.handler = stalling
        opened = await brain.objects.open(bucket, "stalling")
        with pytest.raises(OriginTimeout):
            await read(opened)
        assert await brain.directory.find(bucket.id, "stalling") is None


@contextlib.asynccontextmanager
async def short_patience(rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Return a brain with short time limits for origins."""
    async with running(rows.url, tmp_path / "hasty", stall_timeout_s=0.3) as brain:
        yield brain


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("404 Not Found", OriginMissing),
        ("410 Gone", OriginMissing),
        ("401 Unauthorized", OriginDenied),
        ("403 Forbidden", OriginDenied),
        ("400 Bad Request", OriginFailed),
        ("500 Internal Server Error", OriginFailed),
        ("206 Partial Content", OriginFailed),
        ("304 Not Modified", OriginFailed),
    ],
)
async def test_a_refusal_of_the_origin_is_a_specific_error(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, status: str, error: type[Exception]
) -> None:
    async def refuse(asked: Asked) -> None:
        await asked.answer(b"", status=status)

    origin.handler = refuse

    with pytest.raises(error) as caught:
        await brain.objects.open(http_bucket, "k")
    assert type(caught.value) is error
    with pytest.raises(error):
        await brain.objects.head(http_bucket, "k")


async def test_an_unreachable_origin_is_an_error(brain: Brain) -> None:
    async with HttpOrigin() as gone:
        url = gone.url
    bucket = await brain.origin_bucket("http", {"url": url})

    with pytest.raises(OriginFailed):
        await brain.objects.open(bucket, "k")


async def test_a_server_error_is_retried_once(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    async def moody(asked: Asked) -> None:
        if len(origin.asked) == 1:
            await asked.answer(b"", status="503 Service Unavailable")
        else:
            await asked.answer(b"well")

    origin.handler = moody

    assert await brain.get(http_bucket, "k") == b"well"


async def test_a_404_is_cached_for_a_moment(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    for _ in range(5):
        with pytest.raises(OriginMissing):
            await brain.objects.open(http_bucket, "k")
    asked = origin.count("/k")
    origin.objects["/k"] = b"there"
    await brain.purges.purge(ALICE, keys=["docs/k"])

    assert asked == 1
    assert await brain.get(http_bucket, "k") == b"there"


async def test_a_cached_404_expires(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.objects.negative_cache.KEPT_S", 0.0)
    with pytest.raises(OriginMissing):
        await brain.objects.open(http_bucket, "k")
    origin.objects["/k"] = b"there"

    assert await brain.get(http_bucket, "k") == b"there"
