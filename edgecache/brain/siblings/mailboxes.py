"""Short requests of one process of a brain to the others: a datagram socket for each of them.

A request is answered after it was carried out. A hanging process is waited for one second; it does
the work later by itself.
"""

import asyncio
import contextlib
import itertools
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import DatabaseUnavailable

# Kind, the sender's place, its number for the request, and the brain that has ended.
MESSAGE: Final = struct.Struct("BBQ16s")
NO_BRAIN: Final = bytes(16)
REQUEST: Final = 1
DONE: Final = 2
ENDED: Final = 3
WAIT_S: Final = 1.0


class Mailboxes:
    """The sockets of all processes. Made before they are forked."""

    def __init__(self, processes: int) -> None:
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(processes)]
        for pair in pairs:
            for end in pair:
                end.setblocking(False)
        self.incoming = [pair[0] for pair in pairs]
        self.outgoing = [pair[1] for pair in pairs]

    def tell_ended(self, place: int, brain_id: UUID) -> None:
        """Tell the processes in all other places that the one in this place has ended.

        brain_id: of the process that has ended, because another one may have its place by then.
        """
        for number, sock in enumerate(self.outgoing):
            if number != place:
                with contextlib.suppress(OSError):
                    sock.send(MESSAGE.pack(ENDED, place, 0, brain_id.bytes))


class Mailbox:
    """One process's: it asks the others to do something, and does it when they ask."""

    def __init__(
        self,
        boxes: Mailboxes,
        place: int,
        *,
        is_serving: Callable[[int], bool],
        work: Callable[[], Awaitable[None]],
        on_ended: Callable[[UUID], Awaitable[None]],
    ) -> None:
        """place: this process's. is_serving: whether there is a process in a place.

        work: what the others may ask for. on_ended: called with the brain id of a process that
        has ended. Both may raise DatabaseUnavailable; then a request has no answer.
        """
        self._boxes = boxes
        self._place = place
        self._is_serving = is_serving
        self._work = work
        self._on_ended = on_ended
        # Numbers of a former process in this place are not reused.
        self._numbers = itertools.count(time.monotonic_ns())
        self._waiting: dict[int, tuple[set[int], asyncio.Event]] = {}
        self._tasks = BackgroundTasks()

    async def start(self) -> None:
        """Begin to read."""
        asyncio.get_running_loop().add_reader(self._boxes.incoming[self._place], self._read)

    async def stop(self) -> None:
        """Read no more."""
        asyncio.get_running_loop().remove_reader(self._boxes.incoming[self._place])
        await self._tasks.stop()

    async def ask_all(self) -> None:
        """Return when all other processes have answered, or after a second."""
        number = next(self._numbers)
        missing = {
            place
            for place in range(len(self._boxes.outgoing))
            if place != self._place
            and self._is_serving(place)
            and self._send(place, REQUEST, number)
        }
        if not missing:
            return
        done = asyncio.Event()
        self._waiting[number] = (missing, done)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WAIT_S):
                    await done.wait()
        finally:
            del self._waiting[number]

    def _send(self, place: int, kind: int, number: int) -> bool:
        """Send a message; False if a process has not read those before it."""
        try:
            self._boxes.outgoing[place].send(MESSAGE.pack(kind, self._place, number, NO_BRAIN))
        except OSError:
            return False
        return True

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                kind, sender, number, brain = MESSAGE.unpack(
                    self._boxes.incoming[self._place].recv(MESSAGE.size)
                )
                if kind == REQUEST:
                    self._tasks.add(self._carry_out(sender, number))
                elif kind == ENDED:
                    self._tasks.add(self._note_ended(UUID(bytes=brain)))
                else:
                    self._note(sender, number)

    async def _carry_out(self, sender: int, number: int) -> None:
        with contextlib.suppress(DatabaseUnavailable):
            await self._work()
            self._send(sender, DONE, number)

    async def _note_ended(self, brain_id: UUID) -> None:
        with contextlib.suppress(DatabaseUnavailable):
            await self._on_ended(brain_id)

    def _note(self, sender: int, number: int) -> None:
        missing, done = self._waiting.get(number, (set(), asyncio.Event()))
        missing.discard(sender)
        if not missing:
            done.set()
