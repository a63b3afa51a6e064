"""One request and its answer: RSGI's protocol object, with back-pressure in both directions."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from edgecache.http.files import FileBody
from edgecache.http.response_head import HeaderPairs, HeaderRefused, response_head
from edgecache.http.scope import HttpScope
from edgecache.runtime.futures import wake

# More than this unread, and the connection reads no further.
BODY_HIGH_BYTES: Final = 2**18
# Smaller pieces that wait are joined: each costs as much as a large one.
JOINED_BYTES: Final = 2**12
# A larger body is not copied after its head.
COPIED_BYTES: Final = 2**14
BODYLESS: Final = frozenset((204, 304))


class ClientGone(Exception):
    """The client disconnected, or was disconnected because it did not read."""


class BodyTimeout(Exception):
    """The client sends its body too slowly."""


class BodyTooLong(Exception):
    """A body is longer than its head says. The connection is cut, and no such piece is sent."""


class ServerConnection(Protocol):
    """What an exchange needs of its connection."""

    def write(self, data: bytes | bytearray) -> None: ...
    async def drain(self) -> None: ...
    def ask_for_body(self) -> None: ...
    def pace_reading(self) -> None: ...
    def cut(self) -> None: ...
    async def send_file(self, head: bytes, body: FileBody) -> None: ...
    @property
    def transport(self) -> asyncio.Transport: ...


@dataclass(slots=True, eq=False, repr=False)
class Exchange:
    """One request and its response.

    Iterating yields the pieces of the body. Exactly one ``response_…`` is called; a response that
    ends before its Content-Length closes the connection, so that it is not taken for complete, and
    so does one that would be longer. is_sized: the head of a stream says how long it is.
    added: headers of the response, whichever it is; they replace others of their names, but Vary.
    began: ``time.perf_counter`` when the head had come. is_complete: the request has come to its
    end, read or not. cause: a word for the log, if it failed. owes_continue: the client waits for a
    100 before it sends the body.
    """

    scope: HttpScope
    _connection: ServerConnection
    keeps_alive: bool = field(kw_only=True)
    added: HeaderPairs = ()
    began: float = field(default_factory=time.perf_counter)
    is_gone: bool = False
    is_complete: bool = False
    is_answered: bool = False
    has_failed: bool = False
    is_chunked: bool = False
    is_sized: bool = False
    owes_continue: bool = field(init=False)
    status: int = 0
    cause: str = ""
    head_bytes: int = 0
    body_bytes: int = 0
    unread_bytes: int = 0
    sent_bytes: int = 0
    wanted_bytes: int = 0
    _body: deque[bytes | bytearray] = field(default_factory=deque)
    _is_late: bool = False
    _waiter: asyncio.Future[None] | None = None

    def __post_init__(self) -> None:
        expects = self.scope.headers.get("expect").lower()
        # Older clients know no 100 (RFC 9110 §10.1.1).
        self.owes_continue = expects == "100-continue" and self.scope.http_version == "1.1"

    @property
    def transport(self) -> asyncio.Transport:
        return self._connection.transport

    # --- the request's body -------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take a piece of the body off the wire."""
        self.body_bytes += len(data)
        self.unread_bytes += len(data)
        last = self._body[-1] if self._body else None
        if len(data) >= JOINED_BYTES:
            self._body.append(data)
        elif isinstance(last, bytearray):
            last += data
        else:
            self._body.append(bytearray(data))
        wake(self._waiter)

    def end(self) -> None:
        self.is_complete = True
        wake(self._waiter)

    def expire(self) -> None:
        """Note that the body comes too slowly."""
        self._is_late = True
        wake(self._waiter)

    def lose(self) -> None:
        """Note that the client disconnected."""
        self.is_gone = True
        wake(self._waiter)

    def __aiter__(self) -> "Exchange":
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece.

        Raises ClientGone when the client leaves before the body's end, BodyTimeout.
        """
        while not self._body:
            if self.is_complete:
                raise StopAsyncIteration
            if self.is_gone:
                raise ClientGone
            if self._is_late:
                raise BodyTimeout
            self._connection.ask_for_body()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        data = bytes(self._body.popleft())
        self.unread_bytes -= len(data)
        self._connection.pace_reading()
        return data

    async def __call__(self) -> bytes:
        """Return the whole body; for bodies that are known to be small."""
        return b"".join([piece async for piece in self])

    # --- the answer ---------------------------------------------------------------------------

    def response_interim(self, status: int, headers: HeaderPairs) -> None:
        """Send an interim response (1xx) before the response; nothing where it cannot be.

        Clients of HTTP/1.0 know none. One that is not valid is left out.
        """
        if self.is_answered or self.is_gone or self.scope.http_version != "1.1":
            return
        with contextlib.suppress(HeaderRefused):
            self._connection.write(response_head(status, headers, None, keeps_alive=True))

    def response_empty(self, status: int, headers: HeaderPairs) -> None:
        """Respond without a body; a Content-Length among the headers is kept (HEAD)."""
        self._start(status, headers, None if self._is_bodyless(status) else 0)

    def response_bytes(self, status: int, headers: HeaderPairs, body: bytes | bytearray) -> None:
        """Answer with a body in memory."""
        if self._is_bodyless(status):
            self._start(status, headers, None)
            return
        self._start(status, headers, len(body), body)
        self.sent_bytes = 0 if self.is_gone else len(body)

    async def response_file(self, status: int, headers: HeaderPairs, body: FileBody) -> None:
        """Answer with bytes of an open file, and close it.

        Raises ClientGone, FileCutShort, FileAltered.
        """
        try:
            if self._is_bodyless(status) or not body.length:
                self.response_bytes(status, headers, b"")
                return
            self.wanted_bytes = body.length
            head = self._head(status, headers, body.length)
            await self._connection.send_file(head, body)
        except asyncio.CancelledError:
            # The client left while a thread sends.
            await body.finish_turn()
            raise
        finally:
            self.sent_bytes += body.sent
            body.close()

    def response_str(self, status: int, headers: HeaderPairs, body: str) -> None:
        """Answer with text."""
        self.response_bytes(status, headers, body.encode())

    def response_stream(self, status: int, headers: HeaderPairs) -> None:
        """Begin a response whose body follows, in chunks if the headers do not give its length.

        ``send_bytes`` sends it; the response to a HEAD has none. It ends when the application
        returns, and is complete unless that raises or ``cut`` was called.
        """
        length = next((value for name, value in headers if name.lower() == "content-length"), "")
        if self._is_bodyless(status):
            self.is_sized = True
        elif length:
            self.is_sized = True
            self.wanted_bytes = int(length)
        elif self.scope.http_version == "1.1":
            self.is_chunked = True
            headers = [*headers, ("transfer-encoding", "chunked")]
        else:
            self.keeps_alive = False
        self._start(status, headers, None)

    async def send_bytes(self, data: bytes) -> None:
        """Send a piece of such a body; wait while the client takes less than it is sent.

        Raises ClientGone, BodyTooLong.
        """
        if self.is_gone:
            raise ClientGone
        if self.is_sized and self.sent_bytes + len(data) > self.wanted_bytes:
            # The rest would be the response to the client's next request.
            self.cut()
            raise BodyTooLong
        self.sent_bytes += len(data)
        if self.is_chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        self._connection.write(data)
        await self._connection.drain()

    def cut(self) -> None:
        """Break the connection: what was sent must not be taken for an answer."""
        self.has_failed = True
        self._connection.cut()

    def _is_bodyless(self, status: int) -> bool:
        return status in BODYLESS or self.scope.method == "HEAD"

    def _start(
        self, status: int, headers: HeaderPairs, length: int | None, body: bytes | bytearray = b""
    ) -> None:
        head = self._head(status, headers, length)
        if self.is_gone:
            return
        if len(body) > COPIED_BYTES:
            # The loop gathers them into one call.
            self._connection.write(head)
            self._connection.write(body)
        else:
            self._connection.write(head + body)

    def _head(self, status: int, headers: HeaderPairs, length: int | None) -> bytes:
        """Return the head's bytes, once."""
        if self.is_answered:
            raise RuntimeError("the request is answered already")
        self.is_answered = True
        self.status = int(status)
        if not self.is_complete:
            # The rest of the body will not be read, so the connection cannot be reused.
            self.keeps_alive = False
        if self.added:
            replaced = {name for name, _ in self.added} - {"vary"}
            kept = [pair for pair in headers if pair[0].lower() not in replaced]
            headers = [*kept, *self.added]
        head = response_head(status, headers, length, keeps_alive=self.keeps_alive)
        self.head_bytes = len(head)
        return head


# An application that has answered already returns None; that spares a small answer its task.
App = Callable[[HttpScope, Exchange], Awaitable[None] | None]
