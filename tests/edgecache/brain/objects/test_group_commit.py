"""PUTs that are written together: each has its own conditions, its own failure, its own bytes."""

import asyncio
import errno
import os
import stat
from pathlib import Path

import psycopg
import pytest

from edgecache.brain.core.blocks import BLOCK_BYTES
from edgecache.brain.core.errors import (
    NoSuchBucket,
    OriginMissing,
    PreconditionFailed,
    StorageFull,
)
from edgecache.brain.core.values import BucketInfo, Conditions, ObjectVersion
from edgecache.brain.disk import durable_bytes, journal
from edgecache.brain.disk.buffers import Buffers
from edgecache.brain.disk.syncing import write_new
from tests.edgecache.brain.brains import CHARLIE, Brain, Rows, buffered
from tests.edgecache.brain.children import child
from tests.edgecache.brain.objects.writes import is_tidy, kinds, locked, outcomes, put

pytestmark = pytest.mark.slow

RACED = [f"k{n}" for n in range(6)]
TRANSACTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'zonal-brain'"
    " AND datname = current_database() AND xact_start IS NOT NULL"
)
CREATE = Conditions(if_none_match=True)


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
        OriginMissing,
        psycopg.errors.UntranslatableCharacter,
        ObjectVersion,
    ]
    assert await brain.get(bucket, "there") == b"old"
    await brain.garbage_collector.round()
    assert rows.count("storedobject") == rows.count("cachedobject") == rows.count("blob") == 3
    assert is_tidy(brain)


async def test_a_full_disk_fails_the_write_that_it_is_too_full_for(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()
    large = bytes(BLOCK_BYTES + 1)

    def write(path: Path, data: bytes, *, is_durable: bool) -> None:
        write_new(path, data, is_durable=is_durable)
        if data == large:
            raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(durable_bytes, "write_new", write)
    found = await outcomes(put(brain, bucket, "a", b"a"), put(brain, bucket, "b", large))

    assert kinds(found) == [ObjectVersion, StorageFull]
    assert rows.count("blob") == 1
    assert is_tidy(brain)


async def test_bytes_that_cannot_be_placed_leave_no_rows(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    data = b"not placed"
    target = brain.data_directory.origin_path(buffered(brain, data).manifest.sha256)
    brain.data_directory.buffers = Buffers()
    # A file cannot take the place of a folder.
    target.mkdir()

    found = await outcomes(put(brain, bucket, "a", b"a"), put(brain, bucket, "b", data))

    assert kinds(found) == [ObjectVersion, IsADirectoryError]
    target.rmdir()
    await brain.garbage_collector.round()
    assert rows.count("blob") == rows.count("storedobject") == 1
    await put(brain, bucket, "b", data)
    assert await brain.get(bucket, "b") == data
    assert is_tidy(brain)


async def test_bodies_that_the_journal_has_no_room_for_are_synced_before_the_transaction(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()
    monkeypatch.setattr(journal, "SEGMENTS", 0)
    running: list[int] = []
    real = os.fsync

    def fsync(file: int) -> None:
        if stat.S_ISREG(os.fstat(file).st_mode):
            running.append(rows.value(TRANSACTIONS))
        real(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        await outcomes(*(put(brain, bucket, f"k{n}", b"%d" % n) for n in range(8)))

    assert running == [0] * 8
    assert [await brain.get(bucket, f"k{n}") for n in range(8)] == [b"%d" % n for n in range(8)]
    assert is_tidy(brain)


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
    for sha256 in stored.values():
        assert await brain.data_directory.local(sha256) or await other.data_directory.local(sha256)


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
    for (key,) in stored:
        assert await brain.get(bucket, key) == f"body {key[1:]}".encode()
    assert acknowledged <= len(stored) <= 300
