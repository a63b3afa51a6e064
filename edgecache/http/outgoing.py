"""A connection to a server: one request at a time, its response read with back-pressure.

The server may be a foreign machine: a response without a Content-Length, or of another length than
announced, is a failure. Redirects are not followed.
"""

import asyncio
import select
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from edgecache.runtime.fair_shares import ShareKey
from edgecache.runtime.futures import wake

HEAD_LIMIT_BYTES: Final = 16_384
NEVER: Final = float("inf")
# Limit of bytes that are received before the caller reads them.
AHEAD_BYTES: Final = 2**18
HEAD_END: Final = b"\r\n\r\n"

# Takes the status and the fields of a head, names in lower case; returns the length of the body.
# Raises RequestFailed for a response that is not wanted.
HeadCheck = Callable[[int, Mapping[bytes, bytes]], int]


class RequestFailed(Exception):
    """A request without a usable response. status: of the response, 0 without one."""

    def __init__(self, reason: str, *, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Stale(Exception):
    """A kept connection was closed by the server before the request."""


class OutgoingConnection(asyncio.Protocol):
    """A connection.

    deadline: the event loop's time at which it is closed.
    share_key: the share in which its request counts.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, stall_s: float) -> None:
        self.deadline = NEVER
        self.idle_since = 0.0
        self.is_open = True
        self.is_new = True
        self.share_key: ShareKey | None = None
        self.status = 0
        self._stall_s = stall_s
        self._loop = loop
        self._transport: asyncio.Transport
        self._check: HeadCheck | None = None
        self._head = b""
        self._left = 0
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._is_paused = False
        self._failure: RequestFailed | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._waits_for_all = False
        self._can_write = asyncio.Event()

    # --- asyncio's side -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # create_connection gives one of these
        self._can_write.set()

    def data_received(self, data: bytes) -> None:
        """Parse the head, then collect the body."""
        if self._check is not None:
            self._head = data = self._head + data
            end = data.find(HEAD_END)
            if end < 0:
                if len(data) > HEAD_LIMIT_BYTES:
                    self.give_up("head_too_long")
                return
            try:
                self.status, fields = _parse(data[:end])
                self._left = self._check(self.status, fields)
            except RequestFailed as failure:
                self._give_up(failure)
                return
            self._check, self._head = None, b""
            data = data[end + len(HEAD_END) :]
        if data:
            self._keep(data)
        if not self._waits_for_all or self._left == 0:
            wake(self._waiter)

    def connection_lost(self, exc: Exception | None) -> None:
        self._give_up(self._failure or RequestFailed("closed"))

    def pause_writing(self) -> None:
        """Hold the request back: the server does not take it."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    # --- the reader's side --------------------------------------------------------------------

    def send(self, request: bytes, check: HeadCheck, *, waits_for_all: bool) -> None:
        """Send a request, or the beginning of one whose body follows in pieces."""
        self._check = check
        self._waits_for_all = waits_for_all
        self._transport.write(request)

    async def send_piece(self, data: bytes) -> bool:
        """Send a piece of a body; return False if the response has begun: no more is needed.

        Raises RequestFailed.
        """
        await self._can_write.wait()
        if self._failure is not None and self._check is not None:
            raise self._failure
        if self._check is None or not self.is_open:
            return False
        self._transport.write(data)
        return True

    async def answered(self, stall_s: float) -> None:
        """Wait for the response's head, or for all of a small response.

        Raises RequestFailed: an unwanted response, a timeout. Raises Stale.
        """
        self.deadline = self._loop.time() + stall_s
        while self._check is not None or (self._waits_for_all and self._left > 0):
            if self._failure is not None:
                if not self.is_new and self._check is not None and not self._head:
                    raise Stale
                raise self._failure
            await self._wait()

    async def piece(self) -> bytes:
        """Return the next bytes; empty at the end.

        Raises RequestFailed if the body ends too early, stalls or is too long.
        """
        while not self._pieces:
            if self._left == 0:
                self.deadline = NEVER
                return b""
            if self._failure is not None:
                raise self._failure
            self.deadline = self._loop.time() + self._stall_s
            await self._wait()
        # A slow reader is not a stall of the server.
        self.deadline = NEVER
        data = self._pieces.popleft()
        self._held -= len(data)
        if self._is_paused and self._held <= AHEAD_BYTES // 2:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def whole_body(self) -> bytes:
        """Return the body of a response that was awaited completely."""
        pieces = list(self._pieces)
        self._pieces.clear()
        self._held = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @property
    def is_spent(self) -> bool:
        """True if the response was read to its end, so that the connection can be used again."""
        return self.is_open and self._check is None and self._left == 0 and not self._pieces

    def is_silent(self) -> bool:
        """True if nothing came since the last response, not even bytes that wait in the kernel."""
        if not self.is_open:
            return False
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return not poll.poll(0)

    def give_up(self, reason: str) -> None:
        """Break the connection."""
        self._give_up(RequestFailed(reason))

    def _give_up(self, failure: RequestFailed) -> None:
        if self.is_open:
            self.is_open = False
            self._failure = failure
            self._transport.abort()
        self._can_write.set()
        wake(self._waiter)

    def _keep(self, data: bytes) -> None:
        if len(data) > self._left:
            self._pieces.clear()
            self.give_up("too_long")
            return
        self._left -= len(data)
        self._pieces.append(data)
        self._held += len(data)
        # After the last byte it is read on: what follows shows that the connection is not usable.
        is_ahead = self._held > AHEAD_BYTES and self._left > 0
        if is_ahead and not self._is_paused and not self._waits_for_all:
            self._is_paused = True
            self._transport.pause_reading()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


def _parse(head: bytes) -> tuple[int, dict[bytes, bytes]]:
    """Return the status and the fields of a head. Raises RequestFailed."""
    status_line, *lines = head.split(b"\r\n")
    words = status_line.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.1") or not words[1].isdigit():
        raise RequestFailed("no_answer")
    status = int(words[1])
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        if fields.setdefault(name.lower(), value.strip()) != value.strip():
            raise RequestFailed("ambiguous_head", status=status)
    return status, fields
