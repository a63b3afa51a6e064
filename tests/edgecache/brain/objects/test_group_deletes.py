"""Deletions that wait together: one connection for a bucket, and each caller gets its outcome."""

import asyncio

import pytest

from edgecache.brain.core.errors import NoSuchBucket
from edgecache.brain.directory.versions import Directory
from tests.edgecache.brain.brains import Brain, Rows, until
from tests.edgecache.brain.objects.writes import locked, outcomes, put

WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


async def test_a_crowd_that_empties_a_bucket_waits_for_one_connection(
    brain: Brain, rows: Rows
) -> None:
    mine, theirs = await brain.bucket(), await brain.bucket("other")
    keys = [f"k{number}" for number in range(100)]
    await asyncio.gather(*(put(brain, mine, key, key.encode()) for key in keys))
    await put(brain, theirs, "k0", b"kept until it is deleted")

    with locked(rows, mine):
        crowd = [asyncio.create_task(brain.objects.delete(mine, [key])) for key in [*keys, *keys]]
        await until(lambda: rows.value(WAITING))
        # Another bucket's writes continue.
        await brain.objects.delete(theirs, ["k0"])
        assert rows.value(WAITING) == 1
    await asyncio.gather(*crowd)

    assert rows.value("SELECT count(*) FROM brain_storedobject") == 0
    assert rows.value("SELECT count(*) FROM brain_cachedobject") == 0


async def test_a_deletion_follows_the_write_that_was_acknowledged_before(brain: Brain) -> None:
    bucket = await brain.bucket()

    async def write_and_delete(key: str) -> None:
        for turn in range(5):
            await put(brain, bucket, key, b"%d" % turn)
            await brain.objects.delete(bucket, [key])
            assert await Directory.find(brain.directory, bucket.id, key) is None

    await asyncio.gather(*(write_and_delete(f"k{number}") for number in range(8)))


async def test_each_caller_gets_the_failure(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    rows.run("DELETE FROM brain_bucket WHERE id = %s", [bucket.id])
    found = await outcomes(*(brain.objects.delete(bucket, [f"k{number}"]) for number in range(3)))
    assert [type(each) for each in found] == [NoSuchBucket] * 3


async def test_a_caller_that_leaves_does_not_stop_the_deletion(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()
    await put(brain, bucket, "k", b"x")
    deleting = asyncio.create_task(brain.objects.delete(bucket, ["k"]))
    await asyncio.sleep(0)
    deleting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deleting
    await until(lambda: rows.value("SELECT count(*) FROM brain_storedobject") == 0)
