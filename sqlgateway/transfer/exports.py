"""Results as streams: NDJSON, CSV and Arrow, in constant memory.

PostgreSQL is read only as fast as the client reads. A result that fits into one piece is sent as a
whole, so that its error is an ordinary problem document. Of a longer one an error comes after the
status: NDJSON tells it in its last record, the other forms end without their last chunk.
"""

import errno
import time
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import psycopg
import structlog

from platform_site.lib import problems
from platform_site.lib.errors import PlatformError
from platform_site.lib.permissions import Role
from sqlgateway.connection import cache
from sqlgateway.connection.message_stream import ConnectionLost
from sqlgateway.connection.tenant_connection import TenantConnection
from sqlgateway.errors import EngineUnavailable
from sqlgateway.execution import gateway
from sqlgateway.execution.admission.slots import ADMISSION
from sqlgateway.execution.execution import Execution
from sqlgateway.execution.manual_cancellation import Cancellation
from sqlgateway.execution.outcomes import RequestOutcome
from sqlgateway.execution.requests import Caller, SqlRequest, SqlText
from sqlgateway.formats import ndjson
from sqlgateway.formats.arrow_batches import ArrowWriter
from sqlgateway.formats.csv_lines import CsvWriter
from sqlgateway.formats.ndjson import NdjsonWriter
from sqlgateway.formats.row_writer import RowWriter
from sqlgateway.records.history import recorded_request
from sqlgateway.records.running_requests import REGISTRY, RunningRequest
from sqlgateway.records.usage import METER
from sqlgateway.transfer.minimum_rate import TRANSFER_MONITOR
from sqlgateway.transfer.row_stream import RowStream

StreamFormat = Literal["ndjson", "csv", "arrow"]

MEDIA_TYPES: Final[dict[StreamFormat, str]] = {
    "ndjson": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
COPY_BEFORE: Final = "COPY ("
# The line break ends a comment of the query's; without quotes here, one that it leaves open stays
# open, and the server refuses the text.
COPY_AFTER: Final = "\n) TO STDOUT (FORMAT csv, HEADER true, ENCODING utf8)"
# What PostgreSQL says before it runs anything of a COPY whose query is none of SELECT, VALUES,
# or a change with RETURNING: syntax_error, feature_not_supported.
NOT_FOR_COPY: Final = frozenset({"42601", "0A000"})
# A slow client may take this much longer than its query.
TAIL_S: Final = 10.0
CANCEL_S: Final = 2.0

log = structlog.get_logger(__name__)


class StreamCut(ConnectionResetError):
    """The body ends here without its last chunk; the web server closes the connection."""

    def __init__(self) -> None:
        super().__init__(errno.ECONNRESET, "the result failed after its beginning was sent")


@dataclass(frozen=True, slots=True)
class Export:
    """One request for a stream: who asks, for what, in which form."""

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
        """Yield pieces while the statement runs, the last one after its commit."""
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
        session = gateway.connect(self.caller.scope, role)
        outcome: RequestOutcome | None = None
        try:
            _extend_limits(session, self.request)
            as_copy = self._as_copy()
            if as_copy is not None:
                stream = RowStream(CsvWriter(), takes_copy=True)
                outcome = yield from _steps(session, as_copy, stream, cancellation)
                if stream.has_lines or not _is_not_for_copy(outcome):
                    return stream, outcome
            stream = RowStream(self._writer())
            outcome = yield from _steps(session, self._as_rows(), stream, cancellation)
            return stream, outcome
        finally:
            _finish(session, outcome)

    def _writer(self) -> RowWriter:
        if self.format == "csv":
            return CsvWriter()
        if self.format == "arrow":
            return ArrowWriter()
        (sql_text,) = self.request.texts
        return NdjsonWriter(rows_as=sql_text.form.rows_as, numeric=sql_text.form.numeric)

    def _as_rows(self) -> SqlRequest:
        """Return the request for the extended protocol, which refuses a second statement."""
        (sql_text,) = self.request.texts
        return replace(self.request, texts=(replace(sql_text, params=sql_text.params or []),))

    def _as_copy(self) -> SqlRequest | None:
        """Return the request as COPY, which is twice as fast; None if it has no such form.

        A text that closes the parenthesis to end the COPY itself leaves one that no COPY can have,
        or a second statement: the server parses neither. COPY takes no parameters.
        """
        (sql_text,) = self.request.texts
        if self.format != "csv" or sql_text.params or sql_text.offset or self.request.isolation:
            return None
        # A terminator at the very end (or in a comment there) is no part of the query.
        text = COPY_BEFORE + sql_text.text.rstrip(" \t\r\n\f;") + COPY_AFTER
        copy = SqlText(text, params=[], offset=len(COPY_BEFORE))
        return replace(self.request, texts=(copy,))


class Body:
    """A streamed body whose beginning is there; ``close`` cancels what still runs."""

    def __init__(self, first: bytes, rest: Generator[bytes]) -> None:
        self._first = first
        self._rest = rest

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces."""
        yield self._first
        yield from self._rest

    def close(self) -> None:
        """End the statement if it still runs, and give back its connection and its slot."""
        self._rest.close()


def _steps(
    session: TenantConnection,
    request: SqlRequest,
    stream: RowStream,
    cancellation: Cancellation,
) -> Generator[bytes, None, RequestOutcome]:
    execution = Execution(session, request, stream, cancellation=cancellation)
    with closing(execution.steps()) as steps:
        for _ in steps:
            if piece := stream.take():
                yield piece
    return execution.outcome


def _extend_limits(session: TenantConnection, request: SqlRequest) -> None:
    try:
        session.extend_limits(request.timeout_ms)
    except ConnectionLost:
        raise EngineUnavailable from None


def _is_not_for_copy(outcome: RequestOutcome) -> bool:
    error = outcome.error
    return error is not None and error.extra.get("sqlstate") in NOT_FOR_COPY


def _finish(session: TenantConnection, outcome: RequestOutcome | None) -> None:
    if outcome is not None:
        gateway.finish(session, outcome)
        return
    # The client went away, or the deadline of its reading passed.
    with suppress(psycopg.Error):
        session.connection.cancel_safe(timeout=CANCEL_S)
    cache.CACHE.discard(session)
