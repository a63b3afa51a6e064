"""Files as bodies: sent by the kernel (sendfile), in threads, so that a disk holds up one client.

Python's own choices do not fit: uvloop has no ``loop.sendfile``, and sendfile on the loop's thread
waits for the disk. A thread sends while the client takes; it leaves a client that takes nothing
after STALL_MS, and the loop waits for that one. So slow clients hold no threads, however many.
"""

import asyncio
import os
import select
import socket
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final

# What a thread sends before the next client has its turn.
TURN_BYTES: Final = 8 << 20
STALL_MS: Final = 5
COPIED_BYTES: Final = 256 << 10


class FileCutShort(Exception):
    """A file ended before the bytes that were promised of it."""


@dataclass(slots=True)
class FileBody:
    """Bytes ``start`` to ``start + length - 1`` of an open file. pool: the threads that send."""

    descriptor: int
    start: int
    length: int
    pool: Executor

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)

    def read(self, offset: int) -> bytes:
        """Return the next bytes, from an offset into the body on. Raises FileCutShort."""
        count = min(COPIED_BYTES, self.length - offset)
        piece = os.pread(self.descriptor, count, self.start + offset)
        if not piece:
            raise FileCutShort
        return piece


class FileTransfer:
    """A head and a file on their way into a client's socket. sent: bytes of the body."""

    def __init__(self, client: Any, head: bytes, body: FileBody) -> None:
        """client: the transport's socket, which is duplicated: it may be closed at any time."""
        self.sent = 0
        self._socket = socket.socket(
            client.family, client.type, client.proto, fileno=os.dup(client.fileno())
        )
        self._head = head
        self._body = body
        self._running: asyncio.Future[bool] | None = None

    async def run(self, wait: Callable[[bool], None]) -> None:
        """Send everything. wait: called with True while the client takes nothing.

        Raises OSError for a client that is gone, FileCutShort.
        """
        loop = asyncio.get_running_loop()
        while self._head or self.sent < self._body.length:
            self._running = loop.run_in_executor(self._body.pool, self._turn)
            if await asyncio.shield(self._running):
                wait(True)
                await self._writable(loop)
                wait(False)

    def close(self) -> None:
        """Close socket and file, once no thread uses them any more."""
        if self._running is None or self._running.done():
            self._close()
        else:
            self._running.add_done_callback(self._end)

    def _end(self, turn: asyncio.Future[bool]) -> None:
        if not turn.cancelled():
            # Nobody waits for this turn: what went wrong in it changes nothing.
            turn.exception()
        self._close()

    def _close(self) -> None:
        self._socket.close()
        self._body.close()

    def _turn(self) -> bool:
        """Send for a while; True if the client takes no more for now."""
        stops_at = self.sent + TURN_BYTES
        while self._head or self.sent < min(stops_at, self._body.length):
            try:
                self._send()
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._socket, select.POLLOUT)
                if not poll.poll(STALL_MS):
                    return True
        return False

    def _send(self) -> None:
        if self._head:
            self._head = self._head[self._socket.send(self._head, socket.MSG_MORE) :]
            return
        body = self._body
        count = os.sendfile(
            self._socket.fileno(),
            body.descriptor,
            body.start + self.sent,
            min(body.length - self.sent, TURN_BYTES),
        )
        if count == 0:
            raise FileCutShort
        self.sent += count

    async def _writable(self, loop: asyncio.AbstractEventLoop) -> None:
        ready = loop.create_future()
        loop.add_writer(self._socket, _set, ready)
        try:
            await ready
        finally:
            loop.remove_writer(self._socket)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
