"""Buckets with an S3 origin."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import suppress

import psycopg
import pytest

from edgecache.brain.core.errors import (
    OriginDenied,
    OriginFailed,
    OriginMissing,
    PreconditionFailed,
)
from edgecache.brain.core.values import BucketInfo, Conditions, KeyPage, Span, WrittenFields
from tests.edgecache.brain.brains import Brain, Rows, read, settled
from tests.edgecache.brain.http_origin import Asked
from tests.edgecache.brain.objects.test_builtin_origin import HOSTILE
from tests.edgecache.brain.s3_origin import S3Origin, Stored


@pytest.fixture
async def origin() -> AsyncIterator[S3Origin]:
    """Return an S3 origin."""
    async with S3Origin() as server:
        yield server
    assert server.wrong == []


@pytest.fixture
async def bucket(brain: Brain, origin: S3Origin) -> BucketInfo:
    """Return a bucket with that origin."""
    return await brain.origin_bucket("s3", origin.config, origin.secret)


async def test_a_write_is_sent_to_the_origin(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    fields = WrittenFields("text/plain", {"cache-control": "max-age=9"}, {"owner": "alice"})

    written = await brain.put(bucket, "k", b"hello", fields)
    opened = await brain.objects.open(bucket, "k")

    assert origin.store["k"].data == b"hello"
    assert origin.store["k"].headers == {
        "content-type": "text/plain",
        "cache-control": "max-age=9",
        "x-amz-meta-owner": "alice",
    }
    assert (opened.is_hit, opened.version) == (True, written)
    assert await read(opened) == b"hello"
    assert origin.count("/store/k") == 0


@pytest.mark.parametrize("keys", [["k"], ["k", "l"]])
async def test_a_delete_that_the_origin_does_not_answer_is_sent_once(
    brain: Brain, origin: S3Origin, bucket: BucketInfo, keys: list[str]
) -> None:
    async def act_and_leave(asked: Asked) -> None:
        asked.writer.close()

    origin.handler = act_and_leave

    with pytest.raises(OriginFailed):
        await brain.objects.delete(bucket, keys)
    assert len(origin.asked) == 1


async def test_a_cold_range_is_asked_for_as_a_range_and_lost_bytes_too(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    origin.takes_ranges = True
    data = bytes(range(256)) * 40_000
    origin.store["k"] = Stored(data)
    opened = await brain.objects.open(bucket, "k", ranged=(("range", "bytes=9000000-9000009"),))
    assert await read(opened, Span(9_000_000, 10)) == data[9_000_000:9_000_010]
    assert (opened.version.size, opened.version.etag) == (len(data), origin.store["k"].etag)

    await brain.get(bucket, "k")
    await settled(brain)
    kept = await brain.objects.open(bucket, "k")
    brain.data_directory.blob_path(kept.version.sha256).unlink()
    assert await read(kept, Span(9_000_000, 10)) == data[9_000_000:9_000_010]
    last = origin.asked[-1].headers
    # The whole blocks, and of this version only.
    assert last["if-range"] == f'"{origin.store["k"].etag}"'
    assert last["range"].startswith("bytes=8")


async def test_an_object_of_the_origin_is_read_with_its_headers(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    origin.store["k"] = Stored(
        b"there", {"Content-Type": "a/b", "Expires": "0", "x-amz-meta-name": "värde"}
    )

    opened = await brain.objects.open(bucket, "k")

    assert await read(opened) == b"there"
    assert opened.version.etag == hashlib.md5(b"there", usedforsecurity=False).hexdigest()
    assert opened.version.last_modified.timestamp() == 1e9
    assert (opened.version.content_type, opened.version.headers) == ("a/b", {"expires": "0"})
    assert opened.version.metadata == {"name": "värde"}


async def test_any_key_is_used_unchanged_at_the_origin(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    for key in HOSTILE:
        await brain.put(bucket, key, b"x")

        assert list(origin.store) == [key]
        assert [row.key for row in (await brain.objects.list(bucket)).objects] == [key]
        assert (await brain.objects.head(bucket, key)).size == 1
        await brain.objects.delete(bucket, [key])
        assert origin.store == {}


async def test_a_bucket_is_limited_to_its_prefix(brain: Brain, origin: S3Origin) -> None:
    bucket = await brain.origin_bucket("s3", origin.config, origin.secret, prefix="sub/dir-")
    origin.store["other"] = Stored(b"not ours")

    await brain.put(bucket, "../k", b"x")
    await brain.put(bucket, "k", b"x")

    assert set(origin.store) == {"other", "sub/dir-../k", "sub/dir-k"}
    listing = await brain.objects.list(bucket, delimiter="/")
    assert ([row.key for row in listing.objects], listing.prefixes) == (["k"], ("../",))


async def test_listing_pages_are_consecutive(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    names = ["a", "b/1", "b/2", "b/3/4", "b0", "c/", "c/1", "d e+f", "\u00fc/x", "z"]
    origin.store.update({name: Stored(b"x") for name in names})

    for limit in (1, 2, 3, 100):
        pages = [page async for page in every_page(brain, bucket, "", "/", limit)]
        assert [row.key for page in pages for row in page.objects] == ["a", "b0", "d e+f", "z"]
        assert [group for page in pages for group in page.prefixes] == ["b/", "c/", "\u00fc/"]
    plain = [page async for page in every_page(brain, bucket, "b", "", 2)]
    assert [row.key for page in plain for row in page.objects] == ["b/1", "b/2", "b/3/4", "b0"]


async def every_page(
    brain: Brain, bucket: BucketInfo, prefix: str, delimiter: str, limit: int
) -> AsyncIterator[KeyPage]:
    """Return all keys of a listing, page by page."""
    start = ""
    for _ in range(100):
        page = await brain.objects.list(bucket, prefix, start, delimiter, limit)
        assert len(page.objects) + len(page.prefixes) <= limit
        yield page
        if page.next is None:
            return
        start = page.next
    raise AssertionError("the listing has no end")


async def test_many_objects_are_deleted_in_one_request(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    keys = [f"k{n}<&>" for n in range(50)]
    origin.store.update({key: Stored(b"x") for key in keys})

    await brain.objects.delete(bucket, keys)

    assert origin.store == {}
    assert [asked.method for asked in origin.asked] == ["POST"]


async def test_conditions_are_decided_by_the_origin(
    brain: Brain, origin: S3Origin, bucket: BucketInfo, rows: Rows
) -> None:
    origin.store["k"] = Stored(b"there")
    etag = origin.store["k"].etag

    for conditions in (Conditions(if_none_match="*"), Conditions(if_match="0" * 32)):
        with pytest.raises(PreconditionFailed):
            await brain.put(bucket, "k", b"x", conditions=conditions)
    with pytest.raises(OriginMissing):
        await brain.put(bucket, "gone", b"x", conditions=Conditions(if_match=etag))
    await brain.put(bucket, "k", b"new", conditions=Conditions(if_match=etag))

    assert origin.store["k"].data == b"new"
    assert rows.value("SELECT count(*) FROM brain_pendingwrite") == 0


async def test_a_condition_that_does_not_hold_at_the_origin_ends_what_was_known(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    etag = (await brain.put(bucket, "k", b"old")).etag
    origin.store["k"] = Stored(b"changed elsewhere")

    with pytest.raises(PreconditionFailed):
        await brain.put(bucket, "k", b"new", conditions=Conditions(if_match=etag))

    assert await brain.get(bucket, "k") == b"changed elsewhere"


async def test_an_object_whose_connection_breaks_off_is_not_stored(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    async def break_off(asked: Asked) -> None:
        asked.head("200 OK", 'ETag: "abc"')
        await asked.say(b"only a pa")
        asked.writer.close()

    origin.handler = break_off
    for _ in range(2):
        with suppress(OriginFailed):
            await brain.get(bucket, "k")
        await settled(brain)

    assert origin.count("/store/k") == 2


async def test_wrong_credentials_are_a_specific_error(brain: Brain) -> None:
    async with S3Origin() as origin:
        bucket = await brain.origin_bucket(
            "s3", origin.config, {"access_key_id": "AKIAORIGIN", "secret_access_key": "no"}
        )
        for call in (
            brain.objects.open(bucket, "k"),
            brain.put(bucket, "k", b"x"),
            brain.objects.list(bucket),
            brain.objects.head(bucket, "k"),
        ):
            with pytest.raises(OriginDenied):
                await call


async def test_a_write_with_an_unknown_outcome_leaves_nothing_stale(
    brain: Brain, origin: S3Origin, bucket: BucketInfo, rows: Rows
) -> None:
    await brain.put(bucket, "k", b"old")

    async def takes_it_and_dies(asked: Asked) -> None:
        origin.handler = None
        origin.store["k"] = Stored(asked.body)
        asked.writer.transport.abort()

    origin.handler = takes_it_and_dies
    with pytest.raises(OriginFailed):
        await brain.put(bucket, "k", b"new")

    assert await brain.get(bucket, "k") == b"new"
    assert rows.value("SELECT count(*) FROM brain_pendingwrite") == 0


async def test_overlapping_writes_end_in_the_origin_s_state(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    first_is_in, second_is_done = asyncio.Event(), asyncio.Event()

    async def reordering(asked: Asked) -> None:
        if asked.body == b"first":
            origin.store["k"] = Stored(b"first")
            first_is_in.set()
            # The response is late: another write has completed before it.
            await second_is_done.wait()
            await asked.answer(b"", 'ETag: "first"')
        else:
            await origin._answer(asked)

    origin.handler = reordering
    first = asyncio.create_task(brain.put(bucket, "k", b"first"))
    await first_is_in.wait()
    await brain.put(bucket, "k", b"second")
    assert await brain.get(bucket, "k") == b"second"
    second_is_done.set()
    await first

    assert await brain.get(bucket, "k") == b"second"
    assert origin.store["k"].data == b"second"


async def test_a_running_read_does_not_bring_back_a_replaced_version(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    origin.store["k"] = Stored(b"old")
    was_read, go_on = asyncio.Event(), asyncio.Event()

    async def slow(asked: Asked) -> None:
        if asked.method == "GET":
            origin.handler = None
            was_read.set()
            await go_on.wait()
            await asked.answer(b"old")
        else:
            await origin._answer(asked)

    origin.handler = slow
    reading = asyncio.create_task(brain.get(bucket, "k"))
    await was_read.wait()
    await brain.put(bucket, "k", b"new")
    late = await brain.get(bucket, "k")
    go_on.set()

    assert await reading == b"old"
    await settled(brain)
    assert (late, await brain.get(bucket, "k")) == (b"new", b"new")


@pytest.mark.parametrize("is_cached", [True, False])
async def test_a_running_read_does_not_bring_back_a_deleted_object(
    brain: Brain, origin: S3Origin, bucket: BucketInfo, is_cached: bool
) -> None:
    origin.store["k"] = Stored(b"old")
    if is_cached:
        await brain.get(bucket, "k")
        await settled(brain)
        brain.data_directory.blob_path(hashlib.sha256(b"old").digest()).unlink()
    was_read, go_on = asyncio.Event(), asyncio.Event()

    async def slow(asked: Asked) -> None:
        if asked.method == "GET":
            was_read.set()
            await go_on.wait()
            origin.handler = None
            await asked.answer(b"old", f'ETag: "{Stored(b"old").etag}"')
        else:
            await origin._answer(asked)

    origin.handler = slow
    reading = asyncio.create_task(brain.get(bucket, "k"))
    await was_read.wait()
    await brain.objects.delete(bucket, ["k"])
    go_on.set()

    assert await reading == b"old"
    await settled(brain)
    with pytest.raises(OriginMissing):
        await brain.objects.open(bucket, "k")


async def test_a_key_is_not_cached_during_a_write(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    origin.store["k"] = Stored(b"old")
    is_asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(asked: Asked) -> None:
        if asked.method == "PUT":
            is_asked.set()
            await go_on.wait()
        await origin._answer(asked)

    origin.handler = slow
    writing = asyncio.create_task(brain.put(bucket, "k", b"new"))
    await is_asked.wait()
    assert await brain.get(bucket, "k") == b"old"
    await settled(brain)
    assert await brain.directory.find(bucket.id, "k") is None
    go_on.set()
    await writing

    assert await brain.get(bucket, "k") == b"new"


async def test_the_pending_write_of_a_dead_brain_is_settled_by_another(
    brain: Brain, other: Brain, origin: S3Origin, bucket: BucketInfo, rows: Rows
) -> None:
    await brain.put(bucket, "k", b"old")
    # The other brain's write reached the origin; then it died.
    await other.objects.writes._begin(bucket, ["k"])
    origin.store["k"] = Stored(b"new")
    await brain.garbage_collector.round()
    assert rows.value("SELECT count(*) FROM brain_pendingwrite") == 1
    await other.coherence.stop()
    await brain.garbage_collector.round()

    assert rows.value("SELECT count(*) FROM brain_pendingwrite") == 0
    assert await brain.get(bucket, "k") == b"new"


async def test_a_deletion_that_could_not_be_recorded_is_settled_later(
    brain: Brain, origin: S3Origin, bucket: BucketInfo, rows: Rows
) -> None:
    await brain.put(bucket, "k", b"old")

    async def loses_the_table(asked: Asked) -> None:
        rows.run("ALTER TABLE brain_purgerecord RENAME TO away")
        origin.handler = None
        await origin._answer(asked)

    origin.handler = loses_the_table
    with pytest.raises(psycopg.errors.UndefinedTable):
        await brain.objects.delete(bucket, ["k"])
    assert rows.value("SELECT count(*) FROM brain_pendingwrite") == 1
    rows.run("ALTER TABLE away RENAME TO brain_purgerecord")
    await brain.garbage_collector.round()

    assert rows.value("SELECT count(*) FROM brain_pendingwrite") == 0
    with pytest.raises(OriginMissing):
        await brain.get(bucket, "k")


async def test_a_copy_from_a_bucket_of_another_origin_is_sent_to_the_origin(
    brain: Brain, origin: S3Origin, bucket: BucketInfo
) -> None:
    built_in = await brain.bucket("builtin")
    await brain.put(built_in, "k", b"bytes", WrittenFields("a/b"))

    await brain.objects.copy((built_in, "k"), bucket, "copy")
    await brain.objects.copy((bucket, "copy"), built_in, "back")

    assert origin.store["copy"].data == b"bytes"
    assert origin.store["copy"].headers["content-type"] == "a/b"
    assert await brain.get(built_in, "back") == b"bytes"


async def test_a_removed_origin_gets_no_more_requests(
    brain: Brain, origin: S3Origin, bucket: BucketInfo, rows: Rows
) -> None:
    await brain.put(bucket, "k", b"x")
    async with S3Origin() as moved:
        moved.store["new"] = Stored(b"from there")
        rows.run(
            "UPDATE brain_origin SET config = config || %s::jsonb",
            [f'{{"endpoint": "{moved.url}"}}'],
        )
        async with brain.coherence.transaction() as change:
            change.announce("origin", bucket.origin_id or 0)

        assert await brain.get(bucket, "new") == b"from there"
