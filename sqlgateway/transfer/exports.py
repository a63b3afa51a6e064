"""Stream results as NDJSON, CSV or Arrow, in constant memory.

PostgreSQL is read only as fast as the client reads. A result that fits into one piece is sent after
the statement has ended, so that an error is an ordinary problem document. An error in a longer
result occurs after the status was sent: NDJSON reports it in the last record, the other formats end
without their last chunk.
"""

import errno
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import psycopg
import structlog
from psycopg.abc import Buffer
from psycopg.pq.abc import PGresult

from common import problems
from common.errors import PlatformError
from common.permissions import Role
from sqlgateway.errors import EngineUnavailable
from sqlgateway.formats import ndjson, row_writer
from sqlgateway.formats.arrow_batches import ArrowWriter
from sqlgateway.formats.csv_lines import CsvWriter
from sqlgateway.formats.encoders import values_of
from sqlgateway.formats.ndjson import NdjsonWriter
from sqlgateway.formats.results import columns_of, split_tag
from sqlgateway.formats.row_writer import RowWriter
from sqlgateway.pg import pool
from sqlgateway.pg.message_stream import ConnectionLost
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import gateway, results
from sqlgateway.run.admission import ADMISSION
from sqlgateway.run.execution import Execution
from sqlgateway.run.history import recorded_request
from sqlgateway.run.outcomes import RequestOutcome
from sqlgateway.run.requests import Caller, SqlRequest, SqlText
from sqlgateway.run.running_requests import REGISTRY, Cancellation, RunningRequest
from sqlgateway.run.usage import METER
from sqlgateway.transfer.minimum_rate import TRANSFER_MONITOR

log = structlog.get_logger(__name__)

