"""PUTs that share a transaction: each has its own conditions, its own failure, its own bytes."""

import asyncio
import errno
from pathlib import Path

import psycopg
import pytest

from edgecache.brain.core.errors import (
    NoSuchBucket,
    OriginMissing,
    PreconditionFailed,
    StorageFull,
    TargetMissing,
)
from edgecache.brain.core.values import BucketInfo, Conditions, ObjectVersion
from edgecache.brain.disk.syncing import sync_folder
from edgecache.brain.stores import folder_store
from edgecache.brain.stores.stored_blobs import SMALL_BYTES
from tests.edgecache.brain.brains import CHARLIE, Brain, Rows, stored_files
from tests.edgecache.brain.children import child
from tests.edgecache.brain.objects.writes import is_tidy, kinds, locked, outcomes, put

pytestmark = pytest.mark.slow

RACED = [f"k{n}" for n in range(6)]
CREATE = Conditions(if_none_match="*")


async def test_objects_written_concurrently_are_all_stored(brain: Brain, other: Brain) -> None:
    mine, theirs = await brain.bucket(), await brain.bucket("docs", CHARLIE)
    wanted = {f"k{n}": b"body %d" % (n // 2) for n in range(90)}

    # Two of each body, under different keys; and both tenants have the same keys.
    found = await asyncio.gather(
        *(put(brain, mine, key, data) for key, data in wanted.items()),
        *(put(brain, theirs, key, data + b"!") for key, data in wanted.items()),
    )

    assert len({version.generation for version in found}) == len(found)
    for one in (brain, other):
        one.directory.index.clear()
        for key, data in wanted.items():
            assert (await one.objects.open(mine, key)).version in found
            assert (await one.objects.open(theirs, key)).version.size == len(data) + 1
    assert {key: await brain.get(mine, key) for key in wanted} == wanted
    assert len(brain.kept) == len(found)
    assert is_tidy(brain)


async def test_each_write_of_a_group_fails_by_itself(brain: Brain, rows: Rows) -> None:
    bucket, gone = await brain.bucket(), await brain.bucket("gone")
    first = await put(brain, bucket, "there", b"old")
    await brain.buckets.delete(gone.tenant, gone.id)

    found = await outcomes(
        put(brain, bucket, "a", b"a"),
        put(brain, bucket, "there", b"new", conditions=CREATE),
        put(brain, gone, "b", b"b"),
        put(brain, bucket, "absent", b"c", conditions=Conditions(if_match=first.etag)),
        # PostgreSQL refuses this character, and the statement with it.
        put(brain, bucket, "bad", b"d", metadata={"name": "\0"}),
        put(brain, bucket, "e", b"e"),
    )

    assert kinds(found) == [
        ObjectVersion,
        PreconditionFailed,
        NoSuchBucket,
        TargetMissing,
        psycopg.errors.UntranslatableCharacter,
        ObjectVersion,
    ]
    assert await brain.get(bucket, "there") == b"old"
    await brain.garbage_collector.round()
    assert rows.count("storedobject") == rows.count("cachedobject") == rows.count("blob") == 3
    assert is_tidy(brain)


async def test_bytes_that_cannot_be_made_durable_leave_no_rows(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()

    def fail(folder: Path) -> None:
        if "objects" in folder.parts[-3:]:
            raise OSError(errno.ENOSPC, "full")
        sync_folder(folder)

    monkeypatch.setattr(folder_store, "sync_folder", fail)
    large = bytes(SMALL_BYTES + 1)
    found = await outcomes(put(brain, bucket, "a", b"a"), put(brain, bucket, "b", large))

    assert kinds(found) == [ObjectVersion, StorageFull]
    assert rows.count("blob") == 1
    monkeypatch.undo()
    await put(brain, bucket, "b", large)
    assert await brain.get(bucket, "b") == large
    assert is_tidy(brain)


async def test_writes_of_one_key_that_wait_together_follow_one_another(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    with locked(rows, bucket):
        writing = [asyncio.create_task(put(brain, bucket, "k", b"%d" % n)) for n in range(9)]
        await asyncio.sleep(0)
    found = await asyncio.gather(*writing)

    generations = [version.generation for version in found]
    assert generations == sorted(generations)
    assert await brain.get(bucket, "k") == b"8"


async def test_a_bucket_that_is_locked_holds_up_no_other(brain: Brain, rows: Rows) -> None:
    mine, theirs = await brain.bucket(), await brain.bucket("docs", CHARLIE)

    with locked(rows, theirs):
        waiting = [asyncio.create_task(put(brain, theirs, f"k{n}", b"x")) for n in range(30)]
        for n in range(5):
            await asyncio.wait_for(put(brain, mine, f"k{n}", b"x"), 5)
        assert not any(task.done() for task in waiting)

    assert len(await asyncio.gather(*waiting)) == 30
    assert await brain.get(theirs, "k7") == b"x"


async def test_writes_race_everything_that_changes_the_same_keys(
    brain: Brain, other: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()

    await asyncio.gather(*(churn(one, bucket, n) for one in (brain, other) for n in range(7)))
    await brain.garbage_collector.round()

    stored = dict(rows.all("SELECT key, blob_id FROM brain_storedobject"))
    assert {key: await hash_of(brain, bucket, key) for key in RACED} == {
        key: stored.get(key) for key in RACED
    }
    assert {key: await hash_of(other, bucket, key) for key in stored} == stored
    bodies = dict(rows.all("SELECT blob_id, body FROM brain_smallbody"))
    assert bodies.keys() == set(stored.values())


async def churn(one: Brain, bucket: BucketInfo, number: int) -> None:
    """Do one kind of thing to all keys, several times."""
    for turn in range(12):
        key = RACED[(turn + number) % len(RACED)]
        if number == 0:
            await one.objects.delete(bucket, [key])
        elif number == 1:
            await one.purges.purge(bucket.tenant, prefix="docs/k")
        elif number == 2:
            await one.garbage_collector.round()
        elif number == 3:
            await outcomes(one.objects.copy((bucket, RACED[turn % 6]), bucket, key))
        else:
            # Few different bodies: most writes meet a blob that is just being deleted.
            await put(one, bucket, key, b"body %d" % (turn % 3))


async def hash_of(one: Brain, bucket: BucketInfo, key: str) -> bytes | None:
    """Return the hash of an object's bytes, None if it does not exist."""
    try:
        return (await one.objects.open(bucket, key)).version.sha256
    except OriginMissing:
        return None


async def test_a_kill_during_a_group_loses_nothing_that_was_acknowledged(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    acknowledged = 0
    async with child(rows.url, brain.data_directory.root) as doomed:
        for n in range(300):
            await doomed.tell("put", bucket=bucket.id, key=f"k{n}", data=f"body {n}", number=n)
        found: set[int] = set()
        while len(found) < 120:
            heard = await doomed.hear()
            found.add(heard["number"])
        await doomed.kill()

    for number in found:
        assert await brain.get(bucket, f"k{number}") == b"body %d" % number
        acknowledged += 1
    # What was not acknowledged is there as a whole or not at all.
    stored = rows.all("SELECT key FROM brain_storedobject")
    assert not stored_files(brain.data_directory.root)
    for (key,) in stored:
        assert await brain.get(bucket, key) == f"body {key[1:]}".encode()
    assert acknowledged <= len(stored) <= 300
