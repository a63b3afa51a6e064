"""One brain's life: parts start in order, ports last, and stop in reverse."""

import asyncio
import gc
import signal
from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

import structlog

from edgecache.brain.process.listeners import Listeners
from edgecache.brain.process.takeover import Successor, inherited, report_ready

log = structlog.get_logger(__name__)

STOP_TIMEOUT_S: Final = 12.0
# When another brain has taken over: for long bodies, and for what clients send at that moment.
HANDED_OVER_S: Final = 300.0
IDLE_S: Final = 2.0
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Part(Protocol):
    """A part of the process: some start tasks when they are used, and only have to be stopped."""

    async def stop(self) -> None:
        """Cancel what is running."""


@runtime_checkable
class Starts(Protocol):
    """A part that has to be started."""

    async def start(self) -> None:
        """Open what it needs."""


class BrainProcess:
    """A brain that is wired and not started yet."""

    def __init__(self, parts: Sequence[Part], listeners: Listeners) -> None:
        """parts: in start order, without the listeners."""
        self._parts = parts
        self._listeners = listeners
        self._successor = Successor()

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT; return the exit status, 1 when a listener failed.

        SIGUSR2 starts a brain that takes over.

        Raises PortTakenError, DatabaseUnavailable.
        """
        loop = asyncio.get_running_loop()
        halt = asyncio.Event()
        for signum in STOP_SIGNALS:
            loop.add_signal_handler(signum, halt.set)
        loop.add_signal_handler(signal.SIGUSR2, self._start_successor)
        try:
            return await self._serve(halt)
        finally:
            await self._stop()

    async def _serve(self, halt: asyncio.Event) -> int:
        for part in self._parts:
            if isinstance(part, Starts):
                await part.start()
        await self._listeners.start(inherited())
        log.info("brain_started", **self._listeners.ports())
        report_ready()
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

    def _start_successor(self) -> None:
        sockets = self._listeners.sockets()
        if sockets:
            self._successor.start(sockets)

    async def _stop(self) -> None:
        """Close the ports, let requests finish, then stop the parts in reverse order."""
        if self._successor.is_running:
            await self._listeners.stop(timeout_s=HANDED_OVER_S, idle_s=IDLE_S)
        else:
            await self._listeners.stop(timeout_s=STOP_TIMEOUT_S)
        for part in reversed(self._parts):
            await part.stop()
        log.info("brain_stopped")
