"""Send texts to the server and read its results, by calls of libpq.

psycopg's cursors would buffer a whole result. Here each result is read in pieces, and the bytes
that libpq buffers are counted (wire.py).
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

import psycopg
from django.conf import settings
from psycopg import pq
from psycopg.abc import Buffer
from psycopg.pq.abc import PGconn, PGresult

from sqlgateway.pg.protocol import ends_in_error, longest_row
from sqlgateway.pg.wire import CopyIn, Wire, WireBroken, WireFull

# Rows that libpq returns in one call. It buffers all of them, so there must be few wide rows. Each
# call releases the interpreter lock twice, so there should be many narrow rows. But later rows may
# be wider than the first ones: the rows of a call may take row_bytes together, 64 KiB on average.
NARROW_CHUNK_ROWS: Final = 256
NARROW_BYTES: Final = 512
WIDE_CHUNK_ROWS: Final = 64
WIDE_CHUNK_BYTES: Final = 2**20
# The width of rows is unknown: behind TLS, or after a long description of columns.
BLIND_CHUNK_ROWS: Final = 16
# At most this many bytes are written to a socket in one call.
SMALL_BYTES: Final = 4 * 1024
# Lines of a COPY that are passed on together.
COPY_LINES: Final = 2048
MAX_NOTICES: Final = 100
NOTICE_LIMIT_BYTES: Final = 8192
# The letter and the length of the message, and the NUL after its fields.
NOTICE_HEADER_BYTES: Final = 6
# The message that ends an answer outside of a transaction.
READY_AND_IDLE: Final = b"Z\x00\x00\x00\x05I"


class ConnectionLost(Exception):
    """The connection broke, or the server was silent for too long."""


class ResultOverflow(Exception):
    """A single piece of a result, such as a row, is longer than a request may buffer."""


# The fields of a notice that are shown, and the longest ones last: all share one limit.
NOTICE_FIELDS: Final = (
    pq.DiagnosticField.SEVERITY_NONLOCALIZED,
    pq.DiagnosticField.SQLSTATE,
    pq.DiagnosticField.STATEMENT_POSITION,
    pq.DiagnosticField.SCHEMA_NAME,
    pq.DiagnosticField.TABLE_NAME,
    pq.DiagnosticField.COLUMN_NAME,
    pq.DiagnosticField.CONSTRAINT_NAME,
    pq.DiagnosticField.DATATYPE_NAME,
    pq.DiagnosticField.MESSAGE_PRIMARY,
    pq.DiagnosticField.MESSAGE_HINT,
    pq.DiagnosticField.MESSAGE_DETAIL,
)


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice of the server, as a copy of the bytes of its fields."""

    fields: Mapping[pq.DiagnosticField, bytes]

    @classmethod
    def of(cls, result: PGresult) -> Self:
        """Return a copy of a result that libpq will free."""
        fields: dict[pq.DiagnosticField, bytes] = {}
        left = NOTICE_LIMIT_BYTES
        for name in NOTICE_FIELDS:
            if value := (result.error_field(name) or b"")[:left]:
                fields[name] = value
                left -= len(value)
        return cls(fields)

    def error_field(self, name: pq.DiagnosticField) -> bytes | None:
        """Return a field, as PGresult does."""
        return self.fields.get(name)


