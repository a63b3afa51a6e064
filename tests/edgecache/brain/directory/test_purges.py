"""Purges: purged objects are deleted and do not return, and the counts are exact."""

import asyncio
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from common.ids import uuid7
from edgecache.brain.core.errors import DatabaseUnavailable, Invalid, OriginMissing
from edgecache.brain.core.values import BucketInfo, PurgeResult
from edgecache.brain.directory.purges import PurgeCount, Targets
from tests.edgecache.brain.brains import ALICE, CHARLIE, Brain, Rows, settled, until
from tests.edgecache.brain.http_origin import Asked, HttpOrigin

NOTHING = PurgeResult(0, 0, 0)


async def fill(brain: Brain, bucket: BucketInfo, *keys: str, size: int = 10) -> None:
    """Write objects with different bytes."""
    for key in keys:
        await brain.put(bucket, key, f"{bucket.name}/{key}".encode().ljust(size, b"."))


async def names(brain: Brain, bucket: BucketInfo) -> set[str]:
    """Return the keys in the directory."""
    rows = await brain.database.all(
        "SELECT key FROM brain_cachedobject WHERE bucket_id = %s", [bucket.id]
    )
    return {row.key for row in rows}


async def place(brain: Brain, bucket: BucketInfo, key: str, *nodes: UUID) -> None:
    """Record that nodes hold an object."""
    found = await brain.directory.find(bucket.id, key)
    assert found is not None
    await brain.directory.add_locations({found.sha256: nodes})


async def test_keys_and_a_prefix_purge_their_union(brain: Brain) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, "a", "b/1", "b/2", "b", "c")

    preview = await brain.purges.purge(
        ALICE, keys=["docs/a", "docs/b/1", "docs/none"], prefix="docs/b/", preview=True
    )
    result = await brain.purges.purge(
        ALICE, keys=["docs/a", "docs/b/1", "docs/none"], prefix="docs/b/"
    )

    assert result == preview == PurgeResult(3, 0, 0)
    assert await names(brain, bucket) == {"b", "c"}


async def test_a_prefix_without_a_slash_is_refused(brain: Brain) -> None:
    docs, docs2 = [await brain.bucket(name) for name in ("docs", "docs2")]
    for bucket in (docs, docs2):
        await fill(brain, bucket, "k")

    for prefix in ("docs", "do"):
        with pytest.raises(Invalid):
            await brain.purges.purge(ALICE, prefix=prefix)
    assert await names(brain, docs) == await names(brain, docs2) == {"k"}
    assert await brain.purges.purge(ALICE, everything=True) == PurgeResult(2, 0, 0)


@pytest.mark.parametrize("prefix", ["docs/50%", "docs/a_", "docs/\\", "docs/'"])
async def test_special_characters_of_a_prefix_are_literal(brain: Brain, prefix: str) -> None:
    bucket = await brain.bucket()
    hit = prefix.removeprefix("docs/") + "x"
    await fill(brain, bucket, hit, "50x", "abx", "z")

    assert await brain.purges.purge(ALICE, prefix=prefix) == PurgeResult(1, 0, 0)
    assert await names(brain, bucket) == {"50x", "abx", "z"}


async def test_an_empty_selection_purges_nothing(brain: Brain) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, "k")

    assert await brain.purges.purge(ALICE) == NOTHING
    assert await names(brain, bucket) == {"k"}


async def test_another_tenant_s_objects_are_not_purged(brain: Brain) -> None:
    mine = await brain.bucket("docs", ALICE)
    theirs = await brain.bucket("docs", CHARLIE)
    for bucket in (mine, theirs):
        await fill(brain, bucket, "k")

    for purge in ({"everything": True}, {"prefix": "docs/"}, {"keys": ["docs/k"]}):
        await brain.purges.purge(ALICE, **purge)

    assert await names(brain, theirs) == {"k"}
    assert (await brain.objects.open(theirs, "k")).is_hit


async def test_objects_of_the_built_in_origin_are_kept(brain: Brain) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, "k")

    await brain.purges.purge(ALICE, everything=True)

    opened = await brain.objects.open(bucket, "k")
    assert not opened.is_hit
    assert (await brain.objects.open(bucket, "k")).is_hit
    assert (await brain.objects.list(bucket)).objects[0].key == "k"


