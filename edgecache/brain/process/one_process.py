"""One process of a brain: its parts start in order, ports last, and stop in reverse."""

import asyncio
import gc
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

import structlog

from edgecache.brain.process.listeners import Listeners

log = structlog.get_logger(__name__)

STOP_TIMEOUT_S: Final = 12.0
# After a takeover: for long bodies.
HANDED_OVER_S: Final = 300.0
STOP: Final = signal.SIGTERM
STOP_HANDED_OVER: Final = signal.SIGUSR1


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
    """A process that is wired and not started yet."""

    def __init__(
        self, parts: Sequence[ProcessPart], listeners: Listeners, *, on_end: Callable[[], None]
    ) -> None:
        """parts: in start order, without the listeners. on_end: called at STOP."""
        self._on_end = on_end
        self._parts = parts
        self._listeners = listeners
        self._is_handed_over = False
        # Set when it must end, with or without a successor.
        self._ended = asyncio.Event()

    async def run(self, sockets: Mapping[str, socket.socket], on_ready: Callable[[], None]) -> int:
        """Serve until STOP, or until STOP_HANDED_OVER, when another brain has the sockets as well.

        STOP after STOP_HANDED_OVER ends the long wait for running requests.
        sockets: see ``open_sockets``.

        Returns the exit status, 1 when a listener failed. Raises DatabaseUnavailable.
        """
        loop = asyncio.get_running_loop()
        halt = asyncio.Event()
        loop.add_signal_handler(STOP, self._end, halt)
        # Ctrl-C reaches every process of a terminal: the parent decides what it means.
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.add_signal_handler(STOP_HANDED_OVER, self._hand_over, halt)
        try:
            return await self._serve(halt, sockets, on_ready)
        finally:
            await self._stop()

    def _end(self, halt: asyncio.Event) -> None:
        self._on_end()
        self._ended.set()
        halt.set()

    def _hand_over(self, halt: asyncio.Event) -> None:
        self._is_handed_over = True
        halt.set()

    async def _serve(
        self,
        halt: asyncio.Event,
        sockets: Mapping[str, socket.socket],
        on_ready: Callable[[], None],
    ) -> int:
        for part in self._parts:
            if isinstance(part, Starts):
                await part.start()
        await self._listeners.start(sockets)
        log.info("brain_process_started", **self._listeners.ports())
        on_ready()
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
        if self._is_handed_over:
            draining = asyncio.create_task(self._listeners.stop(timeout_s=HANDED_OVER_S))
            ending = asyncio.create_task(self._ended.wait())
            await asyncio.wait({draining, ending}, return_when=asyncio.FIRST_COMPLETED)
            draining.cancel()
            ending.cancel()
        await self._listeners.stop(timeout_s=STOP_TIMEOUT_S)
        for part in reversed(self._parts):
            await part.stop()
        log.info("brain_process_stopped")
