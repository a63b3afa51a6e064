"""Origins that want to harm: each request ends, and costs others nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from edgecache.brain.core.errors import OriginFailed
from edgecache.brain.core.values import BucketInfo
from tests.edgecache.brain.brains import Brain, until
from tests.edgecache.brain.http_origin import Asked, HttpOrigin

PIECE_BYTES: Final = 2**16
# The kernel's buffers take this in addition.
MAX_BYTES: Final = 2**26


class Flood:
    """Sends the same again and again. sent: bytes."""

    def __init__(self, start: bytes, data: bytes) -> None:
        self.start = start
        self.data = data * (PIECE_BYTES // len(data))
        self.sent = 0

    async def __call__(self, asked: Asked) -> None:
        await asked.say(self.start)
        while True:
            await asked.say(self.data)
            self.sent += len(self.data)


@pytest.mark.parametrize(
    ("start", "data"),
    [
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X-More: of it\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
        (b"HTTP/1.1 200 ", b"OK"),
    ],
    ids=["interim responses", "headers", "a header", "a reason"],
)
async def test_an_endless_head_is_cut_off(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, start: bytes, data: bytes
) -> None:
    flood = origin.handler = Flood(start, data)

    with pytest.raises(OriginFailed):
        await brain.objects.open(http_bucket, "k")
    with pytest.raises(OriginFailed):
        await brain.objects.head(http_bucket, "k")

    assert flood.sent < MAX_BYTES
    await is_at_rest(brain)


async def test_a_few_interim_responses_are_passed_over(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    body = bytes(3 * PIECE_BYTES)

    async def hint(asked: Asked) -> None:
        for _ in range(20):
            asked.head("103 Early Hints", "Link: </style.css>; rel=preload")
        await asked.answer(body)

    origin.handler = hint
    for key in ("a", "b"):
        assert await brain.get(http_bucket, key) == body


async def test_a_body_that_drips_ends_with_its_readers(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.objects.shared_fetch.ABANDON_S", 0.05)

    async def drip(asked: Asked) -> None:
        asked.head("200 OK", f"Content-Length: {2**30}")
        while True:
            await asked.say(b"x")
            await asyncio.sleep(0.01)

    origin.handler = drip
    opened = await brain.objects.open(http_bucket, "k")
    pieces = opened.body()
    assert set(await anext(pieces)) == set(b"x")
    await pieces.aclose()  # type: ignore[attr-defined]  # a generator
    await is_at_rest(brain)
    assert await brain.directory.find(http_bucket.id, "k") is None


@pytest.mark.parametrize("ask", ["open", "head"])
async def test_redirects_in_a_circle_end(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, ask: str
) -> None:
    async def back(asked: Asked) -> None:
        await asked.answer(b"", f"Location: {asked.target}", status="302 Found")

    origin.handler = back
    asks: dict[str, Callable[[BucketInfo, str], Awaitable[object]]] = {
        "open": brain.objects.open,
        "head": brain.objects.head,
    }
    with pytest.raises(OriginFailed):
        await asks[ask](http_bucket, "k")
    assert len(origin.asked) == 6
    await is_at_rest(brain)


async def is_at_rest(brain: Brain) -> None:
    """Wait until nothing is held for an origin."""
    await until(lambda: not brain.objects.singleflight.shares.taken)
    await until(lambda: not brain.data_directory.used_bytes)
