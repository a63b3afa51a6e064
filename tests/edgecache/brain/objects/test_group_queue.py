"""Which writes go together, in which order, and when a group begins."""

import asyncio

import pytest

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.blocks import BLOCK_BYTES
from tests.edgecache.brain.brains import Brain, Rows, until
from tests.edgecache.brain.held import held_at
from tests.edgecache.brain.objects.writes import held_once, is_tidy, put, waiting

pytestmark = pytest.mark.slow

LARGE = b"x" * 2 * BLOCK_BYTES


async def test_clients_that_write_one_after_the_other_share_transactions(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()

    async def client(name: str) -> None:
        for number in range(6):
            await put(brain, bucket, f"{name}/{number}", f"{name} {number}".encode())

    clients = [asyncio.create_task(client(name)) for name in "abcd"]
    # The others come while the first group is being written, so they would take turns with it.
    await asyncio.sleep(0.001)
    clients += [asyncio.create_task(client(name)) for name in "efgh"]
    await asyncio.gather(*clients)

    statement = "SELECT count(DISTINCT xmin::text) FROM brain_storedobject WHERE bucket_id = %s"
    # Four writes and eight; twelve in turns.
    assert rows.value(statement, [bucket.id]) <= 8


async def test_writes_of_one_key_happen_one_after_the_other(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()

    found = await asyncio.gather(*(put(brain, bucket, "k", b"%d" % n) for n in range(20)))

    last = max(found, key=lambda version: version.generation)
    assert found[-1] == last
    assert await brain.get(bucket, "k") == b"19"
    await brain.garbage_collector.round()
    assert rows.count("blob") == 1


@pytest.mark.parametrize("is_folder", [True, False])
async def test_a_small_write_does_not_wait_for_the_disk_with_a_large_one(
    brain: Brain, monkeypatch: pytest.MonkeyPatch, is_folder: bool
) -> None:
    bucket = await brain.bucket()
    await put(brain, bucket, "first", LARGE)
    syncing = held_once(monkeypatch, is_folder=is_folder)
    held = asyncio.create_task(put(brain, bucket, "held", LARGE + b"y"))
    await syncing.came()
    async with asyncio.timeout(10):
        assert (await put(brain, bucket, "other", b"z")).size == 1

    assert not held.done()
    syncing.go_on()
    assert (await held).size == len(LARGE) + 1
    assert is_tidy(brain)


@pytest.mark.parametrize("is_written", [True, False])
async def test_a_small_write_does_not_overtake_a_large_one_of_its_key(
    brain: Brain, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """Neither one that is being written nor one that waits."""
    bucket = await brain.bucket()
    syncing = held_once(monkeypatch, is_folder=False)
    first = asyncio.create_task(put(brain, bucket, "k" if is_written else "before", LARGE))
    await syncing.came()
    writes = [asyncio.create_task(put(brain, bucket, "k", body)) for body in (LARGE, b"z")]
    await until(lambda: waiting(brain) == 2)
    # Other small writes go on.
    await put(brain, bucket, "other", b"z")
    assert waiting(brain) == 2

    syncing.go_on()
    await asyncio.gather(first, *writes)
    assert await brain.get(bucket, "k") == b"z"


async def test_a_write_that_waited_for_another_begins_though_timers_come_early(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of uvloop has milliseconds; the write waited until another one came."""
    loop = asyncio.get_running_loop()
    later = loop.call_later
    monkeypatch.setattr(loop, "call_later", lambda delay, *args: later(delay / 4, *args))
    # A group that takes longer has no other timer either.
    monkeypatch.setattr("edgecache.brain.objects.group_commit.SLOW_S", 0.0)
    bucket = await brain.bucket()
    syncing = held_at(monkeypatch, "fdatasync", lambda _file: True)

    first = asyncio.create_task(put(brain, bucket, "k", b"x"))
    await syncing.came()
    second = asyncio.create_task(put(brain, bucket, "k", b"y"))
    await until(lambda: waiting(brain) == 1)
    syncing.go_on()
    async with asyncio.timeout(10):
        await asyncio.gather(first, second)


async def test_the_end_waits_for_a_gathering_group_without_asking_again_and_again(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A group waits for as many writes as the last one had, however long they take.
    monkeypatch.setattr("edgecache.brain.objects.group_commit.GATHER_S", 3600.0)
    monkeypatch.setattr("edgecache.brain.objects.group_commit.GATHER_SHARE", 1e9)
    bucket, writes = await brain.bucket(), brain.objects._stored_writes
    await asyncio.gather(*(put(brain, bucket, key, b"x") for key in "ab"))
    asked, finish = 0, BackgroundTasks.finish

    async def count(tasks: BackgroundTasks) -> None:
        nonlocal asked
        asked += 1
        await finish(tasks)

    monkeypatch.setattr(BackgroundTasks, "finish", count)
    third = asyncio.create_task(put(brain, bucket, "c", b"x"))
    await until(lambda: waiting(brain) == 1)
    finishing = asyncio.create_task(writes.finish())
    for _ in range(100):
        await asyncio.sleep(0)
    asked_meanwhile, is_early = asked, finishing.done()

    # It may gather no more, however the test ends.
    await put(brain, bucket, "d", b"x")
    await finishing
    assert (await third).size == 1
    assert not is_early
    assert asked_meanwhile <= 2
