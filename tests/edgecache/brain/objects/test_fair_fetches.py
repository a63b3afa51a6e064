"""Fetches of one organization leave room for another's, however slow its origin is."""

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from edgecache.brain.core.errors import DatabaseBusy, Overloaded
from edgecache.brain.core.share_key import use_share_of_bucket
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.objects.open_object import OpenObject
from tests.edgecache.brain.brains import ALICE, CHARLIE, Brain, Rows, running, settled, until
from tests.edgecache.brain.http_origin import Asked, Gate, HttpOrigin
from tests.edgecache.brain.objects.plain_requests import looking_up, opened, plain_request

pytestmark = pytest.mark.slow

LIMIT = 120
# Fetches that wait for a slow origin, and the most memory that each takes, with the origin's side
# of its connection, which is in this process too.
WAITING = 300
WAITER_KIB = 128
CONCURRENT = 100
CROWD = 200


@pytest.fixture
async def small(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Brain]:
    """Return a brain with few places for fetches, which may wait until a busy machine is done."""
    monkeypatch.setattr("edgecache.brain.objects.singleflight.QUEUE_S", 120.0)
    async with running(rows.url, tmp_path / "small", objects=LIMIT, stall_timeout_s=120) as brain:
        yield brain


@pytest.fixture
async def slow(small: Brain, origin: HttpOrigin) -> AsyncIterator[tuple[BucketInfo, Gate]]:
    """Return Charlie's bucket; its origin answers when the gate is opened."""
    gate = Gate()

    async def held(asked: Asked) -> None:
        await gate.wait()
        await asked.answer(b"slow")

    origin.handler = held
    yield await small.origin_bucket("http", {"url": origin.url}, tenant=CHARLIE), gate
    gate.opened.set()


@pytest.fixture
async def quick(small: Brain) -> AsyncIterator[BucketInfo]:
    """Return Alice's bucket; its origin answers immediately."""
    async with HttpOrigin({f"/k{n}": b"quick" for n in range(10)}) as server:
        yield await small.origin_bucket("http", {"url": server.url}, tenant=ALICE)


def ask(
    brain: Brain, bucket: BucketInfo, count: int, *, client: str = ""
) -> list[asyncio.Task[OpenObject]]:
    """Open distinct keys."""
    names = (f"{client}{n}" for n in range(count))
    return [asyncio.create_task(brain.objects.open(bucket, name, client=client)) for name in names]