StreamFormat = Literal["ndjson", "csv", "arrow"]
MEDIA_TYPES: Final[dict[StreamFormat, str]] = {
    "ndjson": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
# Rows are written in batches: large enough for fast code in C, small enough to use little memory.
BATCH_ROWS: Final = 512
BATCH_BYTES: Final = 256 * 1024
# The size of a write to the client, so that few system calls are needed.
PIECE_BYTES: Final = 64 * 1024
COPY_BEFORE: Final = "COPY ("
# The line break ends a comment at the query's end. There are no quotes here, so a quote that the
# query leaves open is not closed, and the server refuses the text.
COPY_AFTER: Final = "\n) TO STDOUT (FORMAT csv, HEADER true, ENCODING utf8)"
# SQLSTATEs (syntax_error, feature_not_supported) with which PostgreSQL refuses a COPY, before it
# runs, whose query is not a SELECT, VALUES, or a change with RETURNING.
NOT_FOR_COPY: Final = frozenset({"42601", "0A000"})
# A slow client may read for this long after the query's time limit.
TAIL_S: Final = 10.0
CANCEL_S: Final = 2.0


class RowStream:
    """Writes one statement's rows as they arrive.

    takes_copy: the statement is a COPY, whose lines are the body.
    has_lines: the COPY has begun.
    """

    def __init__(self, writer: RowWriter, *, takes_copy: bool = False) -> None:
        self._writer = writer
        self._values: list[list[bytes | None]] = []
        self._pending_rows = self._pending_bytes = 0
        self._parts: list[bytes] = []
        self._part_bytes = 0
        self._has_started = False
        self._given_rows = 0
        self.takes_copy = takes_copy
        self.has_lines = False
        self.command = ""
        self.row_count = 0
        self.size_bytes = 0

    @property
    def is_full(self) -> bool:
        """False: a stream has no cap on rows."""
        return False

    def start(self, result: PGresult, connection: TenantConnection) -> None:
        """Write the columns; the tenant's own types are looked up on another connection.

        Raises ResultNotText.
        """
        columns = columns_of(result)
        unknown = row_writer.unknown_oids(columns, connection.column_types)
        if unknown:
            results.look_up_types_beside(connection, unknown)
        self._values = [[] for _ in columns]
        self._write(
            self._writer.start(
                columns, row_writer.column_types_of(columns, connection.column_types)
            )
        )
        self._has_started = True

    def add(self, result: PGresult, connection: TenantConnection) -> None:
        """Add a chunk's rows to the batch, and write the batch if it is large enough.

        Raises ResultNotText, ResultTooWide.
        """
        for kept, values in zip(self._values, values_of(result), strict=True):
            kept.extend(values)
        self._pending_rows += result.ntuples
        self._pending_bytes += connection.last_bytes
        if self._pending_rows >= BATCH_ROWS or self._pending_bytes >= BATCH_BYTES:
            self._write_rows()

    def add_lines(self, lines: Sequence[Buffer]) -> None:
        """Pass on lines of a COPY, unchanged."""
        self.has_lines = True
        self._write(b"".join(lines))

    def end(self, command_tag: str) -> None:
        """Write the rest of the rows."""
        if not (self._has_started or self.has_lines):
            self._write(self._writer.start([], {}))
        self._write_rows()
        self.command, count = split_tag(command_tag)
        self.row_count = self._given_rows if count is None else count

    def complete(self, connection: TenantConnection) -> None:
        """Write the end of the body: the transaction is committed."""
        self._write(self._writer.end())

    def _write_rows(self) -> None:
        count, self._pending_rows, self._pending_bytes = self._pending_rows, 0, 0
        if not count:
            return
        self._given_rows += count
        self._write(self._writer.rows(self._values, count))
        self._values = [[] for _ in self._values]

    def _write(self, part: bytes) -> None:
        self._parts.append(part)
        self._part_bytes += len(part)
        self.size_bytes += len(part)

    def take(self, *, at_least_bytes: int = PIECE_BYTES) -> bytes:
        """Return the bytes written since the last call; nothing if there are fewer than this."""
        if self._part_bytes < at_least_bytes:
            return b""
        piece = b"".join(self._parts)
        self._parts, self._part_bytes = [], 0
        return piece


class StreamCut(ConnectionResetError):
    """The body ends here without its last chunk; the web server closes the connection."""

    def __init__(self) -> None:
        super().__init__(errno.ECONNRESET, "the result failed after its beginning was sent")


@dataclass(frozen=True, slots=True)
class Export:
    """One request for a stream."""

    caller: Caller
    request: SqlRequest
    format: StreamFormat
    request_id: str

    def open(self, environ: dict[str, Any]) -> "Body":
        """Run the statement up to its first piece and return the body.

        environ: the WSGI environment.
        Raises the errors of sqlgateway.errors, and NotFound for a deleted environment.
        """
        pieces = self._pieces(environ)
        return Body(next(pieces, b""), pieces)

    def _pieces(self, environ: dict[str, Any]) -> Generator[bytes]:
        started = time.monotonic()
        deadline = started + self.request.timeout_ms / 1000 + TAIL_S
        has_begun = False
        with TRANSFER_MONITOR.download(environ, deadline=deadline) as transfer:
            try:
                with closing(self._run()) as run:
                    for piece in run:
                        has_begun = True
                        METER.add(self.caller.scope, bytes_out=len(piece))
                        with transfer.time_limit(len(piece)):
                            yield piece
            except PlatformError as error:
                if not has_begun:
                    raise
                log.info("sql_stream_failed", error=error.code, request_id=self.request_id)
                if self.format != "ndjson":
                    raise StreamCut from None
                problem = problems.document(error, self.request_id)
                with transfer.time_limit(0):
                    yield ndjson.record({"error": problem})

    def _run(self) -> Generator[bytes]:
        """Yield pieces while the statement runs, and the last piece after its commit."""
        started = time.monotonic()
        running = RunningRequest(self.caller, self.request_id, self.request)
        with (
            ADMISSION.slot(self.caller.scope),
            REGISTRY.track(running),
            recorded_request(self.caller, self.request, request_id=self.request_id) as record,
        ):
            stream, outcome = yield from self._executed(running.cancellation)
            if outcome.error is not None:
                raise outcome.error
            record.row_count, record.size_bytes = stream.row_count, stream.size_bytes
        last = stream.take(at_least_bytes=0)
        if self.format == "ndjson":
            last += ndjson.record({"end": self._end(stream, outcome, time.monotonic() - started)})
        yield last

    def _end(self, stream: RowStream, outcome: RequestOutcome, elapsed_s: float) -> dict[str, Any]:
        return {
            "row_count": stream.row_count,
            "command": stream.command,
            "notices": outcome.notices,
            "stats": {"elapsed_ms": round(elapsed_s * 1000, 1), "bytes": stream.size_bytes},
            "request_id": self.request_id,
        }

    def _executed(
        self, cancellation: Cancellation
    ) -> Generator[bytes, None, tuple[RowStream, RequestOutcome]]:
        role: Role = "reader" if self.request.read_only else self.caller.role
        connection = gateway.connect(self.caller.scope, role)
        outcome: RequestOutcome | None = None
        try:
            _extend_limits(connection, self.request)
            as_copy = self._as_copy()
            if as_copy is not None:
                stream = RowStream(CsvWriter(), takes_copy=True)
                outcome = yield from _steps(connection, as_copy, stream, cancellation)
                if stream.has_lines or not _is_not_for_copy(outcome):
                    return stream, outcome
            stream = RowStream(self._writer())
            outcome = yield from _steps(connection, self._as_rows(), stream, cancellation)
            return stream, outcome
        finally:
            _finish(connection, outcome)

    def _writer(self) -> RowWriter:
        if self.format == "csv":
            return CsvWriter()
        if self.format == "arrow":
            return ArrowWriter()
        (sql_text,) = self.request.texts
        return NdjsonWriter(sql_text.form)

    def _as_rows(self) -> SqlRequest:
        """Return the request for the extended protocol, which refuses a second statement."""
        (sql_text,) = self.request.texts
        return replace(self.request, texts=(replace(sql_text, params=sql_text.params or []),))

    def _as_copy(self) -> SqlRequest | None:
        """Return the request as COPY, which is twice as fast; None if that is not possible.

        COPY does not accept parameters. A text cannot leave the parentheses: after a parenthesis
        that closes the query, the rest is not a valid end of a COPY, or is a second statement. The
        server refuses both.
        """
        (sql_text,) = self.request.texts
        if self.format != "csv" or sql_text.params or sql_text.offset or self.request.isolation:
            return None
        # A semicolon at the end is not part of the query.
        text = COPY_BEFORE + sql_text.text.rstrip(" \t\r\n\f;") + COPY_AFTER
        copy = SqlText(text, params=[], offset=len(COPY_BEFORE))
        return replace(self.request, texts=(copy,))


class Body:
    """A streamed body, whose first piece is ready; ``close`` cancels a running statement."""

    def __init__(self, first: bytes, rest: Generator[bytes]) -> None:
        self._first = first
        self._rest = rest

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces."""
        yield self._first
        yield from self._rest

    def close(self) -> None:
        """Cancel the statement if it still runs, and return its connection and slot."""
        self._rest.close()


def _steps(
    connection: TenantConnection,
    request: SqlRequest,
    stream: RowStream,
    cancellation: Cancellation,
) -> Generator[bytes, None, RequestOutcome]:
    execution = Execution(connection, request, stream, cancellation=cancellation)
    with closing(execution.steps()) as steps:
        for _ in steps:
            if piece := stream.take():
                yield piece
    return execution.outcome


def _extend_limits(connection: TenantConnection, request: SqlRequest) -> None:
    try:
        connection.extend_limits(request.timeout_ms)
    except ConnectionLost:
        raise EngineUnavailable from None


def _is_not_for_copy(outcome: RequestOutcome) -> bool:
    error = outcome.error
    return error is not None and error.extra.get("sqlstate") in NOT_FOR_COPY


def _finish(connection: TenantConnection, outcome: RequestOutcome | None) -> None:
    if outcome is not None:
        gateway.finish(connection, outcome)
        return
    # The client disconnected, or has read for too long.
    with suppress(psycopg.Error):
        connection.psycopg_connection.cancel_safe(timeout=CANCEL_S)
    pool.CONNECTION_POOL.discard(connection)
