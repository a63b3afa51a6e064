"""Periodic background work, whose next round comes even after a failure."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from edgecache.brain.errors import DatabaseAway

log = structlog.get_logger(__name__)


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

    def start(self) -> None:
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
            except DatabaseAway:
                log.warning("brain_round_put_off", round=self._name)
            except Exception:
                log.exception("brain_round_failed", round=self._name)