def memory_kib() -> float:
    """Return the memory that this process takes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024


def fetched(origin: HttpOrigin) -> int:
    """Return how many objects the origin was asked for: a fetch may have connected twice."""
    return len({asked.path for asked in origin.asked})


async def filled(brain: Brain, origin: HttpOrigin) -> int:
    """Wait until some fetches wait and all others have asked the origin; return their number."""
    shares = brain.objects.singleflight.shares
    # Of streams, each fetch asks for the same one.
    await until(lambda: shares.waiting and len(origin.asked) >= shares.taken)
    return shares.taken


async def leave(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel requests."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_slow_origin_does_not_delay_another_organization(
    small: Brain, slow: tuple[BucketInfo, Gate], quick: BucketInfo, origin: HttpOrigin
) -> None:
    asking = ask(small, slow[0], LIMIT)
    assert await filled(small, origin) == LIMIT / 4

    for n in range(10):
        assert await small.get(quick, f"k{n}") == b"quick"

    refused = [task.exception() for task in asking if task.done()]
    # On a slow machine some wait too long.
    assert {type(each) for each in refused} <= {Overloaded, DatabaseBusy}
    slow[1].opened.set()
    answered = [task for task in asking if not task.done()]
    assert len(answered) > fetched(origin)
    assert {(await task).version.size for task in answered} == {4}


async def test_slow_bodies_leave_places_to_another_organization(
    small: Brain, quick: BucketInfo, origin: HttpOrigin
) -> None:
    gate = Gate()
    origin.handler = gate.between_halves
    slow = await small.origin_bucket("http", {"url": origin.url}, tenant=CHARLIE)

    asking = [asyncio.create_task(small.get(slow, f"{n}")) for n in range(LIMIT)]
    taken = await filled(small, origin)
    assert taken == LIMIT / 4
    received = list(small.data_directory.temp.iterdir())
    assert len(received) <= taken
    for n in range(10):
        assert await small.get(quick, f"k{n}") == b"quick"

    gate.opened.set()
    assert await asyncio.gather(*asking) == [b"firstlater"] * len(asking)
    await settled(small)


async def test_one_anonymous_client_leaves_room_for_others_of_the_same_bucket(
    small: Brain, slow: tuple[BucketInfo, Gate], origin: HttpOrigin
) -> None:
    flood = ask(small, slow[0], LIMIT, client="2001:db8::1")
    taken = await filled(small, origin)
    neighbours = ask(small, slow[0], 1, client="2001:db8::2")
    other = ask(small, slow[0], 1, client="192.0.2.1")
    signed = ask(small, slow[0], 1)
    await until(lambda: fetched(origin) == taken + 2)

    assert origin.count("/2001:db8::20") == 0
    assert origin.count("/192.0.2.10") == 1
    assert origin.count("/0") == 1
    slow[1].opened.set()
    await asyncio.gather(*other, *signed)
    await leave([*flood, *neighbours])


async def test_a_client_in_the_queue_does_not_delay_others_that_join_its_fetch(
    small: Brain, slow: tuple[BucketInfo, Gate], origin: HttpOrigin
) -> None:
    shares = small.objects.singleflight.shares
    flood = ask(small, slow[0], LIMIT // 2, client="192.0.2.1")
    taken = await filled(small, origin)
    assert origin.count("/192.0.2.130") == 0

    opening = [
        small.objects.open(slow[0], "192.0.2.130", client="192.0.2.7"),
        small.objects.open(slow[0], "192.0.2.130"),
    ]
    joined = [asyncio.create_task(each) for each in opening]
    await until(lambda: origin.count("/192.0.2.130") == 1)

    assert shares.taken == taken + 1
    slow[1].opened.set()
    assert {(await task).version.size for task in joined} == {4}
    await leave(flood)
    await until(lambda: not shares.taken and not shares.waiting)


async def test_waiting_for_an_origin_takes_no_file_and_no_database_connection(
    rows: Rows, tmp_path: Path, origin: HttpOrigin
) -> None:
    async with running(
        rows.url, tmp_path / "large", objects=20 * WAITING, stall_timeout_s=120
    ) as brain:
        gate = Gate()

        async def held(asked: Asked) -> None:
            await gate.wait()
            await asked.answer(b"x")

        origin.handler = held
        bucket = await brain.origin_bucket("http", {"url": origin.url})
        before = memory_kib()
        asking: list[asyncio.Task[OpenObject]] = []

        def has_asked() -> bool:
            return fetched(origin) == len(asking)

        while len(asking) < WAITING:
            # They have looked into the database before the next ones come.
            keys = range(len(asking), len(asking) + CONCURRENT)
            asking += [asyncio.create_task(brain.objects.open(bucket, f"{n}")) for n in keys]
            await until(has_asked)
        assert (memory_kib() - before) / WAITING < WAITER_KIB

        assert not list(brain.data_directory.temp.iterdir())
        assert brain.data_directory.used_bytes == 0
        busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'zonal-brain'"
        assert rows.value(f"{busy} AND datname = current_database() AND state <> 'idle'") == 0
        gate.opened.set()
        await asyncio.gather(*asking)
        await settled(brain)


@pytest.mark.parametrize("brains", [1, 2])
async def test_a_crowd_at_a_slow_origin_needs_no_crowd_of_database_connections(
    rows: Rows,
    tmp_path: Path,
    origin: HttpOrigin,
    monkeypatch: pytest.MonkeyPatch,
    brains: int,
) -> None:
    # A request that does not get a connection of its share immediately is refused.
    monkeypatch.setattr("edgecache.brain.db.database.QUEUE_S", 0.0)
    gate = Gate()

    async def held(asked: Asked) -> None:
        await gate.wait()
        await asked.answer(asked.path.encode())

    origin.handler = held
    async with contextlib.AsyncExitStack() as stack:
        brain, *others = [
            await stack.enter_async_context(
                running(rows.url, tmp_path / f"{n}", objects=20 * CROWD, stall_timeout_s=120)
            )
            for n in range(brains)
        ]
        for each in (brain, *others):
            await each.coherence.wait_until_current(5)
        quick = await stack.enter_async_context(HttpOrigin({"/k": b"quick"}))
        slow = await brain.origin_bucket("http", {"url": origin.url}, tenant=CHARLIE)
        hers = await brain.origin_bucket("http", {"url": quick.url}, tenant=ALICE)

        async def ask_for(key: str) -> bytes:
            use_share_of_bucket(slow)
            return await brain.get(slow, key)

        asking = [asyncio.create_task(ask_for(f"{n}")) for n in range(CROWD)]
        await until(lambda: fetched(origin) == CROWD or any(task.done() for task in asking))
        use_share_of_bucket(hers)
        assert await brain.get(hers, "k") == b"quick"

        gate.opened.set()
        assert await asyncio.gather(*asking) == [b"/%d" % n for n in range(CROWD)]
        await settled(brain)
        assert len(brain.kept) == CROWD + 1
        assert rows.count("filllease") == 0


async def test_a_client_that_leaves_the_queue_gives_up_its_fetch(
    small: Brain, slow: tuple[BucketInfo, Gate], origin: HttpOrigin
) -> None:
    shares = small.objects.singleflight.shares
    asking = ask(small, slow[0], LIMIT)
    taken = await filled(small, origin)
    admitted = [asking[int(row.path[1:])] for row in origin.asked]
    await leave([task for task in asking if task not in admitted])
    await until(lambda: shares.waiting == 0)

    slow[1].opened.set()
    await asyncio.gather(*admitted)
    assert fetched(origin) == taken


async def test_readers_of_event_streams_leave_room_and_end_their_fetches(
    small: Brain, slow: tuple[BucketInfo, Gate], quick: BucketInfo, origin: HttpOrigin
) -> None:
    ended = 0

    async def events(asked: Asked) -> None:
        nonlocal ended
        asked.head("200 OK", "Content-Type: text/event-stream", "Cache-Control: no-store")
        await asked.say(b"data: 1\n\n")
        await asked.reader.read()
        ended += 1

    origin.handler = events
    lookup = looking_up(small)
    wanted = await plain_request(small, slow[0], "events", client="192.0.2.1")

    async def listen() -> None:
        async for _ in (await opened(lookup, wanted)).body():
            pass

    listening = [asyncio.create_task(listen()) for _ in range(LIMIT)]
    taken = await filled(small, origin)
    for n in range(10):
        assert await small.get(quick, f"k{n}") == b"quick"
    await leave(listening)
    await until(lambda: ended == taken)

    await settled(small)
    assert small.objects.singleflight.shares.taken == 0
    await lookup.stop()
