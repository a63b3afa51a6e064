"""Requests begin in the turn of the event loop that hears of them.

Granian has a task made of each, which begins a turn later. A read never waits, so it is answered
before a task is needed: that is a tenth of what a small answer costs.
"""

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, Final

# What Granian makes a task of; should it be called otherwise one day, tasks are made as ever.
REQUEST: Final = "future_watcher"


def begin_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """Have a loop run requests up to where they first wait; until there they are no task yet."""
    ended: asyncio.Future[None] = loop.create_future()
    ended.set_result(None)

    def make(
        loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Future[Any]:
        if getattr(coro, "__name__", "") != REQUEST:
            return asyncio.Task(coro, loop=loop, **options)
        try:
            waited = coro.send(None)
        except StopIteration:
            return ended
        return asyncio.Task(_go_on(coro, waited), loop=loop, **options)

    loop.set_task_factory(make)  # type: ignore[arg-type] # a future is all that Granian needs


async def _go_on(coro: Coroutine[Any, Any, Any], waited: Any) -> Any:
    # A generator alone is no coroutine to newer versions of Python.
    return await _rest(coro, waited)  # type: ignore[misc] # awaitable by types.coroutine


@types.coroutine
def _rest(coro: Coroutine[Any, Any, Any], waited: Any) -> Generator[Any, Any, Any]:
    """Go on with a coroutine that waits for something."""
    try:
        while True:
            try:
                said = yield waited
            except GeneratorExit:
                coro.close()
                raise
            except BaseException as thrown:  # noqa: BLE001 - a cancellation, too, is its own to see
                waited = coro.throw(thrown)
            else:
                waited = coro.send(said)
    except StopIteration as end:
        return end.value
