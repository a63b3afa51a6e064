"""One client's connection: bytes in, exchanges out, within limits of time and memory."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from functools import partial
from typing import Final, cast

import httptools

from edgecache.http.addresses import network_of
from edgecache.http.exchange import BODY_HIGH_BYTES, ClientGone, Exchange
from edgecache.http.response_head import response_head
from edgecache.http.server.contract import ServerContract
from edgecache.http.server.limits import NEVER
from edgecache.http.server.request_bounds import HEADER_LIMIT, BodyBounds, HeadRefused, RequestHead
from edgecache.http.server.response_writer import ResponseWriter
from edgecache.runtime.turns import Leave

log = logging.getLogger(__name__)

# Their handlers are cancelled when the client disconnects; a write may still be useful.
READS: Final = frozenset(("GET", "HEAD"))


class ClientConnection(ResponseWriter):
    """A client. is_made: whether there is, or was, a connection."""

    def __init__(
        self,
        server: ServerContract,
        loop: asyncio.AbstractEventLoop,
        *,
        address: tuple[str, int],
        scheme: str = "http",
    ) -> None:
        """address: the client's IP address and port."""
        super().__init__(loop, server.limits, scheme=scheme)
        # Until when the current step must be over, and the whole connection.
        self._deadline = 0.0
        self._end_by = NEVER
        self._is_idle = False
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        # From accept(2): a client that has reset its connection has no address any more.
        host, port = address
        self._client = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.network = network_of(host)
        self.is_made = False
        self._request_head = RequestHead(self._limits.head_bytes)
        self._head_bytes = 0
        self._body_bounds = BodyBounds(server.limits)
        self._is_in_head = True
        self._is_in_message = False
        self._incoming: Exchange | None = None
        self._waiting: deque[Exchange] = deque()
        self._running: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._leave_queue: Leave | None = None
        self._is_held = False
        self._is_reading = True
        self._lingers, self._lingered_bytes = False, 0

    @property
    def deadline(self) -> float:
        """Return when the server's sweep must close this connection, by the loop's time."""
        return min(self._deadline, self._take_by, self._end_by)

    @property
    def is_idle(self) -> bool:
        """True if closing the connection loses nothing."""
        return self._is_idle and not self._transport.get_write_buffer_size()

    # --- asyncio's side -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a head."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._limits.write_high_bytes)
        self._deadline = self._loop.time() + self._limits.head_timeout_s
        self.is_made = True
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the work that was for this client."""
        if not self.is_made:
            # A TLS handshake failed.
            return
        self._is_closing, self._is_held = True, False
        self._server.closed(self)
        self.resume_writing()
        running = self._running
        for exchange in (running, self._incoming, *self._waiting):
            if exchange is not None and not exchange.is_gone:
                exchange.lose()
        if self._leave_queue is not None:
            self._leave_queue()
        self._waiting.clear()
        if self._task is not None and running is not None and running.scope.method in READS:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._lingers or self._is_closing:
            self._linger(len(data))
            return
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes + len(data):
                self._refuse(431)
                return
        try:
            self._body_bounds.receive(0 if self._is_in_head else len(data))
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Upgrades are not offered: the request is answered normally, and the connection ends.
            self._stop_parsing()
        except (httptools.HttpParserError, HeadRefused) as exc:
            cause = exc.__context__ if isinstance(exc, httptools.HttpParserCallbackError) else exc
            self._refuse(cause.status if isinstance(cause, HeadRefused) else 400)

    def eof_received(self) -> bool:
        """Close: a half-closed connection counts as disconnected."""
        return False

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._transport.is_closing():
            # Nothing is sent any more. This is called once, and the remaining bytes must be taken,
            # too.
            self._end_by = self._loop.time() + self._limits.take_timeout_s
        elif self._is_held:
            self._is_held = False
            self._go_on()

    # --- the parser's side --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._request_head = RequestHead(self._limits.head_bytes)
        self._is_in_head, self._head_bytes = True, 0
        self._is_in_message, self._is_idle = True, False
        if self._running is None:
            self._deadline = self._loop.time() + self._limits.head_timeout_s

    def on_url(self, piece: bytes) -> None:
        """Take a piece of the request target."""
        self._request_head.pieces.append(piece)

    def on_header(self, name: bytes, value: bytes) -> None:
        fields = self._request_head.fields
        if len(fields) >= HEADER_LIMIT:
            raise HeadRefused(431)
        fields.append((name, value))

    def on_headers_complete(self) -> None:
        if self._lingers or self._is_closing:
            # The last response has said that the connection ends.
            raise HeadRefused(400)
        self._is_in_head = False
        method, version = self._parser.get_method(), self._parser.get_http_version()
        scope = self._request_head.scope(method, version, self._client)
        if self._scheme != "http":
            scope = scope._replace(scheme=self._scheme)
        if len(self._waiting) >= self._limits.pipelined:
            raise HeadRefused(429)
        # Data after a request for another protocol is not parsed; no other protocol is offered.
        is_last = self._parser.should_upgrade() or self._server.is_stopping
        keeps_alive = self._parser.should_keep_alive() and not is_last
        exchange = Exchange(scope, self, keeps_alive=keeps_alive)
        if scope.has_body:
            self._deadline = self._body_bounds.begin(self._loop.time())
            if exchange.owes_continue:
                self._deadline = NEVER
        else:
            # Known before the parser reports it: an answer that is given now keeps the connection.
            exchange.end()
        self._incoming = exchange
        if self._is_free:
            self._run(exchange)
        else:
            self._waiting.append(exchange)

    def on_body(self, piece: bytes) -> None:
        """Hand a piece of the body on."""
        exchange = self._incoming
        if exchange is None:
            return
        self._body_bounds.add_piece(len(piece))
        exchange.feed(piece)
        if exchange.unread_bytes > BODY_HIGH_BYTES:
            self._pause_reading()
        else:
            self._extend_body_deadline(exchange)

    def on_message_complete(self) -> None:
        """Note the end of a request."""
        self._is_in_message = False
        exchange, self._incoming = self._incoming, None
        if exchange is None:
            return
        exchange.end()
        self._is_in_head, self._head_bytes = True, 0
        self._body_bounds.end()
        if self._is_free:
            self._wait_for_request()
        else:
            self._deadline = NEVER
        if self._waiting:
            self._pause_reading()

    # --- the exchange's side ------------------------------------------------------------------

    def ask_for_body(self) -> None:
        """Send 100 Continue to a client that waits for it, and continue to read."""
        running = self._running
        if running is not None and running.owes_continue:
            running.owes_continue = False
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._deadline = self._body_bounds.begin(self._loop.time())
        self._resume_reading()

    def pace_reading(self) -> None:
        """Read on when what was read has been used."""
        exchange = self._incoming
        if exchange is not None and exchange.unread_bytes <= BODY_HIGH_BYTES // 2:
            self._resume_reading()

    def expire(self) -> None:
        """Act on the deadline: answer a request whose body is late, close any other connection."""
        running = self._running
        if running is not None and running is self._incoming and not running.is_answered:
            self._deadline = self._loop.time() + self._limits.linger_s
            running.expire()
        elif self._deadline < self._loop.time() and self._can_be_refused:
            self._refuse(408)
        else:
            self.cut()

    def close(self) -> None:
        """Close when idle, or after the current response."""
        if self._running is None:
            self._shut()
        else:
            self._running.keeps_alive = False

    # --- inside -------------------------------------------------------------------------------

    @property
    def _is_free(self) -> bool:
        """True if the next request can begin: none runs, and its responses are taken."""
        return self._running is None and not self._is_held

    @property
    def _can_be_refused(self) -> bool:
        """True if the client is sending a head, so that it can be answered 408."""
        return self._running is None and self._is_in_message and not self._lingers

    def _run(self, exchange: Exchange) -> None:
        """Run a request's handler, in its turn."""
        self._running = exchange
        self._leave_queue = self._server.take_turn(exchange.scope, partial(self._begin, exchange))

    def _begin(self, exchange: Exchange) -> None:
        self._leave_queue = None
        if exchange.is_gone or self._is_closing:
            # It was refused, or its client cut off, while it waited.
            self._finish(exchange)
            return
        try:
            work = self._server.app(exchange.scope, exchange)
        except Exception as error:  # noqa: BLE001 - logged; the client gets a 500
            self._fail(exchange, error)
            work = None
        if work is None:
            self._finish(exchange)
        else:
            self._task = self._loop.create_task(self._answer(exchange, work))

    async def _answer(self, exchange: Exchange, work: Awaitable[None]) -> None:
        try:
            await work
        except ClientGone:
            return
        except asyncio.CancelledError:
            if not exchange.is_gone:
                self.cut()
            raise
        except Exception as error:  # noqa: BLE001 - logged; the client gets a 500
            self._fail(exchange, error)
        finally:
            self._finish(exchange)

    def _fail(self, exchange: Exchange, error: Exception) -> None:
        log.error("request_failed", extra={"method": exchange.scope.method}, exc_info=error)
        if exchange.is_answered:
            exchange.has_failed = True
        else:
            exchange.response_empty(500, [])

    def _finish(self, exchange: Exchange) -> None:
        self._running = self._task = None
        if self._is_closing:
            return
        if exchange.is_gone:
            self.cut()
            return
        if not exchange.is_answered:
            exchange.response_empty(500, [])
        if exchange.has_failed or exchange.sent_bytes < exchange.wanted_bytes:
            self.cut()
            return
        if exchange.is_chunked:
            self.write(b"0\r\n\r\n")
        if exchange.keeps_alive:
            self._go_on()
        else:
            self._end(exchange)

    def _go_on(self) -> None:
        if self._is_paused:
            # A client that sends requests and reads no responses would fill the memory.
            self._is_held = True
            self._pause_reading()
            return
        if self._waiting:
            following = self._waiting.popleft()
            self._run(following)
            if not self._waiting:
                self._resume_reading()
            return
        self._resume_reading()
        self._wait_for_request()

    def _wait_for_request(self) -> None:
        self._is_idle = not self._is_in_message
        wait_s = self._limits.head_timeout_s if self._is_in_message else self._limits.idle_timeout_s
        self._deadline = self._loop.time() + wait_s

    def _end(self, exchange: Exchange) -> None:
        self._waiting.clear()
        if exchange.is_complete:
            self._shut()
            return
        self._begin_to_linger()

    def _shut(self) -> None:
        """Take nothing more; what was sent has its time to be taken."""
        self._is_closing, self._is_held, self._is_idle = True, False, False
        self._waiting.clear()
        self._end_by = self._loop.time() + self._limits.take_timeout_s
        self._transport.close()

    def _begin_to_linger(self) -> None:
        # Closing with unread bytes sends a reset, which could destroy the response.
        self._resume_reading()
        self._lingers = True
        self._end_by = self._loop.time() + self._limits.linger_s
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _linger(self, count: int) -> None:
        self._lingered_bytes += count
        if self._lingered_bytes > self._limits.linger_bytes:
            self.cut()

    def _refuse(self, status: int) -> None:
        """Respond to a malformed request with an empty error and close the connection."""
        if self._lingers or self._is_closing:
            return
        if self._running is None:
            self.write(response_head(status, [], 0, keeps_alive=False))
        self._stop_parsing()
        if self._running is None:
            self._begin_to_linger()

    def _stop_parsing(self) -> None:
        self._waiting.clear()
        self._pause_reading()
        if self._running is not None:
            self._running.keeps_alive = False
            if not self._running.is_complete:
                self._running.lose()

    def _extend_body_deadline(self, exchange: Exchange) -> None:
        self._deadline = self._body_bounds.deadline(self._loop.time(), exchange.body_bytes)

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()
            self._deadline = NEVER

    def _resume_reading(self) -> None:
        if not self._is_reading and not self._is_closing:
            self._is_reading = True
            self._transport.resume_reading()
            if self._incoming is not None:
                self._extend_body_deadline(self._incoming)
