"""Threads that organizations have in turn."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from edgecache.runtime.threads import FairThreads

ALICE, BOB = (1,), (2,)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Return what the first work waits for; it is opened at the end."""
    event = threading.Event()
    yield event
    event.set()


async def test_organizations_wait_for_a_thread_in_turn(gate: threading.Event) -> None:
    threads, order = FairThreads(1, "shared"), list[int]()

    def note(organization_id: int) -> None:
        gate.wait(20)
        order.append(organization_id)

    working = [threads.begin(ALICE, lambda: note(1)) for _ in range(60)]
    working += [threads.begin(BOB, lambda: note(2)) for _ in range(3)]
    await asyncio.sleep(0)
    # One runs.
    assert threads._shares.waiting == 62
    gate.set()
    await asyncio.gather(*working)
    threads.stop()

    assert order[:8].count(2) == 3
    assert (threads._shares.waiting, len(order)) == (0, 63)


async def test_an_organization_with_long_work_leaves_a_thread(gate: threading.Event) -> None:
    threads = FairThreads(2, "shared")
    working = [threads.begin(ALICE, lambda: gate.wait(20)) for _ in range(3)]
    await asyncio.sleep(0)

    assert await asyncio.wait_for(threads.run(BOB, lambda: "done"), 20) == "done"

    assert not any(one.done() for one in working)
    gate.set()
    assert all(await asyncio.gather(*working))
    threads.stop()


async def test_a_cancelled_caller_leaves_the_queue(gate: threading.Event) -> None:
    threads, ran = FairThreads(1, "shared"), list[str]()
    first = threads.begin(ALICE, lambda: gate.wait(20))
    leaving = asyncio.create_task(threads.run(BOB, lambda: ran.append("left")))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert threads._shares.waiting == 0

    gate.set()
    await threads.run(BOB, lambda: ran.append("stayed"))
    assert await first
    threads.stop()

    assert ran == ["stayed"]


async def test_work_that_fails_gives_its_thread_back() -> None:
    threads = FairThreads(1, "shared")

    def fail() -> None:
        raise OSError("the disk")

    for _ in range(3):
        with pytest.raises(OSError, match="the disk"):
            await threads.begin(ALICE, fail)
    assert await threads.run(BOB, lambda: "done") == "done"
    threads.stop()


async def test_turns_on_the_event_loop_come_after_all_else_that_is_ready() -> None:
    threads, order = FairThreads(1, "shared"), list[str]()

    async def send(name: str, share_key: tuple[int, ...]) -> None:
        async with threads.on_loop(share_key):
            order.append(name)

    async def short_request() -> None:
        # It is received, handled and answered in steps, as any request is.
        for _ in range(3):
            await asyncio.sleep(0)
        order.append("short request")

    sending = [asyncio.create_task(send("greedy", ALICE)) for _ in range(100)]
    await asyncio.sleep(0)
    sending.append(asyncio.create_task(send("modest", BOB)))
    await asyncio.create_task(short_request())
    await asyncio.gather(*sending)
    threads.stop()

    assert order.index("short request") <= 4
    assert order.index("modest") <= 4
    assert len(order) == 102
