"""A connection to a server: one request at a time, its response read with back-pressure.

The server may be a foreign machine: where a response ends must be clear, and bytes that follow it
end the connection. Interim responses go to who asks for them, redirects are not followed.
"""

import asyncio
import re
import select
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from edgecache.runtime.fair_shares import ShareKey
from edgecache.runtime.futures import wake

# Of the head, interim responses included.
HEAD_LIMIT_BYTES: Final = 65_536
NEVER: Final = float("inf")
# Limit of bytes that are received before the caller reads them.
AHEAD_BYTES: Final = 2**18
LENGTH_DIGITS: Final = 19
# A chunk's size, with its extensions.
CHUNK_LINE_LIMIT_BYTES: Final = 4096
FINAL: Final = 200
# Interim responses of the connection itself (RFC 9110 §15.2): 100 and 101.
OF_THE_CONNECTION: Final = frozenset((100, 101))
BODYLESS: Final = frozenset((204, 304))
# Instead of a body's length.
CHUNKED: Final = -1
UNTIL_CLOSE: Final = -2

_HEAD_END: Final = re.compile(rb"\n\r?\n")
_FOLD: Final = re.compile(rb"\r?\n[ \t]+")
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: .*)?")
_TOKEN: Final = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
# One whole chunk after another: an origin may send tens of thousands in one piece.
_WHOLE_CHUNK: Final = re.compile(rb"\r\n([0-9A-Fa-f]{1,15})\r\n")
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")


