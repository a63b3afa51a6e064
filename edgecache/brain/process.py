"""One brain's life: services start in order, ports last, and stop in reverse."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from edgecache.brain.listeners import Listeners

log = structlog.get_logger(__name__)

STOP_TIMEOUT_S: Final = 12.0
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Background(Protocol):
    """A part that only has to be stopped: it starts tasks when it is used."""

    async def stop(self) -> None:
        """Cancel what is running."""


class Starts(Background, Protocol):
    """A part with a start as well."""

    async def start(self) -> None:
        """Open what it needs."""


@dataclass(frozen=True, slots=True)
class Service:
    """A part of the process. start: None for a part that is started by its use."""

    start: Callable[[], Awaitable[None]] | None
    stop: Callable[[], Awaitable[None]]


def service(part: Starts) -> Service:
    """Return the service of a part that starts and stops."""
    return Service(part.start, part.stop)


def background(part: Background) -> Service:
    """Return the service of a part that only stops."""
    return Service(None, part.stop)


class BrainProcess:
    """A brain that is wired and not started yet."""

    def __init__(self, services: Sequence[Service], listeners: Listeners) -> None:
        """services: in start order, without the listeners."""
        self._services = services
        self._listeners = listeners

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT; return the exit status, 1 when a listener failed.

        Raises PortTakenError, DatabaseAway.
        """
        loop = asyncio.get_running_loop()
        halt = asyncio.Event()
        for signum in STOP_SIGNALS:
            loop.add_signal_handler(signum, halt.set)
        try:
            return await self._serve(halt)
        finally:
            await self._stop()

    async def _serve(self, halt: asyncio.Event) -> int:
        for each in self._services:
            if each.start is not None:
                await each.start()
        await self._listeners.start()
        log.info("brain_started", **self._listeners.ports())
        # Objects made during the start live as long as the process: keep them out of collections.
        gc.collect()
        gc.freeze()
        halting = asyncio.create_task(halt.wait())
        failing = asyncio.create_task(self._listeners.wait_for_failure())
        await asyncio.wait({halting, failing}, return_when=asyncio.FIRST_COMPLETED)
        has_failed = not halting.done()
        if has_failed:
            log.error("brain_listener_failed")
        for task in (halting, failing):
            task.cancel()
        return 1 if has_failed else 0

    async def _stop(self) -> None:
        """Close the ports, let requests finish, then stop the services in reverse order."""
        await self._listeners.stop(timeout_s=STOP_TIMEOUT_S)
        for each in reversed(self._services):
            await each.stop()
        log.info("brain_stopped")
