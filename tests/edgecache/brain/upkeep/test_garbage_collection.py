"""Garbage collection deletes unreferenced bytes only, also with concurrent operations."""

import asyncio
import os
from pathlib import Path

import psycopg
import pytest

from common.ids import uuid7
from edgecache.brain.core.errors import OriginMissing
from edgecache.brain.core.values import BucketInfo
from tests.edgecache.brain.brains import (
    ALICE,
    CHARLIE,
    MIB,
    Brain,
    Rows,
    running,
    settled,
    stored_files,
)
from tests.edgecache.brain.http_origin import HttpOrigin
from tests.edgecache.brain.s3.multipart.support import add_part, begin

SAME = b"same" * 5000


def files(brain: Brain, folder: str) -> set[str]:
    """Return the names of the files in a folder."""
    return {path.name for path in (brain.data_directory.root / folder).rglob("*") if path.is_file()}


async def test_bytes_are_deleted_with_the_last_object_that_references_them(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "a", SAME)
    await brain.put(bucket, "b", SAME)

    await brain.objects.delete(bucket, ["a"])
    await brain.garbage_collector.round()
    assert len(stored_files(brain.data_directory.root)) == 1
    assert await brain.get(bucket, "b") == SAME

    await brain.put(bucket, "b", b"other")
    await brain.garbage_collector.round()
    assert rows.count("blob") == rows.count("smallbody") == 1
    assert not stored_files(brain.data_directory.root)

    await brain.objects.delete(bucket, ["b"])
    await brain.garbage_collector.round()
    assert rows.count("blob") == rows.count("smallbody") == 0


