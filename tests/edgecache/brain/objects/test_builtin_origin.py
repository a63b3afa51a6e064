"""Objects in buckets with the built-in origin."""

import asyncio
import hashlib
import os
from typing import Any

import pytest

from edgecache.brain.core.errors import (
    BucketExists,
    BucketNotEmpty,
    KeyRefused,
    NoSuchBucket,
    OriginMissing,
    PreconditionFailed,
    StoreMissing,
)
from edgecache.brain.core.values import Conditions, Span, WrittenFields
from edgecache.brain.objects import builtin_origin
from edgecache.brain.stores.stored_blobs import SMALL_BYTES
from tests.edgecache.brain.brains import (
    ALICE,
    CHARLIE,
    MIB,
    PLAIN,
    Brain,
    Rows,
    buffered,
    read,
    stored_files,
)
from tests.edgecache.brain.objects.writes import put

HOSTILE = [
    "plain",
    "a/../../../etc/passwd",
    "../x",
    "..",
    ".",
    "/",
    "//",
    "a//b",
    "/lead",
    "trail/",
    "a\nb\r\tc\x01\x7f",
    "e\u0301 \u00e9",
    "\U0001f600/\U0010ffff",
    "%2e%2e/%00",
    "con.txt\\..\\x",
    "'; DROP TABLE brain_bucket; --",
    " space ",
    "x" * 1024,
    "\u00fc" * 512,
    "\U0001f600" * 256,
]


async def test_an_object_is_read_as_it_was_written(brain: Brain) -> None:
    bucket = await brain.bucket()
    fields = WrittenFields(
        "text/plain",
        {"cache-control": "no-cache"},
        {"owner": "älice"},
        {"crc32": "AAAAAA=="},
        (3, 2),
    )

    written = await brain.put(bucket, "greeting", b"hello", fields)
    opened = await brain.objects.open(bucket, "greeting")

    assert await read(opened) == b"hello"
    assert opened.is_hit
    assert opened.version == written
    assert written.sha256 == hashlib.sha256(b"hello").digest()
    assert written.etag == hashlib.md5(b"hello", usedforsecurity=False).hexdigest()
    assert (written.content_type, written.headers) == ("text/plain", {"cache-control": "no-cache"})
    assert (written.metadata, written.checksums) == ({"owner": "älice"}, {"crc32": "AAAAAA=="})
    assert written.parts == (3, 2)


async def test_cached_rows_equal_those_of_postgresql(brain: Brain) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"x", WrittenFields("a/b", {}, {"m": "1"}, {}, (1,)))

    remembered = await brain.directory.find(bucket.id, "k")
    brain.directory.index.clear()
    loaded = await brain.directory.find(bucket.id, "k")
    again = await brain.directory.find(bucket.id, "k")

    assert remembered == loaded == again
    assert len(brain.directory.index) == 1


async def test_any_key_is_stored_and_none_is_used_as_a_path(brain: Brain) -> None:
    bucket = await brain.bucket()

    for key in HOSTILE:
        await brain.put(bucket, key, key.encode())

    listed = [row.key for row in (await brain.objects.list(bucket)).objects]
    assert listed == sorted(HOSTILE, key=str.encode)
    files = [path for path in brain.data_directory.root.rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"lock"}
    for key in HOSTILE:
        assert await brain.get(bucket, key) == key.encode()
        await brain.objects.delete(bucket, [key])
        with pytest.raises(OriginMissing):
            await brain.objects.open(bucket, key)


async def test_an_invalid_key_is_refused(brain: Brain) -> None:
    bucket = await brain.bucket()

    for key in ("", "a\0b", "x" * 1025, "\u00fc" * 513, "\ud800"):
        with pytest.raises(KeyRefused):
            await brain.put(bucket, key, b"")
        for call in (brain.objects.open(bucket, key), brain.objects.delete(bucket, [key])):
            with pytest.raises(KeyRefused):
                await call


async def test_a_range_returns_only_its_bytes(brain: Brain) -> None:
    bucket = await brain.bucket()
    data = bytes(range(256)) * 4096 * 3
    await brain.put(bucket, "big", data)

    assert await brain.get(bucket, "big", Span(MIB - 3, 7)) == data[MIB - 3 : MIB + 4]
    assert await brain.get(bucket, "big", Span(0, 0)) == b""
    assert await brain.get(bucket, "big") == data


async def test_an_object_may_be_empty(brain: Brain) -> None:
    bucket = await brain.bucket()

    found = await brain.put(bucket, "empty", b"")

    assert (found.size, found.etag) == (0, "d41d8cd98f00b204e9800998ecf8427e")
    assert await brain.get(bucket, "empty") == b""


async def test_one_of_many_concurrent_creations_succeeds(brain: Brain) -> None:
    bucket = await brain.bucket()
    create = Conditions(if_none_match="*")

    outcomes = await asyncio.gather(
        *(brain.put(bucket, "k", b"%d" % n, conditions=create) for n in range(12)),
        return_exceptions=True,
    )

    won = [n for n, outcome in enumerate(outcomes) if not isinstance(outcome, Exception)]
    lost = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(won) == 1
    assert all(isinstance(outcome, PreconditionFailed) for outcome in lost)
    assert await brain.get(bucket, "k") == b"%d" % won[0]


async def test_if_match_limits_a_write_to_a_version(brain: Brain) -> None:
    bucket = await brain.bucket()
    first = await brain.put(bucket, "k", b"one")
    second = await brain.put(bucket, "k", b"two", conditions=Conditions(if_match=first.etag))

    with pytest.raises(PreconditionFailed):
        await brain.put(bucket, "k", b"three", conditions=Conditions(if_match=first.etag))
    with pytest.raises(OriginMissing):
        await brain.put(bucket, "gone", b"", conditions=Conditions(if_match=first.etag))

    assert await brain.get(bucket, "k") == b"two"
    assert second.generation > first.generation


