"""Purges by tag: what bears the tag is gone at once, in every brain, and nothing else."""

import asyncio
from collections.abc import Sequence

import pytest

from edgecache.brain.core.errors import DatabaseUnavailable, Invalid, NoSuchBucket
from edgecache.brain.core.values import BucketInfo, PurgeResult, WrittenFields
from edgecache.brain.directory import commits
from edgecache.brain.directory.purges import TAGGED, PurgeCount, Targets
from tests.edgecache.brain.brains import ALICE, CHARLIE, Brain, Rows, settled
from tests.edgecache.brain.directory.test_purges import names
from tests.edgecache.brain.http_origin import Asked, Gate, Handler, HttpOrigin

RED = WrittenFields(headers={"x-amz-tagging": "colour=red"})


async def fill(brain: Brain, bucket: BucketInfo, keys: Sequence[str]) -> None:
    """Write objects with the tag ``colour=red``."""
    for key in keys:
        await brain.put(bucket, key, f"{bucket.name}/{key}".encode(), RED)


def tagged(bucket: BucketInfo, *tags: str) -> Targets:
    """Return a purge of tags."""
    return Targets({}, [], tags={bucket.id: [f"{bucket.id}/{tag}" for tag in tags]})


def behind(gate: Gate, field: str) -> Handler:
    """Return a handler that answers "old", with a header field, when a gate opens."""

    async def handle(asked: Asked) -> None:
        await gate.wait()
        await asked.answer(b"old", field)

    return handle


async def test_another_tenant_s_tags_are_not_purged(brain: Brain) -> None:
    mine, theirs = await brain.bucket("docs", ALICE), await brain.bucket("docs", CHARLIE)
    only_theirs = await brain.bucket("secret", CHARLIE)
    for bucket in (mine, theirs, only_theirs):
        await fill(brain, bucket, ["k"])

    for name in (f"{theirs.id}/colour=red", f"docs/{theirs.id}/colour=red"):
        with pytest.raises((Invalid, NoSuchBucket)):
            await brain.purges.purge(ALICE, tags=[name, "secret/colour=red"])
    assert await brain.purges.purge(ALICE, tags=["docs/colour=red"]) == PurgeResult(1, 0, 0)

    assert await names(brain, theirs) == await names(brain, only_theirs) == {"k"}
    assert (await brain.objects.open(theirs, "k")).is_hit


@pytest.mark.parametrize(
    "tag",
    ["docs", "docs/", "/colour=red", "colour=red", "docs/ x", "docs/" + "é" * 513, "https://x/"],
)
async def test_a_tag_that_can_name_nothing_is_refused(brain: Brain, tag: str) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, ["k"])

    with pytest.raises(Invalid) as refused:
        await brain.purges.purge(ALICE, tags=["docs/colour=red", tag])

    assert [error.field for error in refused.value.errors] == ["tags"]
    assert await names(brain, bucket) == {"k"}


@pytest.mark.parametrize("few", [64, 2], ids=["few", "many"])
async def test_tags_keys_and_a_prefix_purge_their_union(
    brain: Brain, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.directory.commits.KEYS_LOCKED", few)
    monkeypatch.setattr("edgecache.brain.directory.purges.STEP_ROWS", 2)
    bucket = await brain.bucket()
    await fill(brain, bucket, ["a/1", "a/2", "b", "c", "d"])
    await brain.put(bucket, "e", b"x", WrittenFields(headers={"x-amz-tagging": "a%2Fb=%C3%A9%20"}))
    await brain.put(bucket, "colour=red", b"x")
    await brain.put(bucket, "z", b"x", WrittenFields(headers={"x-amz-tagging": "colour=reddish"}))
    wanted = {
        "keys": ["docs/b"],
        "prefix": "docs/a/",
        "tags": ["docs/colour=red", "docs/colour=red", "docs/none"],
    }

    preview = await brain.purges.purge(ALICE, **wanted, preview=True)  # type: ignore[arg-type]  # one dict for both calls
    result = await brain.purges.purge(ALICE, **wanted)  # type: ignore[arg-type]  # one dict for both calls

    assert result == preview == PurgeResult(5, 0, 0)
    assert await names(brain, bucket) == {"e", "z", "colour=red"}
    # The built-in origin keeps the objects.
    assert await brain.get(bucket, "c") == b"docs/c"


async def test_new_tags_of_an_object_replace_the_old_ones(brain: Brain) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, ["k", "l"])
    await brain.objects.tag(bucket, "k", "colour=blue")
    await brain.put(bucket, "l", b"untagged")

    assert await brain.purges.purge(ALICE, tags=["docs/colour=red"]) == PurgeResult(0, 0, 0)
    assert await brain.purges.purge(ALICE, tags=["docs/colour=blue"]) == PurgeResult(1, 0, 0)
    # It has its tags again when it is cached again.
    await brain.get(bucket, "k")
    assert await brain.purges.purge(ALICE, tags=["docs/colour=blue"]) == PurgeResult(1, 0, 0)


