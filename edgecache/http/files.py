"""Files as bodies: sent by the kernel (sendfile) in threads, so a slow disk delays one client only.

Python's own choices do not fit: uvloop has no ``loop.sendfile``, and sendfile on the loop's thread
waits for the disk. Organizations take turns on the threads, 8 MiB each. If a client accepts nothing
for STALL_MS, the thread is released and the event loop waits until the socket is writable. So slow
clients hold no threads, however many there are.

What is at most LOOP_BYTES and in the kernel's memory is sent by the loop itself: handing 1 MiB
to a thread takes longer than sending it.
"""

import asyncio
import os
import select
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from edgecache.runtime.fair_shares import ShareKey
from edgecache.runtime.futures import retrieve
from edgecache.runtime.threads import FairThreads

P = ParamSpec("P")
T = TypeVar("T")

# What a thread sends before the next client has its turn.
TURN_BYTES: Final = 8 << 20
STALL_MS: Final = 5
# The loop itself sends this much, in some 0.25 ms; share keys take turns (``FairThreads.on_loop``).
LOOP_BYTES: Final = 1 << 20
# A file is in memory if a byte in each stretch of this length is: the kernel reads ahead, and
# forgets, many pages together.
PROBED_BYTES: Final = 256 << 10
COPIED_BYTES: Final = 256 << 10
# Sent when the file is known to have been the same until the end.
HELD_BACK_BYTES: Final = 1 << 10


class FileCutShort(Exception):
    """A file is shorter than the response's promised length."""


class FileAltered(Exception):
    """A file was altered while it was sent."""


class FileBody:
    """Bytes ``start`` to ``start + length - 1`` of an open file, which is closed with it.

    One thread at a time uses it; a close waits for that thread, so that the descriptors of the file
    and the socket are not reused while it runs.
    """

    def __init__(
        self,
        descriptor: int,
        start: int,
        length: int,
        threads: FairThreads,
        share_key: ShareKey,
        is_unaltered: Callable[[], bool] = lambda: True,
    ) -> None:
        """threads: they read and send, in the turns of share_key.

        is_unaltered: returns False once the file has been replaced or changed.
        """
        self.descriptor = descriptor
        self.start = start
        self.length = length
        # What the client's side has taken, whole or not.
        self.sent = 0
        self._threads = threads
        self._share_key = share_key
        self._is_unaltered = is_unaltered
        self._running: asyncio.Future[Any] | None = None
        self._closing: list[Callable[[], None]] = [self._close_file]

    async def in_thread(self, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run something that uses the file."""
        running = self._threads.begin(self._share_key, partial(do, *args, **kwargs))
        self._running = running
        return await asyncio.shield(running)

    def on_loop(self) -> AbstractAsyncContextManager[None]:
        """Hold the turn of the share key on the event loop."""
        return self._threads.on_loop(self._share_key)

    def piece(self, offset: int) -> bytes:
        """Return the next bytes, from an offset into the body on. It blocks.

        Raises FileCutShort, FileAltered.
        """
        count = min(COPIED_BYTES, self.length - offset)
        piece = os.pread(self.descriptor, count, self.start + offset)
        if not piece:
            raise FileCutShort
        # Afterwards: what was altered before the reading is noticed.
        self.check()
        return piece

    def is_small_and_in_memory(self) -> bool:
        """True if little is left and the kernel says that it is in memory.

        File systems that cannot tell (EOPNOTSUPP) count as disks.
        """
        if self.length > LOOP_BYTES:
            return False
        byte, last = bytearray(1), self.start + self.length - 1
        try:
            for offset in range(self.start + self.sent, last, PROBED_BYTES):
                os.preadv(self.descriptor, (byte,), offset, os.RWF_NOWAIT)
            os.preadv(self.descriptor, (byte,), last, os.RWF_NOWAIT)
        except OSError:
            return False
        return True

    def check(self) -> None:
        """Raise FileAltered if the file was altered."""
        if not self._is_unaltered():
            raise FileAltered

    async def finish_turn(self) -> None:
        """Wait until no thread uses it: then the bytes that the kernel took are counted."""
        if self._running is not None:
            await asyncio.wait((self._running,))
            retrieve(self._running)

    def close_also(self, close: Callable[[], None]) -> None:
        """Have something closed with the file."""
        self._closing.append(close)

    def close(self) -> None:
        """Close, once no thread uses it any more. Once is enough, twice is harmless."""
        if self._running is None or self._running.done():
            self._close()
        else:
            self._running.add_done_callback(self._end)

    def _end(self, turn: asyncio.Future[Any]) -> None:
        retrieve(turn)
        self._close()

    def _close(self) -> None:
        while self._closing:
            self._closing.pop()()

    def _close_file(self) -> None:
        os.close(self.descriptor)


class FileTransfer:
    """A head and a file that are being sent to a client's socket."""

    def __init__(self, client: Any, head: bytes, body: FileBody) -> None:
        """client: the transport's socket; duplicated, as the transport may close it at any time."""
        self._socket = socket.socket(
            client.family, client.type, client.proto, fileno=os.dup(client.fileno())
        )
        self._head = head
        self._body = body
        body.close_also(self._socket.close)

    async def run(self, wait: Callable[[bool], None]) -> None:
        """Send everything. wait: called with True while the client takes nothing.

        Raises OSError for a disconnected client, FileCutShort, FileAltered.
        """
        loop = asyncio.get_running_loop()
        while self._head or self._body.sent < self._body.length:
            if self._body.is_small_and_in_memory():
                async with self._body.on_loop():
                    is_full = self._turn(stall_ms=0)
            else:
                is_full = await self._body.in_thread(self._turn)
            if is_full:
                wait(True)
                await self._writable(loop)
                wait(False)

    def _turn(self, *, stall_ms: int = STALL_MS) -> bool:
        """Send for a while; True if the client takes no more for now, after this time."""
        body = self._body
        body.check()
        stops_at = body.sent + TURN_BYTES
        while self._head or body.sent < min(stops_at, body.length):
            try:
                self._send()
            except BlockingIOError:
                if not self._takes_more(stall_ms):
                    return True
        return False

    def _takes_more(self, within_ms: int) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        return bool(poll.poll(within_ms))

    def _send(self) -> None:
        if self._head:
            self._head = self._head[self._socket.send(self._head, socket.MSG_MORE) :]
            return
        body = self._body
        left = body.length - body.sent
        if left <= HELD_BACK_BYTES:
            body.sent += self._socket.send(body.piece(body.sent))
            return
        count = os.sendfile(
            self._socket.fileno(),
            body.descriptor,
            body.start + body.sent,
            min(left - HELD_BACK_BYTES, TURN_BYTES),
        )
        if count == 0:
            raise FileCutShort
        body.sent += count

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
