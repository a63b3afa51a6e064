"""Background work: single tasks, and rounds that are repeated even after a failure."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import structlog

from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.runtime.futures import retrieve

log = structlog.get_logger(__name__)

T = TypeVar("T")


class BackgroundTasks:
    """Tasks that no caller has to wait for; they are kept until they end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, work: Coroutine[Any, Any, T], *, has_caller: bool = False) -> asyncio.Task[T]:
        """Start a task. has_caller: its caller, if still there, gets its error."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if has_caller:
            task.add_done_callback(retrieve)
        return task

    async def finish(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Cancel all of them, and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await self.finish()


async def wait_for_wakeup(wakeup: asyncio.Event, timeout_s: float) -> None:
    """Wait until an event is set, for a while at most, and clear it: the pause of a round."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await wakeup.wait()
    wakeup.clear()


class PeriodicTask:
    """A loop of pause and work. A failed round is logged."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        pause: Callable[[], Awaitable[object]],
    ) -> None:
        """name: for the log. pause: awaited before each round."""
        self._name = name
        self._work = work
        self._pause = pause
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start with a pause."""
        self._task = asyncio.create_task(self._keep_going(), name=self._name)

    async def stop(self) -> None:
        """Stop, in the middle of a round if necessary."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep_going(self) -> None:
        while True:
            await self._pause()
            try:
                await self._work()
            except DatabaseUnavailable:
                log.warning("brain_round_put_off", round=self._name)
            except Exception:
                log.exception("brain_round_failed", round=self._name)