async def test_a_copy_of_what_is_deleted_meanwhile_has_bytes_or_is_refused(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket, others = await brain.bucket(), await brain.bucket(tenant=CHARLIE)
    body = b"x" * (SMALL_BYTES + 1)
    await brain.put(bucket, "k", body)
    await brain.put(others, "k", body)
    find = builtin_origin._find

    async def late(*args: Any) -> Any:
        monkeypatch.setattr(builtin_origin, "_find", find)
        row = await find(*args)
        await brain.objects.delete(bucket, ["k"])
        await brain.garbage_collector.round()
        return row

    monkeypatch.setattr(builtin_origin, "_find", late)
    with pytest.raises(OriginMissing):
        await brain.objects.copy((bucket, "k"), bucket, "c")
    with pytest.raises(OriginMissing):
        await brain.objects.head(bucket, "c")
    assert await brain.get(others, "k") == body


async def test_a_copy_shares_its_source_s_bytes_and_outlives_it(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    target = await brain.bucket("target")
    await brain.put(bucket, "k", b"shared", WrittenFields("a/b"))

    copied = await brain.objects.copy((bucket, "k"), target, "c")
    await brain.objects.delete(bucket, ["k"])
    await brain.garbage_collector.round()

    assert copied.content_type == "a/b"
    assert rows.value("SELECT count(*) FROM brain_blob") == 1
    assert await brain.get(target, "c") == b"shared"


async def test_deleting_an_absent_key_is_not_an_error(brain: Brain) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"x")

    await brain.objects.delete(bucket, ["k", "k", "never"])
    await brain.objects.delete(bucket, ["k"])

    assert (await brain.objects.list(bucket)).objects == ()


async def test_many_keys_are_deleted_in_one_call(brain: Brain) -> None:
    bucket = await brain.bucket()
    names = [f"k{n:04}" for n in range(300)]
    await asyncio.gather(
        *(brain.objects.put(bucket, name, buffered(brain, b"same"), PLAIN) for name in names)
    )

    await brain.objects.delete(bucket, names)

    assert (await brain.objects.list(bucket)).objects == ()
    with pytest.raises(OriginMissing):
        await brain.objects.open(bucket, names[7])


async def test_buckets_are_isolated_between_environments(brain: Brain) -> None:
    mine = await brain.bucket("docs", ALICE)
    theirs = await brain.bucket("docs", CHARLIE)
    await brain.put(mine, "k", b"mine")

    with pytest.raises(BucketExists):
        await brain.bucket("docs", ALICE)
    with pytest.raises(OriginMissing):
        await brain.objects.open(theirs, "k")
    with pytest.raises(NoSuchBucket):
        await brain.buckets.delete(CHARLIE, mine.id)
    with pytest.raises(BucketNotEmpty):
        await brain.buckets.delete(ALICE, mine.id)

    await brain.objects.delete(mine, ["k"])
    await brain.buckets.delete(ALICE, mine.id)
    assert await brain.directory.bucket(ALICE, "docs") is None
    with pytest.raises(NoSuchBucket):
        await brain.put(mine, "k", b"late")


async def test_a_write_continues_after_its_caller_was_cancelled(brain: Brain) -> None:
    bucket = await brain.bucket()
    body = buffered(brain, b"kept")
    writing = asyncio.create_task(brain.objects.put(bucket, "k", body, WrittenFields()))
    await asyncio.sleep(0)

    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    await brain.objects._running.finish()

    assert await brain.get(bucket, "k") == b"kept"


@pytest.mark.parametrize("size", [5, 20_000])
async def test_lost_bytes_are_an_error_and_not_an_empty_body(
    brain: Brain, rows: Rows, size: int
) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"x" * size)
    rows.run("DELETE FROM brain_smallbody")
    for file in stored_files(brain.data_directory.root):
        file.unlink()

    opened = await brain.objects.open(bucket, "k")

    with pytest.raises(Exception, match="not where they should be"):
        await read(opened)


async def test_an_altered_row_is_an_error(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"bytes")
    rows.run("UPDATE brain_smallbody SET body = 'other'")

    with pytest.raises(StoreMissing):
        await brain.get(bucket, "k")


async def test_an_altered_file_is_an_error_until_its_bytes_are_written_again(brain: Brain) -> None:
    size = 20_000
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"x" * size)
    for file in stored_files(brain.data_directory.root):
        file.write_bytes(b"y" * size)

    with pytest.raises(StoreMissing):
        await brain.get(bucket, "k")
    await brain.put(bucket, "other", b"x" * size)

    assert await brain.get(bucket, "k") == b"x" * size


@pytest.mark.parametrize("size", [0, SMALL_BYTES, SMALL_BYTES + 1])
async def test_small_bodies_are_rows_and_others_are_files(
    brain: Brain, rows: Rows, size: int
) -> None:
    bucket = await brain.bucket()
    body = os.urandom(size)
    await brain.put(bucket, "file", body)
    await put(brain, bucket, "memory", body)

    is_small = size <= SMALL_BYTES
    assert rows.count("smallbody") == (1 if is_small else 0)
    await brain.garbage_collector.round()
    assert len(stored_files(brain.data_directory.root)) == (0 if is_small else 1)
    assert [await brain.get(bucket, key) for key in ("file", "memory")] == [body, body]
