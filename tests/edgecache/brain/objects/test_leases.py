"""Two brains share the fetch of a key and also work without each other."""

import asyncio
from uuid import UUID

import pytest

from common.ids import uuid7
from edgecache.brain.core.errors import DatabaseUnavailable, OriginMissing
from edgecache.brain.core.values import BucketInfo, Name
from edgecache.brain.objects import leases, singleflight
from tests.edgecache.brain.brains import Brain, Rows, read, settled, until
from tests.edgecache.brain.http_origin import Asked, HttpOrigin

pytestmark = pytest.mark.slow


class Held:
    """An origin's handler that waits for the test."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.came = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, asked: Asked) -> None:
        """Respond once the test allows it."""
        self.came.set()
        await self.go_on.wait()
        await asked.answer(self.data, 'ETag: "v"')


async def test_an_uncached_key_is_fetched_once_by_two_brains(
    brain: Brain, other: Brain, origin: HttpOrigin
) -> None:
    # A shared disk, as of two processes on one machine.
    other.data_directory.root = brain.data_directory.root
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.handler = held = Held(b"x" * 300_000)
    asking = [
        asyncio.create_task(one.get(bucket, "k")) for _ in range(50) for one in (brain, other)
    ]
    await held.came.wait()
    await until(
        lambda: (
            len(brain.objects.singleflight.running) + len(other.objects.singleflight.running) == 2
        )
    )
    held.go_on.set()

    assert set(await asyncio.gather(*asking)) == {held.data}
    assert origin.count("/k") == 1
    assert len(brain.kept) + len(other.kept) == 1


async def test_the_waiting_brain_reads_the_bytes_from_a_node(
    brain: Brain, other: Brain, origin: HttpOrigin, rows: Rows
) -> None:
    node = rows.node(uuid7())
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.handler = held = Held(b"bytes")
    winner = asyncio.create_task(brain.objects.open(bucket, "k"))
    await held.came.wait()
    loser = asyncio.create_task(other.objects.open(bucket, "k"))
    await until(lambda: other.objects.singleflight.running)
    held.go_on.set()
    await (await winner).whole()
    await until(lambda: brain.kept)
    assert not loser.done()
    await brain.directory.add_locations({brain.kept[0].sha256: (node,)})
    opened = await loser

    assert opened.version.sha256 == brain.kept[0].sha256
    assert await other.directory.locations(opened.version.sha256) == (node,)
    assert origin.count("/k") == 1


async def test_without_nodes_each_brain_fetches_for_itself(
    brain: Brain, other: Brain, origin: HttpOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There is no replica to wait for.
    monkeypatch.setattr(singleflight, "REPLICA_LIMIT_S", 3600.0)
    monkeypatch.setattr(other.objects.singleflight, "_may_replicate", lambda _bucket: False)
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"bytes"
    assert await brain.get(bucket, "k") == b"bytes"
    await settled(brain)

    opened = await other.objects.open(bucket, "k")

    assert opened.is_hit
    assert await read(opened) == b"bytes"
    assert origin.count("/k") == 2


async def test_a_failed_fetch_is_retried_by_the_other_brain(
    brain: Brain, other: Brain, origin: HttpOrigin
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    came, go_on = asyncio.Event(), asyncio.Event()

    async def fails_once(asked: Asked) -> None:
        if not came.is_set():
            came.set()
            await go_on.wait()
            await asked.answer(b"", status="404 Not Found")
        else:
            await asked.answer(b"there")

    origin.handler = fails_once
    first = asyncio.create_task(brain.objects.open(bucket, "k"))
    await came.wait()
    second = asyncio.create_task(other.get(bucket, "k"))
    await until(lambda: other.objects.singleflight.running)
    go_on.set()

    assert (await asyncio.gather(first, return_exceptions=True))[0].__class__.__name__ == (
        "OriginMissing"
    )
    assert await second == b"there"


def held_by(rows: Rows, bucket: BucketInfo, brain_id: UUID, *, seconds: int) -> None:
    """Make a brain hold the fetch lock of a key."""
    rows.run(
        "INSERT INTO brain_filllease (bucket_id, key, brain_id, expires_at)"
        " VALUES (%s, 'k', %s, clock_timestamp() + make_interval(secs => %s))",
        [bucket.id, brain_id, seconds],
    )


async def test_a_fetch_lock_that_is_not_renewed_expires(
    brain: Brain, other: Brain, origin: HttpOrigin, rows: Rows
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"x"
    held_by(rows, bucket, other.id, seconds=1)
    expires_at = rows.value("SELECT expires_at FROM brain_filllease")

    assert await brain.get(bucket, "k") == b"x"

    assert rows.value("SELECT clock_timestamp() > %s", [expires_at])
    await settled(brain)
    assert rows.count("filllease") == 0


async def test_the_fetch_lock_of_a_dead_brain_is_released(
    brain: Brain, other: Brain, origin: HttpOrigin, rows: Rows
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"x"
    held_by(rows, bucket, uuid7(), seconds=3600)

    assert await asyncio.wait_for(brain.get(bucket, "k"), 5) == b"x"
    await settled(brain)
    assert rows.count("filllease") == 0


async def test_waiting_for_a_fetch_lock_is_limited(
    brain: Brain,
    other: Brain,
    origin: HttpOrigin,
    rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(singleflight, "TURN_LIMIT_S", 0.2)
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"x"
    held_by(rows, bucket, other.id, seconds=3600)

    assert await brain.get(bucket, "k") == b"x"


async def test_a_lock_is_kept_without_renewals_and_freed_when_its_brain_is_gone(
    brain: Brain, other: Brain, origin: HttpOrigin, rows: Rows
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.handler = held = Held(b"x")
    asking = [asyncio.create_task(brain.get(bucket, f"k{n}")) for n in range(20)]
    await until(lambda: len(origin.asked) == 20)
    before = rows.all("SELECT xmin, ctid FROM brain_filllease ORDER BY key")
    waiting = asyncio.create_task(other.get(bucket, "k0"))
    await until(lambda: other.objects.singleflight.running)
    await asyncio.sleep(leases.POLL_S * 1.5)
    assert rows.all("SELECT xmin, ctid FROM brain_filllease ORDER BY key") == before
    assert origin.count("/k0") == 1

    rows.run("UPDATE brain_filllease SET brain_id = gen_random_uuid()")
    await until(lambda: origin.count("/k0") == 2)

    held.go_on.set()
    assert set(await asyncio.gather(*asking, waiting)) == {b"x"}
    await settled(brain)


async def test_a_lock_that_could_not_be_released_is_released_later(
    brain: Brain,
    other: Brain,
    origin: HttpOrigin,
    rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "POLL_S", 0.01)
    failures: list[Name] = []
    held = brain.objects.singleflight._leases
    release = held._release

    async def fail_once(name: Name) -> None:
        if not failures:
            failures.append(name)
            raise DatabaseUnavailable
        await release(name)

    monkeypatch.setattr(held, "_release", fail_once)
    bucket = await brain.origin_bucket("http", {"url": origin.url})

    # What is stored ends its lease with its transaction.
    with pytest.raises(OriginMissing):
        await brain.get(bucket, "k")

    await until(lambda: failures and rows.count("filllease") == 0)


async def test_a_stored_response_ends_its_lease(
    brain: Brain, other: Brain, origin: HttpOrigin, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"x"
    releases: list[Name] = []

    async def note(name: Name) -> None:
        releases.append(name)

    monkeypatch.setattr(brain.objects.singleflight._leases, "release", note)

    assert await brain.get(bucket, "k") == b"x"
    await settled(brain)

    assert rows.count("filllease") == 0
    assert not releases


async def test_without_the_database_of_leases_the_origin_is_asked(
    brain: Brain, other: Brain, origin: HttpOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_name: Name) -> bool:
        raise DatabaseUnavailable

    monkeypatch.setattr(brain.objects.singleflight._leases, "_acquire", fail)
    bucket = await brain.origin_bucket("http", {"url": origin.url})
    origin.objects["/k"] = b"x"

    assert await brain.get(bucket, "k") == b"x"
    assert origin.count("/k") == 1