class RequestFailed(Exception):
    """A request without a usable response. status: of the response, 0 without one."""

    def __init__(self, reason: str, *, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Stale(Exception):
    """A kept connection was closed by the server before the request."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The head of a response. fields: names in lower case, as they came, repeated ones too."""

    status: int
    fields: list[tuple[bytes, bytes]]
    is_http_1_1: bool = True

    def field(self, wanted: bytes) -> bytes:
        """Return a field, b"" without it. Raises RequestFailed if it has several values."""
        values = {value for name, value in self.fields if name == wanted}
        if len(values) > 1:
            raise RequestFailed("ambiguous_head", status=self.status)
        return values.pop() if values else b""

    @property
    def announces_close(self) -> bool:
        """True if the connection ends with this response."""
        return any(
            option.strip() == b"close"
            for name, value in self.fields
            if name == b"connection"
            for option in value.lower().split(b",")
        )

    @property
    def keeps_connection(self) -> bool:
        """True if the next response may follow on the connection.

        RFC 9112 §6.3: a sender of a length and of chunks may mean another end than the receiver.
        """
        names = {name for name, _ in self.fields}
        is_clear = not names.issuperset((b"content-length", b"transfer-encoding"))
        return self.is_http_1_1 and is_clear and not self.announces_close


# Returns the length of the body, or CHUNKED or UNTIL_CLOSE. Raises RequestFailed for a response
# that is not wanted.
HeadCheck = Callable[[ResponseHead], int]
# Takes an interim response.
TakeInterim = Callable[[ResponseHead], None]


def any_body(head: ResponseHead, *, is_head: bool = False) -> int:
    """Return where the body of any response ends (RFC 9112 §6.3). is_head: it answers a HEAD.

    Raises RequestFailed if that is not clear.
    """
    codings = [value.lower() for name, value in head.fields if name == b"transfer-encoding"]
    lengths = {
        text.strip()
        for name, value in head.fields
        if name == b"content-length"
        for text in value.split(b",")
    }
    is_length = all(text.isdigit() and len(text) <= LENGTH_DIGITS for text in lengths)
    if codings not in ([], [b"chunked"]) or len(lengths) > 1 or not is_length:
        raise RequestFailed("unclear_end", status=head.status)
    if is_head or head.status in BODYLESS:
        return 0
    if codings:
        return CHUNKED
    return int(lengths.pop()) if lengths else UNTIL_CLOSE


class _Chunks:
    """Decodes a chunked body (RFC 9112 §7.1)."""

    def __init__(self) -> None:
        self._line = b""
        self._left = 0
        self._trailer_bytes = 0
        self._follows_data = self._is_trailer = False

    def feed(self, data: bytes) -> tuple[bytes, bytes | None]:
        """Return the content, and what follows the body; None before its end.

        Raises RequestFailed.
        """
        content, position = [], 0
        while position < len(data):
            if self._left:
                piece = data[position : position + self._left]
                content.append(piece)
                position += len(piece)
                self._left -= len(piece)
                self._follows_data = not self._left
                continue
            at_end = self._follows_data and not self._line
            if at_end and (found := _WHOLE_CHUNK.match(data, position)):
                self._left = int(found[1], 16)
                if self._left:
                    position = found.end()
                    continue
            end = data.find(b"\n", position) + 1
            self._line += data[position : end or len(data)]
            if len(self._line) > CHUNK_LINE_LIMIT_BYTES:
                raise RequestFailed("malformed_chunk")
            if not end:
                break
            position = end
            if self._end_line():
                return b"".join(content), data[position:]
        return b"".join(content), None

    def _end_line(self) -> bool:
        """Return True at the end of the body."""
        line, self._line = self._line, b""
        if not line.endswith(b"\r\n"):
            raise RequestFailed("malformed_chunk")
        line = line[:-2]
        if self._is_trailer:
            self._trailer_bytes += len(line)
            if self._trailer_bytes > HEAD_LIMIT_BYTES:
                raise RequestFailed("malformed_chunk")
            return not line
        if self._follows_data:
            self._follows_data = False
            if line:
                raise RequestFailed("malformed_chunk")
            return False
        size = _CHUNK_SIZE.fullmatch(line)
        if size is None:
            raise RequestFailed("malformed_chunk")
        self._left = int(size[1], 16)
        self._is_trailer = not self._left
        return False


class OutgoingConnection(asyncio.Protocol):
    """A connection.

    deadline: the event loop's time at which it is closed.
    stall_s: how long the body may pause.
    share_key: the share in which its request counts.
    head: of the response, once it has come.
    may_be_kept: False if the next request needs another connection.
    has_clean_end: the server has closed it properly, over TLS with its closing message.
    """

    head: ResponseHead

    def __init__(self, loop: asyncio.AbstractEventLoop, *, stall_s: float) -> None:
        self.deadline = NEVER
        self.idle_since = 0.0
        self.is_open = True
        self.is_new = True
        self.share_key: ShareKey | None = None
        self.may_be_kept = True
        self.has_clean_end = False
        self.stall_s = stall_s
        self._loop = loop
        self._transport: asyncio.Transport
        self._check: HeadCheck | None = None
        self._take_interim: TakeInterim | None = None
        self._head = bytearray()
        self._passed = 0
        self._left = 0
        self._chunks: _Chunks | None = None
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._is_paused = False
        self._failure: RequestFailed | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._waits_for_all = False
        self._can_write = asyncio.Event()

    @property
    def status(self) -> int:
        return self.head.status

    # --- asyncio's side -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # create_connection gives one of these
        self._can_write.set()

    def data_received(self, data: bytes) -> None:
        """Parse the head, then collect the body."""
        try:
            if self._check is not None:
                rest = self._take_head(self._check, data)
                if rest is None:
                    return
                data = rest
            if data:
                self._keep(data)
        except RequestFailed as failure:
            self._give_up(failure)
            return
        if not self._waits_for_all or self._left == 0:
            wake(self._waiter)

    def eof_received(self) -> None:
        """Note a proper end: over TLS that is its closing message."""
        secured = self._transport.get_extra_info("ssl_object")
        try:
            self.has_clean_end = secured is None or secured.read(1) == b""
        except ssl.SSLError:
            self.has_clean_end = False

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._check is None and self._left == UNTIL_CLOSE and self.is_open:
            self._left = 0
        self._give_up(self._failure or RequestFailed("closed"))

    def pause_writing(self) -> None:
        """Hold the request back: the server does not take it."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    # --- the reader's side --------------------------------------------------------------------

    def send(
        self,
        request: bytes,
        check: HeadCheck,
        *,
        waits_for_all: bool,
        take_interim: TakeInterim | None = None,
    ) -> None:
        """Send a request, or the beginning of one whose body follows in pieces."""
        self._check = check
        self._take_interim = take_interim
        self._waits_for_all = waits_for_all
        self._transport.write(request)

    async def send_piece(self, data: bytes, stall_s: float) -> bool:
        """Send a piece of a body; return False if the response has begun: no more is needed.

        stall_s: how long the server may take none of it. Raises RequestFailed.
        """
        if not self._can_write.is_set():
            self.deadline = self._loop.time() + stall_s
            await self._can_write.wait()
            self.deadline = NEVER
        if self._failure is not None and self._check is not None:
            raise self._failure
        if self._check is None or not self.is_open:
            self.may_be_kept = False
            return False
        self._transport.write(data)
        return True

    async def answered(self, stall_s: float) -> None:
        """Wait for the response's head, or for all of a small response.

        Raises RequestFailed: an unwanted response, a timeout. Raises Stale.
        """
        self.deadline = self._loop.time() + stall_s
        while self._check is not None or (self._waits_for_all and self._left):
            if self._failure is not None:
                if not self.is_new and self._check is not None and not self._head:
                    raise Stale
                raise self._failure
            await self._wait()

    async def piece(self) -> bytes:
        """Return the next bytes; empty at the end.

        Raises RequestFailed if the body ends too early or stalls.
        """
        while not self._pieces:
            if self._left == 0:
                self.deadline = NEVER
                return b""
            if self._failure is not None:
                raise self._failure
            self.deadline = self._loop.time() + self.stall_s
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
        is_read = self._check is None and self._left == 0 and not self._pieces
        return self.is_open and self.may_be_kept and is_read

    def may_end_within(self, limit_bytes: int) -> bool:
        """True unless more than this is known to be still to come of the response."""
        return self._left == CHUNKED or 0 <= self._left <= limit_bytes

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

    def _take_head(self, check: HeadCheck, data: bytes) -> bytes | None:
        """Return what follows the head, None before its end. Raises RequestFailed."""
        received, searched = self._head, max(0, len(self._head) - 3)
        received += data
        start = 0
        while found := _HEAD_END.search(received, max(start, searched)):
            if self._passed + found.end() > HEAD_LIMIT_BYTES:
                break
            head = _parse(bytes(received[start : found.start()]))
            start = found.end()
            if head.status >= FINAL:
                rest = bytes(received[start:])
                self._left = check(head)
                self._chunks = _Chunks() if self._left == CHUNKED else None
                self.may_be_kept = self.may_be_kept and head.keeps_connection
                self.head, self._check, self._head, self._passed = head, None, bytearray(), 0
                return rest
            if self._take_interim is not None and head.status not in OF_THE_CONNECTION:
                self._take_interim(head)
        if self._passed + len(received) > HEAD_LIMIT_BYTES:
            raise RequestFailed("head_too_long")
        del received[:start]
        self._passed += start
        return None

    def _keep(self, data: bytes) -> None:
        rest: bytes | None = None
        if self._chunks is not None and self._left:
            data, rest = self._chunks.feed(data)
            self._left = CHUNKED if rest is None else 0
        elif self._left != UNTIL_CLOSE:
            data, rest = data[: self._left], data[self._left :]
            self._left -= len(data)
        if data:
            self._pieces.append(data)
            self._held += len(data)
        if rest:
            # They would become the response to the next request.
            self.give_up("too_long")
        # After the last byte it is read on: what follows shows that the connection is not usable.
        is_ahead = self._held > AHEAD_BYTES and self._left != 0
        if is_ahead and not self._is_paused and not self._waits_for_all:
            self._is_paused = True
            self._transport.pause_reading()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


def _parse(head: bytes) -> ResponseHead:
    """Return a head. Raises RequestFailed."""
    if b"\n " in head or b"\n\t" in head:
        head = _FOLD.sub(b" ", head)
    status_line, *lines = head.replace(b"\r\n", b"\n").removesuffix(b"\r").split(b"\n")
    found = _STATUS_LINE.fullmatch(status_line)
    if found is None:
        raise RequestFailed("no_answer")
    status = int(found[2])
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name.translate(None, _TOKEN):
            raise RequestFailed("malformed_head", status=status)
        fields.append((name.lower(), value.strip(b" \t")))
    if b"\r" in head.replace(b"\r\n", b"").removesuffix(b"\r") or b"\0" in head:
        raise RequestFailed("malformed_head", status=status)
    return ResponseHead(status, fields, found[1] == b"1")