class MessageStream:
    """Sends and receives on one connection; collects the notices that come with the results."""

    def __init__(self, pgconn: PGconn, *, opened_at: float) -> None:
        self.pgconn = pgconn
        self.notices: list[Notice] = []
        # Of the running request (time.monotonic()): its deadline, and the time after which a silent
        # server is treated as lost.
        self.deadline = self.give_up_at = opened_at
        # Called with the number of bytes that libpq buffers; may raise to refuse more.
        self.on_held: Callable[[int], None] | None = None
        self.last_bytes = 0
        self._max_bytes = 0
        # The answer to the reset between two requests has not been read.
        self._is_resetting = False
        self._is_sent = self._has_arrived = self._is_chunked = False
        # Behind a pooler, which reports the loss of its server connection as an error.
        self.is_pooled = False
        self._wire = Wire(
            pgconn.socket,
            limit_bytes=settings.SQL.row_bytes,
            is_encrypted=bool(pgconn.ssl_in_use),
        )
        pgconn.notice_handler = self._on_notice

    # --- sending ------------------------------------------------------------------------------

    def send_text(self, text: bytes) -> None:
        """Send a text by the simple protocol; the server splits it. Raises ConnectionLost."""
        self._send(lambda: self.pgconn.send_query(text), len(text))

    def send_statement(self, text: bytes, params: Sequence[bytes | None]) -> None:
        """Send one statement by the extended protocol, which refuses a second one.

        Raises ConnectionLost.
        """
        size = len(text) + sum(len(value) for value in params if value is not None)
        self._send(lambda: self.pgconn.send_query_params(text, params), size)

    def send_parse(self, text: bytes) -> None:
        """Make the server parse a text as one statement, without running it.

        Raises ConnectionLost.
        """
        self._send(lambda: self.pgconn.send_prepare(b"", text), len(text), is_chunked=False)

    def send_describe(self) -> None:
        """Ask for the types of the parsed statement's parameters. Raises ConnectionLost."""
        self._send(lambda: self.pgconn.send_describe_prepared(b""), 0, is_chunked=False)

    def _send(self, send: Callable[[], None], size_bytes: int, *, is_chunked: bool = True) -> None:
        self._wire.counted = 0
        self._is_sent, self._is_chunked = True, is_chunked
        if size_bytes > SMALL_BYTES:
            # While libpq cannot write, it reads, which must be counted.
            self._wire.pipe()
        try:
            send()
            if self._wire.is_piped:
                self._flush()
        except psycopg.Error as exc:
            raise ConnectionLost from exc

    def _flush(self) -> None:
        try:
            while self.pgconn.flush():
                self._wire.pass_out()
            self._wire.pass_out()
        except WireBroken as exc:
            raise ConnectionLost from exc

    # --- the client ---------------------------------------------------------------------------

    def watch_client(self, fd: int, on_gone: Callable[[], None]) -> None:
        """Call ``on_gone`` once if the client disconnects while this waits for the server."""
        self._wire.watch_client(fd, on_gone)

    def forget_client(self) -> None:
        """Stop watching the client."""
        self._wire.forget_client()

    # --- receiving ----------------------------------------------------------------------------

    def next_result(self) -> PGresult | None:
        """Return the next piece of the answer; None at its end.

        Raises ConnectionLost, ResultOverflow.
        """
        if self._is_sent:
            self._wait_for_answer()
        if not self._has_arrived:
            self._read_result()
        self.last_bytes, self._wire.counted = self._wire.counted, 0
        self._max_bytes = max(self._max_bytes, self.last_bytes)
        result = self.pgconn.get_result()
        if self.is_pooled and result is not None and _reports_loss(result):
            raise ConnectionLost
        return result

    def _wait_for_answer(self) -> None:
        """Wait for the beginning of an answer; return quickly if it is short and complete.

        Each of libpq's calls releases the interpreter lock, which costs more than a short answer.
        """
        self._is_sent = False
        try:
            self._has_arrived = self._wire.is_short_answer(
                self.give_up_at, is_due=self._is_resetting
            )
            if self._is_chunked and not self._has_arrived:
                self.pgconn.set_chunked_rows_mode(_chunk_rows(self._wire.beginning))
        except (WireBroken, psycopg.Error) as exc:
            raise ConnectionLost from exc

    def _read_result(self) -> None:
        """Read until libpq has the next piece."""
        try:
            while self.pgconn.is_busy():
                self._read()
                self._drop_notifications()
        except psycopg.Error as exc:
            raise ConnectionLost from exc

    def _drop_notifications(self) -> None:
        """Discard notifications that libpq collected; a short answer has none."""
        while self.pgconn.notifies() is not None:
            self._wire.counted = 0

    def _read(self) -> None:
        try:
            self._wire.pass_in(self.give_up_at)
        except WireBroken as exc:
            raise ConnectionLost from exc
        except WireFull as exc:
            raise ResultOverflow from exc
        if self.on_held is not None:
            self.on_held(self._wire.counted)
        self.pgconn.consume_input()

    def end_copy(self) -> bool:
        """Refuse a COPY, or read it to its end, and read the rest of the answer.

        Returns True if a statement failed.

        Raises ConnectionLost, ResultOverflow.
        """
        try:
            self.pgconn.put_copy_end(b"not supported")
            self._flush()
        except psycopg.Error:
            # The COPY does not wait for data: it sends them.
            deque(self.copy_lines(), maxlen=0)
        return self.skip_answer()

    def skip_answer(self) -> bool:
        """Read an answer to its end, including every COPY; True if a statement failed.

        Raises ConnectionLost, ResultOverflow.
        """
        has_failed = False
        while (result := self.next_result()) is not None:
            if result.status == pq.ExecStatus.COPY_IN:
                return self.end_copy() or has_failed
            if result.status == pq.ExecStatus.COPY_OUT:
                # libpq returns this result until the lines have been read.
                deque(self.copy_lines(), maxlen=0)
            has_failed = has_failed or result.status == pq.ExecStatus.FATAL_ERROR
        return has_failed

    def copy_in(self) -> CopyIn:
        """Return the sending side of a COPY FROM STDIN that the server has begun."""
        return CopyIn(self.pgconn, self._wire, give_up_at=self.give_up_at)

    def outcome_of_terminated(self) -> Literal["committed", "rolled_back", "unknown"]:
        """Return how a text ended, after its backend was terminated before the end was read."""
        if self.pgconn.ssl_in_use:
            return "unknown"
        tail = self._wire.tail()
        # The piece that is too long may be an error, which the server sends completely.
        is_kept = READY_AND_IDLE in tail and not ends_in_error(tail)
        return "committed" if is_kept else "rolled_back"

    def copy_lines(self) -> Iterator[list[Buffer]]:
        """Yield lists of lines of a COPY TO STDOUT: those that have arrived, at most COPY_LINES.

        Raises ConnectionLost, ResultOverflow.
        """
        lines: list[Buffer] = []
        get = self.pgconn.get_copy_data
        try:
            while (taken := get(1))[0] >= 0:
                length, line = taken
                if length:
                    lines.append(line)
                    self._wire.counted = 0
                if lines and (not length or len(lines) == COPY_LINES):
                    yield lines
                    lines = []
                elif not length:
                    self._read()
        except psycopg.Error as exc:
            raise ConnectionLost from exc
        if lines:
            yield lines

    def run(self, text: bytes) -> PGresult:
        """Run statements of the gateway and return the last result. Raises ConnectionLost."""
        self.send_text(text)
        return self.last_result()

    def last_result(self) -> PGresult:
        """Read an answer to its end and return its last result.

        Raises ConnectionLost, ResultOverflow.
        """
        last: PGresult | None = None
        try:
            while (result := self.next_result()) is not None:
                last = result
        except ConnectionLost:
            # The server's last message explains the loss of the connection.
            if last is None:
                raise
        if last is None:
            raise ConnectionLost
        return last

    def _on_notice(self, result: PGresult) -> None:
        # The result is valid during this call only. Rows that libpq has collected remain counted.
        self._wire.counted = max(0, self._wire.counted - _length(result))
        if len(self.notices) < MAX_NOTICES:
            self.notices.append(Notice.of(result))


def _length(notice: PGresult) -> int:
    """Return the length of a notice's message: its fields, each with a letter and a NUL."""
    fields = map(notice.error_field, pq.DiagnosticField)
    return NOTICE_HEADER_BYTES + sum(len(field) + 2 for field in fields if field is not None)


def _reports_loss(result: PGresult) -> bool:
    """True if an error says that the pooler or the server lost its connection (class 08)."""
    if result.status != pq.ExecStatus.FATAL_ERROR:
        return False
    names = pq.DiagnosticField
    severity = result.error_field(names.SEVERITY_NONLOCALIZED) or result.error_field(names.SEVERITY)
    state = result.error_field(names.SQLSTATE) or b""
    return severity == b"FATAL" and state.startswith(b"08")


def _chunk_rows(beginning: bytes) -> int:
    """Return how many rows to read in one call, from the width of an answer's first rows."""
    longest = longest_row(beginning)
    if longest is None:
        return BLIND_CHUNK_ROWS
    if longest <= NARROW_BYTES:
        return NARROW_CHUNK_ROWS
    return max(1, min(WIDE_CHUNK_ROWS, WIDE_CHUNK_BYTES // longest))