async def test_a_blob_that_two_release_concurrently_delays_neither_and_is_deleted(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    found = await brain.put(bucket, "a", SAME)
    await brain.put(bucket, "b", SAME)

    with psycopg.connect(rows.url) as other:
        # As a transaction does that deletes the other object, and has seen this one.
        other.execute("DELETE FROM brain_cachedobject WHERE key = 'b'")
        other.execute("DELETE FROM brain_storedobject WHERE key = 'b'")
        other.execute("SELECT FROM brain_blob WHERE sha256 = %s FOR NO KEY UPDATE", [found.sha256])
        await asyncio.wait_for(brain.objects.delete(bucket, ["a"]), 2)
        await brain.garbage_collector.round()
        assert len(stored_files(brain.data_directory.root)) == 1
    await brain.garbage_collector.round()

    assert rows.value("SELECT count(*) FROM brain_blob") == 0
    assert not stored_files(brain.data_directory.root)


async def test_purging_built_in_objects_deletes_node_copies_and_keeps_the_brain_s(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    found = await brain.put(bucket, "k", b"bytes")
    node = rows.node(uuid7())
    await brain.directory.add_locations({found.sha256: (node,)})
    assert await brain.directory.locations(found.sha256) == (node,)

    await brain.purges.purge(ALICE, everything=True)
    await brain.garbage_collector.round()

    assert await brain.directory.locations(found.sha256) == ()
    assert rows.all("SELECT node_id, kind, sha256 FROM brain_nodejob") == [
        (node, "delete", found.sha256)
    ]
    assert await brain.get(bucket, "k") == b"bytes"


async def test_a_deletion_is_not_issued_for_bytes_that_are_wanted_again(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    found = await brain.put(bucket, "k", b"bytes")
    node = rows.node(uuid7())
    await brain.directory.add_locations({found.sha256: (node,)})
    await brain.purges.purge(ALICE, everything=True)
    await brain.garbage_collector.round()
    await brain.get(bucket, "k")

    await brain.directory.add_locations({found.sha256: (node,)})

    assert rows.value("SELECT count(*) FROM brain_nodejob") == 0


async def test_a_copy_of_unreferenced_bytes_is_refused(brain: Brain, rows: Rows) -> None:
    await brain.directory.add_locations({b"x" * 32: (rows.node(uuid7()),)})
    assert await brain.directory.locations(b"x" * 32) == ()


async def test_purging_external_objects_deletes_the_brain_s_files(
    brain: Brain, origin: HttpOrigin, rows: Rows
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"bytes"
    await brain.get(bucket, "k")
    await settled(brain)
    assert len(files(brain, "blobs")) == 1

    await brain.purges.purge(ALICE, keys=["docs/k"])
    await brain.garbage_collector.round()

    assert files(brain, "blobs") == set()
    assert rows.value("SELECT count(*) FROM brain_blob") == 0
    assert brain.data_directory.copies.bytes == 0


async def test_a_locked_row_is_collected_in_a_later_round(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    for key in ("a", "b"):
        await brain.put(bucket, key, key.encode())
    busy = await brain.directory.find(bucket.id, "a")
    assert busy is not None
    await brain.objects.delete(bucket, ["a", "b"])

    with psycopg.connect(rows.url) as writer:
        # The lock of a writer that is about to reference the bytes.
        writer.execute("SELECT FROM brain_blob WHERE sha256 = %s FOR KEY SHARE", [busy.sha256])
        await brain.garbage_collector.round()
        assert rows.all("SELECT sha256 FROM brain_blob") == [(busy.sha256,)]
        assert rows.all("SELECT blob_id FROM brain_smallbody") == [(busy.sha256,)]

    await brain.garbage_collector.round()
    assert rows.value("SELECT count(*) FROM brain_blob") == 0
    assert rows.value("SELECT count(*) FROM brain_release") == 0
    assert rows.count("smallbody") == 0


async def test_all_objects_of_a_large_purge_are_collected(
    brain: Brain, rows: Rows, origin: HttpOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgecache.brain.upkeep.garbage_collection.STEP_RELEASES", 2)
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    for n in range(120):
        origin.objects[f"/k{n}"] = f"bytes {n}".encode()
        await brain.get(bucket, f"k{n}")
    await settled(brain)
    assert len(files(brain, "blobs")) == 120

    assert (await brain.purges.purge(ALICE, prefix="docs/")).objects_purged == 120
    assert rows.value("SELECT count(*) FROM brain_release") == 3
    await brain.garbage_collector.round()

    assert files(brain, "blobs") == set()
    assert rows.value("SELECT count(*) FROM brain_blob") == 0
    assert rows.value("SELECT count(*) FROM brain_release") == 0


async def test_concurrent_writes_of_the_same_bytes_survive_the_collection(
    brain: Brain, other: Brain
) -> None:
    other.data_directory.root = brain.data_directory.root
    bucket = await brain.bucket()

    async def churn(one: Brain, key: str) -> None:
        for _ in range(15):
            await one.put(bucket, key, b"the same bytes")
            assert await one.get(bucket, key) == b"the same bytes"
            await one.objects.delete(bucket, [key])

    async def collect(one: Brain) -> None:
        for _ in range(40):
            await one.garbage_collector.round()

    await asyncio.gather(
        *(churn(one, f"k{n}{one.id}") for one in (brain, other) for n in range(3)),
        collect(brain),
        collect(other),
    )
    await brain.put(bucket, "last", b"the same bytes")
    await brain.garbage_collector.round()
    assert await brain.get(bucket, "last") == b"the same bytes"


async def test_a_fetch_of_bytes_during_their_collection_keeps_them(
    brain: Brain, origin: HttpOrigin
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    for n in range(30):
        origin.objects[f"/k{n}"] = b"the same bytes"

    async def read(n: int) -> None:
        assert await brain.get(bucket, f"k{n}") == b"the same bytes"
        await brain.purges.purge(ALICE, keys=[f"docs/k{n}"])

    async def collect() -> None:
        for _ in range(30):
            await brain.garbage_collector.round()

    await asyncio.gather(*(read(n) for n in range(30)), collect())
    await brain.get(bucket, "k0")
    await settled(brain)
    await brain.garbage_collector.round()
    found = await brain.directory.find(bucket.id, "k0")
    assert found is not None
    assert await brain.data_directory.local(found.sha256) is not None


async def test_files_that_nodes_also_hold_are_evicted_first(
    rows: Rows, origin: HttpOrigin, tmp_path: Path
) -> None:
    async with running(rows.url, tmp_path / "small", limit_bytes=10 * MIB) as brain:
        bucket = await brain.origin_bucket("http", {"url": origin.url})
        node = rows.node(uuid7())
        for n in range(5):
            origin.objects[f"/k{n}"] = bytes([n]) * 2 * MIB
            await brain.get(bucket, f"k{n}")
            await settled(brain)
        held = [await found_of(brain, bucket, f"k{n}") for n in (3, 4)]
        for sha256 in held:
            await brain.directory.add_locations({sha256: (node,)})

        await brain.garbage_collector.round()

        assert brain.data_directory.copies.bytes <= 7 * MIB
        assert files(brain, "blobs").isdisjoint(sha256.hex() for sha256 in held)
        # The file is deleted here, the object is not.
        assert await brain.get(bucket, "k3") == bytes([3]) * 2 * MIB


async def found_of(brain: Brain, bucket: BucketInfo, key: str) -> bytes:
    """Return the hash of an object."""
    found = await brain.directory.find(bucket.id, key)
    assert found is not None
    return found.sha256


async def test_old_copies_without_a_row_are_deleted(brain: Brain, origin: HttpOrigin) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"kept"
    await brain.get(bucket, "k")
    await settled(brain)
    (kept,) = files(brain, "blobs")
    old, young = "ab" * 32, "cd" * 32
    for name in (old, young):
        brain.data_directory.blob_path(bytes.fromhex(name)).write_bytes(b"x")
    for name in (old, kept):
        os.utime(brain.data_directory.blob_path(bytes.fromhex(name)), (0, 0))

    assert await brain.sweep() == 1
    assert files(brain, "blobs") == {young, kept}


async def test_unfinished_bodies_of_another_day_are_deleted(brain: Brain) -> None:
    for name in ("old", "young"):
        (brain.data_directory.temp / name).write_bytes(b"x")
    os.utime(brain.data_directory.temp / "old", (0, 0))

    assert await brain.sweep() == 1
    assert files(brain, "temp") == {"young"}


async def test_a_small_body_goes_although_a_cached_object_has_the_same_bytes(
    brain: Brain, origin: HttpOrigin, rows: Rows
) -> None:
    bucket = await brain.bucket()
    pulled = await brain.origin_bucket("http", {"url": origin.url}, name="pulled")
    origin.objects["/k"] = b"bytes"
    await brain.get(pulled, "k")
    await settled(brain)
    await brain.put(bucket, "k", b"bytes")

    await brain.objects.delete(bucket, ["k"])
    await brain.garbage_collector.round()

    assert (rows.count("smallbody"), rows.count("blob")) == (0, 1)
    assert await brain.get(pulled, "k") == b"bytes"


async def test_a_failed_round_does_not_stop_the_next_one(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, has_come_again = 0, asyncio.Event()

    async def failing() -> None:
        nonlocal rounds
        rounds += 1
        if rounds > 1:
            has_come_again.set()
        raise PermissionError("a file that cannot be removed")

    monkeypatch.setattr(brain.garbage_collector, "_work", failing)
    monkeypatch.setattr("edgecache.brain.upkeep.garbage_collection.EVERY_S", 0.01)
    await brain.garbage_collector.start()

    async with asyncio.timeout(20):
        await has_come_again.wait()


async def test_a_dropped_environment_leaves_nothing(brain: Brain, rows: Rows) -> None:
    from edgecache.brain.directory import tenants

    mine = await brain.bucket("docs", ALICE)
    theirs = await brain.bucket("docs", CHARLIE)
    external = await brain.origin_bucket("http", {"url": "http://127.0.0.1:1"}, name="ext")
    for n in range(5):
        await brain.put(mine, f"k{n}", b"%d" % n)
    await brain.put(theirs, "k", b"theirs")
    await brain.put(mine, "large", SAME)
    await add_part(brain, mine, await begin(brain, mine), 1, b"part")

    for _ in range(2):
        await tenants.drop(brain.database, brain.coherence, brain.purges, ALICE)
    await brain.garbage_collector.round()

    for table in ("bucket", "storedobject", "cachedobject", "blob"):
        assert rows.count(table) == 1, table
    for table in ("origin", "upload", "uploadpart"):
        assert rows.count(table) == 0, table
    assert files(brain, "objects") == set()
    assert rows.count("smallbody") == 1
    assert await brain.get(theirs, "k") == b"theirs"
    assert await brain.directory.bucket(ALICE, "ext") is None
    assert external.tenant == ALICE


async def test_deleted_objects_stay_deleted_after_the_collection(brain: Brain) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"x")
    await brain.objects.delete(bucket, ["k"])
    await brain.garbage_collector.round()

    with pytest.raises(OriginMissing):
        await brain.objects.open(bucket, "k")