async def test_freed_bytes_and_nodes_are_counted_exactly(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, "a", size=100)
    await fill(brain, bucket, "b", size=1000)
    await brain.objects.copy((bucket, "a"), bucket, "a-too")
    one, two, three = (rows.node(uuid7()) for _ in range(3))
    await place(brain, bucket, "a", one, two)
    await place(brain, bucket, "b", two, three)

    # "a-too" still references the bytes of "a".
    assert await brain.purges.purge(ALICE, keys=["docs/a"]) == PurgeResult(1, 0, 0)
    both = {"keys": ["docs/a-too"], "prefix": "docs/b"}
    assert await brain.purges.purge(ALICE, **both, preview=True) == PurgeResult(2, 2200, 3)  # type: ignore[arg-type]  # as above
    assert await brain.purges.purge(ALICE, **both) == PurgeResult(2, 2200, 3)  # type: ignore[arg-type]  # as above
    await brain.garbage_collector.round()
    assert rows.value("SELECT count(*) FROM brain_location") == 0
    jobs = rows.all("SELECT node_id, kind FROM brain_nodejob")
    assert sorted(jobs) == sorted((node, "delete") for node in (one, two, two, three))


async def test_concurrent_purges_count_each_object_and_byte_once(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    node = rows.node(uuid7())
    keys = [f"k{n:02}" for n in range(40)]
    await fill(brain, bucket, keys[0], size=100)
    for key in keys[1:]:
        await brain.objects.copy((bucket, keys[0]), bucket, key)
    await place(brain, bucket, keys[0], node)

    purges = [brain.purges.purge(ALICE, keys=[f"docs/{key}"]) for key in keys[:20]]
    purges += [brain.purges.purge(ALICE, prefix="docs/k") for _ in range(4)]
    results = await asyncio.gather(*purges)

    assert sum(result.objects_purged for result in results) == 40
    assert sum(result.bytes_freed for result in results) == 100
    assert sum(result.nodes_affected for result in results) == 1


async def test_a_large_purge_takes_many_steps(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.directory.purges.STEP_ROWS", 7)
    bucket = await brain.bucket()
    await fill(brain, bucket, *(f"k{n}" for n in range(21)), "z")

    assert await brain.purges.purge(ALICE, prefix="docs/k") == PurgeResult(21, 0, 0)
    assert await names(brain, bucket) == {"z"}


async def test_purged_objects_are_hidden_before_they_are_deleted(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, "a/1", "a/2", "b")

    await brain.purges.hide_everywhere(Targets({}, [(bucket.id, "a/")]), PurgeCount())

    assert rows.value("SELECT count(*) FROM brain_cachedobject") == 3
    assert await brain.directory.find(bucket.id, "a/1") is None
    brain.directory.index.clear()
    assert await brain.directory.find(bucket.id, "a/2") is None
    assert await brain.directory.find(bucket.id, "b") is not None
    # Objects stored afterwards are not purged.
    await fill(brain, bucket, "a/1")
    brain.directory.index.clear()
    assert await brain.directory.find(bucket.id, "a/1") is not None


async def test_a_version_stored_during_a_purge_is_kept(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, "a/1", "a/2", "b")
    count = PurgeCount()
    (begun,) = await brain.purges.hide_everywhere(Targets({}, [(bucket.id, "a/")]), count)

    with psycopg.connect(rows.url) as writer:
        writer.execute(
            "UPDATE brain_cachedobject SET generation = nextval('brain_generation')"
            " WHERE key = 'a/1'"
        )
        finishing = asyncio.create_task(brain.purges.delete_hidden(begun, count))
        await until(lambda: bool(rows.all("SELECT FROM pg_locks WHERE NOT granted")))

    await finishing
    assert await names(brain, bucket) == {"a/1", "b"}
    assert count.objects == 1


async def test_a_purge_of_a_dead_brain_is_finished_by_another(
    brain: Brain, other: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, "a/1", "a/2", "b")
    await other.purges.hide_everywhere(Targets({}, [(bucket.id, "a/")]), PurgeCount())
    await brain.garbage_collector.round()
    assert rows.value("SELECT count(*) FROM brain_cachedobject") == 3
    await other.coherence.stop()

    await brain.garbage_collector.round()

    assert await names(brain, bucket) == {"b"}
    assert rows.value("SELECT count(*) FROM brain_purgerecord WHERE NOT is_done") == 0


async def test_an_unconfirmed_purge_is_finished_by_the_garbage_collection(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()
    await fill(brain, bucket, "a/1", "a/2", "b")

    async def not_confirmed(*_pending: object) -> None:
        raise DatabaseUnavailable

    monkeypatch.setattr(brain.coherence, "_wait_until_seen", not_confirmed)
    with pytest.raises(DatabaseUnavailable):
        await brain.purges.purge(ALICE, prefix="docs/a/")
    assert rows.value("SELECT count(*) FROM brain_purgerecord WHERE NOT is_done") == 1

    await brain.garbage_collector.round()

    assert await names(brain, bucket) == {"b"}
    assert rows.value("SELECT count(*) FROM brain_purgerecord WHERE NOT is_done") == 0


@pytest.mark.parametrize(
    "purge", [{"keys": ["docs/a/k"]}, {"prefix": "docs/a"}, {"everything": True}], ids=str
)
async def test_a_running_fetch_does_not_bring_back_purged_objects(
    brain: Brain, origin: HttpOrigin, purge: dict[str, object]
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    was_asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(asked: Asked) -> None:
        origin.handler = None
        was_asked.set()
        await go_on.wait()
        await asked.answer(b"old")

    origin.handler = slow
    reading = asyncio.create_task(brain.get(bucket, "a/k"))
    await was_asked.wait()
    result = await brain.purges.purge(ALICE, **purge)  # type: ignore[arg-type]  # a way to say it
    origin.objects["/a/k"] = b"new"
    # A request after the purge does not join a fetch from before it.
    late = await brain.get(bucket, "a/k")
    go_on.set()

    assert (await reading, late) == (b"old", b"new")
    await settled(brain)
    assert await brain.get(bucket, "a/k") == b"new"
    assert result == NOTHING


async def test_a_purge_ends_what_is_known_to_be_missing(
    brain: Brain, origin: HttpOrigin, http_bucket: BucketInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.objects.negative_cache.KEPT_S", 600.0)
    for key in ("a/k", "a/other"):
        with pytest.raises(OriginMissing):
            await brain.objects.open(http_bucket, key)
    origin.objects |= {"/a/k": b"new", "/a/other": b"new"}
    with pytest.raises(OriginMissing):
        await brain.objects.open(http_bucket, "a/k")

    await brain.purges.purge(ALICE, keys=["docs/a/k"])

    assert await brain.get(http_bucket, "a/k") == b"new"
    with pytest.raises(OriginMissing):
        await brain.objects.open(http_bucket, "a/other")
    await settled(brain)


async def test_a_purge_of_another_prefix_does_not_prevent_storing_a_fetch(
    brain: Brain, origin: HttpOrigin
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    was_asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(asked: Asked) -> None:
        was_asked.set()
        await go_on.wait()
        await asked.answer(b"x")

    origin.handler = slow
    reading = asyncio.create_task(brain.get(bucket, "a/k"))
    await was_asked.wait()
    await brain.purges.purge(ALICE, keys=["docs/a/k2"], prefix="docs/a/kk")
    go_on.set()
    await reading
    await settled(brain)

    assert await names(brain, bucket) == {"a/k"}


async def test_concurrent_reads_writes_and_purges_end_in_the_origin_s_state(
    brain: Brain, other: Brain, rows: Rows, tmp_path: Path
) -> None:
    other.data_directory.root = brain.data_directory.root
    bucket = await brain.bucket()
    keys = [f"k{n}" for n in range(5)]
    latest: dict[str, bytes] = {}
    for key in keys:
        latest[key] = b"0"
        await brain.put(bucket, key, b"0")

    async def write(one: Brain, key: str) -> None:
        for n in range(1, 15):
            data = f"{key}{n}".encode()
            await one.put(bucket, key, data)
            latest[key] = data

    async def read(one: Brain, key: str) -> None:
        for _ in range(40):
            least = latest[key]
            seen = await one.get(bucket, key)
            assert _age(seen) >= _age(least), "an acknowledged write was not seen"

    async def purge(one: Brain) -> None:
        for _ in range(10):
            await one.purges.purge(ALICE, prefix="docs/k")

    await asyncio.gather(
        *(write(one, key) for one, key in zip((brain, other) * 3, keys, strict=False)),
        *(read(one, key) for one in (brain, other) for key in keys),
        purge(brain),
        purge(other),
    )

    for key in keys:
        assert await brain.get(bucket, key) == await other.get(bucket, key) == latest[key]


def _age(data: bytes) -> int:
    return int(data.decode()[2:] or "0")
