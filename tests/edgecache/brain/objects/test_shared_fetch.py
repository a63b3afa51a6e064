"""Fetches from external origins: one per object, stored only if complete."""

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from edgecache.brain.core.blocks import BLOCK_BYTES
from edgecache.brain.core.errors import KeyRefused, OriginFailed, OriginReadOnly
from edgecache.brain.core.values import BucketInfo, Span, WrittenFields
from tests.edgecache.alterations import flip
from tests.edgecache.brain import certificates
from tests.edgecache.brain.brains import MIB, Brain, Rows, read, running, settled
from tests.edgecache.brain.http_origin import Asked, Gate, HttpOrigin


async def test_a_miss_is_fetched_and_the_next_read_is_a_hit(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    origin.objects["/a/b c.txt"] = b"text"

    missed = await brain.objects.open(http_bucket, "a/b c.txt")
    first = await read(missed)
    await missed.whole()
    await settled(brain)
    hit = await brain.objects.open(http_bucket, "a/b c.txt")

    assert (first, missed.is_hit) == (b"text", False)
    assert (await read(hit), hit.is_hit) == (b"text", True)
    assert hit.version.sha256 == hashlib.sha256(b"text").digest()
    assert (hit.version.etag, hit.version.content_type) == ("v1", "text/plain")
    assert origin.count("/a/b c.txt") == 1
    assert [found.key for found in brain.kept] == ["a/b c.txt"]


async def test_waiting_requests_read_during_the_fetch(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    gate = Gate()
    origin.handler = gate.between_halves
    opened = await brain.objects.open(http_bucket, "k")
    late = await brain.objects.open(http_bucket, "k")
    body = aiter(opened.body())

    assert await anext(body) == b"first"
    assert await read(late, Span(1, 3)) == b"irs"
    assert (opened.version.size, opened.version.sha256) == (10, b"")
    gate.opened.set()
    assert await anext(body) == b"later"
    assert await read(late) == b"firstlater"
    assert origin.count("/k") == 1


async def test_an_unknown_length_is_known_after_the_fetch(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    async def chunked(asked: Asked) -> None:
        asked.head("200 OK", "Transfer-Encoding: chunked")
        await asked.say(b"5\r\nhello\r\n0\r\n\r\n")

    origin.handler = chunked
    opened = await brain.objects.open(http_bucket, "k")

    assert opened.version.size == -1
    assert (await opened.whole()).size == 5
    assert await read(opened) == b"hello"


async def breaks_off(asked: Asked) -> None:
    """Send fewer bytes than announced."""
    asked.head("200 OK", "Content-Length: 1000")
    await asked.say(b"x" * 100)
    asked.writer.close()


async def breaks_a_chunk_off(asked: Asked) -> None:
    """Close the connection within a chunk."""
    asked.head("200 OK", "Transfer-Encoding: chunked")
    await asked.say(b"64\r\n" + b"x" * 100 + b"\r\n64\r\nxxx")
    asked.writer.close()


async def resets(asked: Asked) -> None:
    """Close the connection without the last chunk."""
    asked.head("200 OK", "Transfer-Encoding: chunked")
    await asked.say(b"64\r\n" + b"x" * 100 + b"\r\n")
    asked.writer.transport.abort()


@pytest.mark.parametrize("failing", [breaks_off, breaks_a_chunk_off, resets])
async def test_a_truncated_body_is_an_error_for_all_readers_and_not_stored(
    brain: Brain,
    origin: HttpOrigin,
    http_bucket: BucketInfo,
    failing: Callable[[Asked], Awaitable[None]],
) -> None:
    gate = Gate()

    async def held(asked: Asked) -> None:
        await gate.wait()
        await failing(asked)

    origin.handler = held
    asking = [asyncio.create_task(brain.get(http_bucket, "k")) for _ in range(20)]
    await gate.came.wait()
    gate.opened.set()
    outcomes = await asyncio.gather(*asking, return_exceptions=True)

    assert all(isinstance(outcome, OriginFailed) for outcome in outcomes)
    assert await brain.directory.find(http_bucket.id, "k") is None
    assert brain.kept == []
    assert brain.data_directory.used_bytes == 0


async def test_bytes_after_the_announced_length_are_ignored(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    async def long(asked: Asked) -> None:
        asked.head("200 OK", "Content-Length: 5")
        await asked.say(b"helloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        asked.writer.close()

    origin.handler = long
    assert await brain.get(http_bucket, "k") == b"hello"

    origin.handler = None
    origin.objects["/other"] = b"good"
    assert await brain.get(http_bucket, "other") == b"good"


async def test_a_body_without_length_or_chunks_is_passed_on_and_not_stored(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    async def unframed(asked: Asked) -> None:
        asked.head("200 OK")
        await asked.say(b"perhaps all")
        asked.writer.close()

    origin.handler = unframed

    assert await brain.get(http_bucket, "k") == b"perhaps all"
    await settled(brain)
    assert await brain.directory.find(http_bucket.id, "k") is None


@pytest.mark.parametrize("is_proper", [True, False])
async def test_over_tls_a_body_without_length_is_stored_only_after_a_proper_close(
    rows: Rows, tmp_path: Path, is_proper: bool
) -> None:
    trust, tls = certificates.issue(tmp_path, "127.0.0.1")

    async def unframed(asked: Asked) -> None:
        asked.head("200 OK", "Connection: close")
        await asked.say(b"perhaps all")
        if is_proper:
            asked.writer.close()
        else:
            # A middlebox may close the connection below TLS.
            asked.writer.transport.abort()

    async with (
        HttpOrigin(tls=tls, handler=unframed) as origin,
        running(rows.url, tmp_path / "brain", trust=trust) as brain,
    ):
        bucket = await brain.origin_bucket("http", {"url": origin.url})
        with contextlib.suppress(OriginFailed):
            assert await brain.get(bucket, "k") == b"perhaps all"
        await settled(brain)
        assert (await brain.directory.find(bucket.id, "k") is not None) is is_proper


async def test_http_origins_are_read_only(brain: Brain, http_bucket: BucketInfo) -> None:
    with pytest.raises(OriginReadOnly):
        await brain.put(http_bucket, "k", b"x", WrittenFields())
    with pytest.raises(OriginReadOnly):
        await brain.objects.delete(http_bucket, ["k"])
    with pytest.raises(OriginReadOnly):
        await brain.objects.list(http_bucket)


async def test_a_head_request_asks_the_origin(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    origin.objects["/k"] = b"text"

    found = await brain.objects.head(http_bucket, "k")

    assert (found.size, found.etag, found.sha256) == (4, "v1", b"")
    assert origin.count("/k", "HEAD") == 1
    await brain.get(http_bucket, "k")
    await settled(brain)
    assert (await brain.objects.head(http_bucket, "k")).sha256 == hashlib.sha256(b"text").digest()


@pytest.mark.parametrize("key", ["../secret", "a/../../secret", ".", "a/./b", "a/.."])
async def test_a_key_cannot_leave_the_origin_s_path(
    brain: Brain, origin: HttpOrigin, key: str
) -> None:
    bucket = await brain.origin_bucket("http", {"url": f"{origin.url}/public"}, prefix="site/")

    with pytest.raises(KeyRefused):
        await brain.objects.open(bucket, key)
    assert origin.asked == []


async def test_a_key_is_sent_as_an_escaped_path(brain: Brain, origin: HttpOrigin) -> None:
    bucket = await brain.origin_bucket("http", {"url": f"{origin.url}/public/"}, prefix="site/")
    key = "a?b=c#d%2e\r\nHost: evil/ü"
    origin.objects[f"/public/site/{key}"] = b"found"

    assert await brain.get(bucket, key) == b"found"
    assert origin.asked[0].target == ("/public/site/a%3Fb=c%23d%252e%0D%0AHost:%20evil/%C3%BC")


async def test_bytes_that_no_node_holds_are_fetched_again(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    data = bytes(range(256)) * 4096 * 5
    origin.objects["/k"] = data
    await brain.get(http_bucket, "k")
    await settled(brain)
    opened = await brain.objects.open(http_bucket, "k")
    brain.data_directory.blob_path(opened.version.sha256).unlink()

    assert await read(opened, Span(MIB + 5, 2 * MIB)) == data[MIB + 5 : 3 * MIB + 5]
    assert origin.count("/k") == 2


async def test_bytes_changed_at_the_origin_are_not_served_as_the_old_version(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    origin.objects["/k"] = b"a" * 3 * MIB
    await brain.get(http_bucket, "k")
    await settled(brain)
    opened = await brain.objects.open(http_bucket, "k")
    brain.data_directory.blob_path(opened.version.sha256).unlink()
    # Same length and ETag: only the digests differ.
    origin.objects["/k"] = b"a" * MIB + b"b" + b"a" * (2 * MIB - 1)
    body = aiter(opened.body())

    assert b"".join([await anext(body) for _ in range(MIB // BLOCK_BYTES)]) == b"a" * MIB
    with pytest.raises(Exception, match="changed while it was read"):
        await anext(body)


async def test_an_altered_copy_is_dropped_and_fetched_again(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo
) -> None:
    data = bytes(range(256)) * 4096 * 3
    origin.objects["/k"] = data
    await brain.get(http_bucket, "k")
    await settled(brain)
    opened = await brain.objects.open(http_bucket, "k")
    copy = brain.data_directory.blob_path(opened.version.sha256)
    flip(copy)

    assert await read(opened) == data
    await settled(brain)
    assert origin.count("/k") == 2
    assert copy.read_bytes() == data