@pytest.mark.parametrize("few", [64, 1], ids=["few", "many"])
async def test_what_is_tagged_is_gone_in_every_brain(
    brain: Brain, other: Brain, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.directory.commits.KEYS_LOCKED", few)
    bucket = await brain.bucket()
    await fill(brain, bucket, ["a", "b"])
    await brain.put(bucket, "c", b"x")
    for each in (brain, other):
        for key in ("a", "b", "c"):
            assert await each.directory.find(bucket.id, key) is not None

    await brain.purges.hide_everywhere(tagged(bucket, "colour=red"), PurgeCount())

    for each in (brain, other):
        found = [await each.directory.find(bucket.id, key) for key in ("a", "b", "c")]
        assert [version is None for version in found] == [True, True, False]


async def test_a_purge_by_tag_of_a_dead_brain_is_finished_by_another(
    brain: Brain, other: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.directory.commits.KEYS_LOCKED", 1)
    bucket = await brain.bucket()
    await fill(brain, bucket, ["a", "b"])
    await brain.put(bucket, "c", b"x")
    await other.purges.hide_everywhere(tagged(bucket, "colour=red"), PurgeCount())
    assert rows.value("SELECT count(*) FROM brain_cachedobject") == 3
    await other.coherence.stop()

    assert await brain.directory.find(bucket.id, "a") is None
    await brain.garbage_collector.round()

    assert await names(brain, bucket) == {"c"}
    assert rows.value("SELECT count(*) FROM brain_purgerecord WHERE NOT is_done") == 0


async def test_an_unconfirmed_purge_by_tag_leaves_nothing(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, ["a"])

    async def not_confirmed(*_pending: object) -> None:
        raise DatabaseUnavailable

    monkeypatch.setattr(brain.coherence, "_wait_until_seen", not_confirmed)
    with pytest.raises(DatabaseUnavailable):
        await brain.purges.purge(ALICE, tags=["docs/colour=red"])

    assert await names(brain, bucket) == set()
    assert not brain.purges.active
    assert rows.value("SELECT count(*) FROM brain_purgerecord WHERE NOT is_done") == 0


@pytest.mark.parametrize("field", ["Cache-Tag: a,page-1 , b", "Surrogate-Key: a page-1  b"])
async def test_a_fetch_from_before_the_purge_is_not_stored(
    brain: Brain, origin: HttpOrigin, field: str
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    gate = Gate()
    origin.handler = behind(gate, field)
    reading = asyncio.create_task(brain.get(bucket, "k"))
    await gate.came.wait()
    assert await brain.purges.purge(ALICE, tags=["docs/page-1"]) == PurgeResult(0, 0, 0)
    origin.handler = None
    origin.objects["/k"] = b"new"
    # A request after the purge does not join a fetch from before it.
    late = await brain.get(bucket, "k")
    gate.opened.set()

    assert (await reading, late) == (b"old", b"new")
    await settled(brain)
    assert await brain.get(bucket, "k") == b"new"


async def test_a_fetch_of_another_brain_from_before_the_purge_is_not_stored(
    brain: Brain, other: Brain, origin: HttpOrigin
) -> None:
    other.data_directory.root = brain.data_directory.root
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    gate = Gate()
    origin.handler = behind(gate, "Cache-Tag: page-1")
    reading = asyncio.create_task(brain.get(bucket, "k"))
    await gate.came.wait()
    await other.purges.purge(ALICE, tags=["docs/page-1"])
    # The purging brain ends: its record of the purge counts all the same.
    await other.coherence.stop()
    origin.handler = None
    origin.objects["/k"] = b"new"
    gate.opened.set()

    assert await reading == b"old"
    await settled(brain)
    assert await names(brain, bucket) == set()
    assert await brain.get(bucket, "k") == b"new"


async def test_a_fetch_with_other_tags_is_stored(brain: Brain, origin: HttpOrigin) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    gate = Gate()
    origin.handler = behind(gate, "Cache-Tag: page-10")
    reading = asyncio.create_task(brain.get(bucket, "k"))
    await gate.came.wait()
    await brain.purges.purge(ALICE, tags=["docs/page-1"])
    gate.opened.set()
    await reading
    await settled(brain)

    assert await names(brain, bucket) == {"k"}


async def test_tags_beyond_the_limits_are_ignored(
    brain: Brain, origin: HttpOrigin, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.http_caching.cache_tags.MAX_TAGS", 2)
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    longest = "é" * 512

    async def answer(asked: Asked) -> None:
        field = f"Cache-Tag: {longest}x, , {longest}, {longest}, two, three"
        await asked.answer(b"x", field.encode().decode("latin-1"))

    origin.handler = answer
    # The origin's fields are written as UTF-8 by the test's server: here byte for byte.
    monkeypatch.setattr(Asked, "head", _head)
    await brain.get(bucket, "k")
    await settled(brain)

    (stored,) = rows.all("SELECT tags FROM brain_cachedobject")
    assert stored[0] == [f"{bucket.id}/{longest}", f"{bucket.id}/two"]
    assert await brain.purges.purge(ALICE, tags=[f"docs/{longest}"]) == PurgeResult(1, 0, 0)


def _head(asked: Asked, status: str, *fields: str) -> None:
    asked.writer.write("\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode("latin-1"))


async def test_a_purge_by_tag_reads_the_index_of_tags_alone(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, ["a"])
    rows.run(
        "INSERT INTO brain_cachedobject (bucket_id, key, blob_id, etag, content_type, headers,"
        " metadata, checksums, parts, last_modified, generation, http, tags)"
        " SELECT bucket_id, key || n, blob_id, etag, content_type, headers, metadata, checksums,"
        " parts, last_modified, generation, http,"
        " CASE WHEN n %% 2 = 0 THEN ARRAY[bucket_id || '/even'] END"
        " FROM brain_cachedobject, generate_series(1, 3000) n"
    )
    rows.run("ANALYZE brain_cachedobject")

    async with brain.database.transaction() as change:
        await change.run(commits.BY_INDEX)
        values = [[f"{bucket.id}/even"], 2**62, 65]
        plan = await change.all(f"EXPLAIN {TAGGED}", values)

    assert "cached_object_tags" in str(plan)
    assert "Filter: ((tags" not in str(plan)
    assert (await brain.purges.purge(ALICE, tags=["docs/even"])).objects_purged == 1500
