"""A brain's parts start in order, ports last, and stop in reverse."""

import asyncio
import gc
import signal
from collections.abc import Callable, Sequence
from typing import Final, Protocol, runtime_checkable

import structlog

from common.machine import systemd
from edgecache.brain.process.listeners import Listeners
from edgecache.brain.process.sockets import Sockets

log = structlog.get_logger(__name__)

STOP_TIMEOUT_S: Final = 12.0
# SIGHUP as well: by default it would end the brain in the middle of its requests.
STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class ProcessPart(Protocol):
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

    def __init__(
        self, parts: Sequence[ProcessPart], listeners: Listeners, *, on_end: Callable[[], None]
    ) -> None:
        """parts: in start order, without the listeners. on_end: called at a signal to stop."""
        self._on_end = on_end
        self._parts = parts
        self._listeners = listeners

    async def run(self, sockets: Sockets) -> int:
        """Serve until a signal; return the exit status, 1 when a listener failed.

        Raises DatabaseUnavailable.
        """
        loop = asyncio.get_running_loop()
        halt = asyncio.Event()
        for signum in STOPS:
            # nohup(1) ignores SIGHUP.
            if signal.getsignal(signum) != signal.SIG_IGN:
                loop.add_signal_handler(signum, self._end, halt)
        watched = asyncio.create_task(_report_to_watchdog())
        try:
            return await self._serve(halt, sockets)
        finally:
            await self._stop()
            watched.cancel()

    def _end(self, halt: asyncio.Event) -> None:
        self._on_end()
        halt.set()

    async def _serve(self, halt: asyncio.Event, sockets: Sockets) -> int:
        for part in self._parts:
            if isinstance(part, Starts):
                await part.start()
        await self._listeners.start(sockets)
        log.info("brain_started", **self._listeners.ports())
        systemd.notify("READY=1")
        # Objects made during the start exist as long as the process: exclude them from collections.
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
        """Close the ports, let requests finish, then stop the parts in reverse order."""
        await self._listeners.stop(timeout_s=STOP_TIMEOUT_S)
        for part in reversed(self._parts):
            await part.stop()
        log.info("brain_stopped")


async def _report_to_watchdog() -> None:
    """Let systemd know that the event loop runs; it replaces a brain that does not say so."""
    while interval_s := systemd.watchdog_s():
        systemd.notify("WATCHDOG=1")
        await asyncio.sleep(interval_s / 2)
