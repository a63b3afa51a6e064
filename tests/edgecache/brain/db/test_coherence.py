"""Several brains on one database return the same data."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog

from common.ids import uuid7
from edgecache.brain.core.errors import DatabaseUnavailable, OriginMissing
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.db import coherence as module
from tests.edgecache.brain.brains import ALICE, Brain, Rows, assemble, running, until

pytestmark = pytest.mark.slow


async def warm(brain: Brain, bucket: BucketInfo, key: str) -> bytes:
    """Read a key so that the brain caches it."""
    data = await brain.get(bucket, key)
    assert brain.directory.index.get((bucket.id, key, "")) is not None
    return data


async def test_a_write_is_seen_by_the_other_brain_before_it_returns(
    brain: Brain, other: Brain
) -> None:
    other.data_directory.root = brain.data_directory.root
    bucket = await brain.bucket()
    for n in range(30):
        await brain.put(bucket, "k", b"%d" % n)
        assert await other.get(bucket, "k") == b"%d" % n
        await other.put(bucket, "k", b"other %d" % n)
        assert await brain.get(bucket, "k") == b"other %d" % n


async def test_a_purge_is_seen_by_the_other_brain_before_it_returns(
    brain: Brain, other: Brain
) -> None:
    other.data_directory.root = brain.data_directory.root
    bucket = await brain.bucket()
    for prefix, keys in (("", ["docs/k"]), ("docs/", ())):
        await brain.put(bucket, "k", b"x")
        await warm(other, bucket, "k")

        await brain.purges.purge(ALICE, keys=list(keys), prefix=prefix)

        assert other.directory.index.get((bucket.id, "k", "")) is None
        assert not (await other.objects.open(bucket, "k")).is_hit


async def test_a_deletion_is_seen_by_the_other_brain_before_it_returns(
    brain: Brain, other: Brain
) -> None:
    other.data_directory.root = brain.data_directory.root
    bucket = await brain.bucket()
    keys = [f"k{n}" for n in range(100)]
    for key in keys:
        await brain.put(bucket, key, b"x")
    await warm(other, bucket, "k7")

    await brain.objects.delete(bucket, keys)

    with pytest.raises(OriginMissing):
        await other.objects.open(bucket, "k7")


async def test_a_bucket_s_creation_and_deletion_are_seen_by_the_other_brain(
    brain: Brain, other: Brain
) -> None:
    bucket = await brain.bucket()
    assert await other.directory.bucket(ALICE, "docs") == bucket

    await brain.buckets.delete(ALICE, bucket.id)

    assert await other.directory.bucket(ALICE, "docs") is None


async def test_a_single_brain_does_not_wait(brain: Brain, rows: Rows) -> None:
    bucket = await brain.bucket()

    await brain.put(bucket, "k", b"x")

    assert brain.coherence.peers == frozenset()
    assert brain.coherence._pending == {}


async def test_a_new_brain_caches_nothing_before_the_others_acknowledge_it(
    brain: Brain, rows: Rows, tmp_path: Path
) -> None:
    # The other brain does not listen: nothing acknowledges the handshake.
    assert brain.coherence._task is not None
    brain.coherence._task.cancel()
    await asyncio.gather(brain.coherence._task, return_exceptions=True)
    rows.run("UPDATE brain_braininstance SET lease_until = now() + interval '30 seconds'")
    newcomer = assemble(rows.url, tmp_path / "newcomer")
    await newcomer.database.start()
    try:
        await newcomer.coherence.start()
        assert not newcomer.coherence.is_current
        assert newcomer.coherence.peers == {brain.id}
        rows.run("UPDATE brain_braininstance SET lease_until = now() WHERE id = %s", [brain.id])
        assert await newcomer.coherence.wait_until_current(10)
    finally:
        await newcomer.coherence.stop()
        await newcomer.database.stop()


async def test_a_brain_without_its_listener_reads_postgresql_and_clears_its_cache(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 3600)
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"old")
    await warm(brain, bucket, "k")

    rows.cut("zonal-brain-listener")
    await until(lambda: not brain.coherence.is_current)
    # Another brain, which this one receives no announcements from.
    rows.run("UPDATE brain_cachedobject SET etag = 'new'")

    assert len(brain.directory.index) == 0
    assert (await brain.objects.open(bucket, "k")).version.etag == "new"
    assert len(brain.directory.index) == 0


async def test_a_reconnected_listener_receives_announcements_again(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"x")

    rows.cut("zonal-brain-listener")
    await until(lambda: not brain.coherence.is_current)

    assert await brain.coherence.wait_until_current(10)
    await warm(brain, bucket, "k")


async def test_a_lost_database_is_logged_once_and_once_when_it_is_back(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, refused = psycopg.AsyncConnection.connect, 0

    async def refuse(*given: Any, **more: Any) -> Any:
        nonlocal refused
        refused += 1
        if refused > 3:
            return await connect(*given, **more)
        raise psycopg.OperationalError("refused")

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", refuse)
    with structlog.testing.capture_logs() as logs:
        rows.cut("zonal-brain-listener")
        await until(lambda: not brain.coherence.is_current)
        assert await brain.coherence.wait_until_current(10)
    assert refused > 3
    events = [line["event"] for line in logs if line["event"].startswith("brain_listener")]
    assert events == ["brain_listener_lost", "brain_listener_back"]


async def test_a_brain_with_an_expired_lease_does_not_use_its_cache(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"old")
    await warm(brain, bucket, "k")
    clock = module._clock
    # As after a pause of the whole process: the clock advanced but no timer ran.
    monkeypatch.setattr(module, "_clock", lambda: clock() + module.LEASE_S)

    assert not brain.coherence.is_current
    rows.run("UPDATE brain_cachedobject SET etag = 'new'")
    assert (await brain.objects.open(bucket, "k")).version.etag == "new"


async def test_a_brain_whose_lease_ended_uses_its_cache_when_the_others_wait_for_it_again(
    brain: Brain, other: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood still for long, and its connections outlived that."""
    await until(lambda: brain.coherence.peers)
    renew, wakes = other.coherence._renew, asyncio.Event()

    async def renew_late(connection: psycopg.AsyncConnection[Any]) -> None:
        await wakes.wait()
        await renew(connection)

    monkeypatch.setattr(other.coherence, "_renew", renew_late)
    rows.run("UPDATE brain_braininstance SET lease_until = now() WHERE id = %s", [other.id])
    await until(lambda: not brain.coherence.peers)
    monkeypatch.setattr(other.coherence, "_lease_until", 0.0)

    async def renew_nothing(_connection: psycopg.AsyncConnection[Any]) -> None:
        """Leave the brain with what it knew of the others at its last renewal."""
        brain.coherence._lease_until = module._clock() + module.LEASE_S

    monkeypatch.setattr(brain.coherence, "_renew", renew_nothing)
    wakes.set()
    await until(lambda: other.coherence.is_current)

    assert brain.coherence.peers == {other.id}


