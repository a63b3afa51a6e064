"""Requests that begin at once: what never waits is over at once, what waits goes on as a task."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop
from granian import _futures

from edgecache.worker.eager import begin_at_once


class Told:
    """What a request did."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.go_on = asyncio.Event()


async def ready(told: Told) -> None:
    """Answer without waiting."""
    told.steps.append("answered")


async def waiting(told: Told) -> None:
    """Wait twice, the second time in a task's scope."""
    told.steps.append("begun")
    try:
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await told.go_on.wait()
        told.steps.append("answered")
    except asyncio.CancelledError:
        told.steps.append("cancelled")
        raise
    raise ValueError("as it is")


def begun(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Make a task of a coroutine that is named as Granian names a request's."""
    work.__name__ = "future_watcher"
    return asyncio.get_running_loop().create_task(work)


@pytest.fixture
def runner() -> asyncio.Runner:
    """Give a loop as the worker has it."""
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def test_what_never_waits_is_over_at_once(runner: asyncio.Runner) -> None:
    async def work() -> None:
        begin_at_once(asyncio.get_running_loop())
        told = Told()
        task = begun(ready(told))
        assert told.steps == ["answered"]
        assert task.done()
        # What Granian does when the client leaves.
        assert not task.cancel()

    with runner:
        runner.run(work())


def test_what_waits_goes_on_as_a_task(runner: asyncio.Runner) -> None:
    async def work() -> None:
        begin_at_once(asyncio.get_running_loop())
        told = Told()
        task = begun(waiting(told))
        assert (told.steps, task.done()) == (["begun"], False)
        await asyncio.sleep(0.01)
        told.go_on.set()
        with pytest.raises(ValueError, match="as it is"):
            await task
        assert told.steps == ["begun", "answered"]

    with runner:
        runner.run(work())


def test_what_waits_hears_that_its_client_left(runner: asyncio.Runner) -> None:
    async def work() -> None:
        begin_at_once(asyncio.get_running_loop())
        told = Told()
        task = begun(waiting(told))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told.steps == ["begun", "cancelled"]

    with runner:
        runner.run(work())


def test_all_else_begins_as_ever(runner: asyncio.Runner) -> None:
    async def work() -> None:
        begin_at_once(asyncio.get_running_loop())
        told = Told()
        task = asyncio.create_task(ready(told))
        assert told.steps == []
        await task
        assert told.steps == ["answered"]

    with runner:
        runner.run(work())


def test_granian_still_calls_it_so() -> None:
    async def app(*_: object) -> None:
        return

    work = _futures._future_watcher_wrapper(app)(object())  # type: ignore[no-untyped-call] # Granian has no hint
    assert work.__name__ == "future_watcher"
    work.close()