async def test_a_write_waits_for_an_unresponsive_brain_until_its_lease_ends(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    lease_until = rows.value(
        "INSERT INTO brain_braininstance (id, lease_until)"
        " VALUES (%s, clock_timestamp() + interval '2 seconds') RETURNING lease_until",
        [uuid7()],
    )
    await until(lambda: brain.coherence.peers)

    await brain.put(bucket, "k", b"x")

    assert rows.value("SELECT clock_timestamp() > %s", [lease_until])
    assert brain.coherence.peers == frozenset()


@pytest.mark.parametrize("brains", ["alone", "with another"])
async def test_a_write_whose_brain_had_no_lease_for_a_moment_waits_only_for_the_next(
    brain: Brain, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brains: str
) -> None:
    """PostgreSQL stood still: the lease ended, but its connection and what it announces did not."""
    monkeypatch.setattr(module, "ACK_LIMIT_S", 600.0)
    bucket = await brain.bucket()
    async with contextlib.AsyncExitStack() as stack:
        if brains == "with another":
            await stack.enter_async_context(running(rows.url, tmp_path / "second"))
            await until(lambda: brain.coherence.peers)
        clock = module._clock
        monkeypatch.setattr(module, "_clock", lambda: clock() + module.LEASE_S)
        assert not brain.coherence.is_current
        async with asyncio.timeout(20):
            await brain.put(bucket, "k", b"x")
        assert await brain.get(bucket, "k") == b"x"


@pytest.mark.parametrize("topic", ["a change", "a handshake"])
async def test_what_another_brain_did_not_receive_is_not_waited_for_long(
    brain: Brain, other: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    """Its listener was lost for a moment, and it has forgotten everything since."""
    monkeypatch.setattr(module, "ACK_LIMIT_S", 600.0)
    other.data_directory.root = brain.data_directory.root
    bucket = await brain.bucket()
    received = other.coherence._take
    lost: list[str] = []

    def lose_the_first(payload: str, acks: dict[str, list[int]]) -> None:
        if lost or not payload.startswith(f'["{brain.coherence.brain_id.hex}"'):
            received(payload, acks)
        else:
            lost.append(payload)

    monkeypatch.setattr(other.coherence, "_take", lose_the_first)
    async with asyncio.timeout(20):
        if topic == "a handshake":
            rows.cut("zonal-brain-listener")
            await until(lambda: not brain.coherence.is_current)
            await until(lambda: brain.coherence.is_current)
        await brain.put(bucket, "k", b"x")
    assert lost
    assert await other.get(bucket, "k") == b"x"


async def test_a_brain_that_never_acknowledges_makes_the_write_uncertain(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ACK_LIMIT_S", 0.5)
    bucket = await brain.bucket()
    rows.run(
        "INSERT INTO brain_braininstance (id, lease_until) VALUES (%s, now() + interval '1 hour')",
        [uuid7()],
    )
    await until(lambda: brain.coherence.peers)

    with pytest.raises(DatabaseUnavailable, match="did not confirm"):
        await brain.put(bucket, "k", b"x")
    assert await brain.get(bucket, "k") == b"x"


async def test_a_write_does_not_wait_for_a_stopped_brain(
    brain: Brain, rows: Rows, tmp_path: Path
) -> None:
    bucket = await brain.bucket()
    async with running(rows.url, tmp_path / "short"):
        await until(lambda: brain.coherence.peers)

    await until(lambda: not brain.coherence.peers)
    await brain.put(bucket, "k", b"x")
    assert rows.value("SELECT count(*) FROM brain_braininstance") == 1


async def test_data_read_before_a_change_is_not_cached_after_it(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()
    await brain.put(bucket, "k", b"old")
    brain.directory.index.clear()
    ask = brain.database.all
    read, go_on = asyncio.Event(), asyncio.Event()

    async def slow(sql: str, params: object = ()) -> object:
        found = await ask(sql, params)  # type: ignore[arg-type]  # malformed on purpose
        read.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(brain.database, "all", slow)
    asking = asyncio.create_task(brain.directory.find(bucket.id, "k"))
    async with asyncio.timeout(20):
        await read.wait()
    monkeypatch.setattr(brain.database, "all", ask)
    written = await brain.put(bucket, "k", b"new")
    # A request after the write must not get data that was read before it.
    late = await brain.directory.find(bucket.id, "k")
    go_on.set()
    early = await asking

    assert early is not None
    assert early.generation <= written.generation
    assert late == written
    assert await brain.directory.find(bucket.id, "k") == written
    assert await brain.directory.find(bucket.id, "k") == written


async def test_an_announcement_of_any_length_arrives(brain: Brain, other: Brain) -> None:
    heard: list[tuple[str, int]] = []
    other.coherence.subscribe("noise", lambda text, number: heard.append((text, number)))
    said = [('\u00fc\x01"\\' * 200, number) for number in range(100)]

    async with brain.coherence.transaction() as change:
        for text, number in said:
            change.announce("noise", text, number)

    assert heard == said


async def test_a_rolled_back_change_is_not_announced(brain: Brain, other: Brain) -> None:
    heard: list[int] = []
    for one in (brain, other):
        one.coherence.subscribe("noise", heard.append)

    async def failing() -> None:
        async with brain.coherence.transaction() as change:
            change.announce("noise", 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    async with brain.coherence.transaction() as change:
        change.announce("noise", 2)

    assert set(heard) == {2}


async def test_an_invalid_announcement_does_not_stop_the_listener(
    brain: Brain, other: Brain
) -> None:
    heard: list[object] = []

    def fail(*values: object) -> None:
        heard.append(values)
        raise ValueError

    brain.coherence.subscribe("odd", fail)
    async with other.coherence.transaction(wait_for_acks=False) as change:
        change.announce("odd", 1)
    await until(lambda: heard)
    await until(lambda: not brain.coherence.is_current)

    await until(lambda: brain.coherence.is_current)
    async with other.coherence.transaction(wait_for_acks=False) as change:
        change.announce("odd", 2)
    await until(lambda: len(heard) == 2)
