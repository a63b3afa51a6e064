"""Import a CSV body into a table by COPY FROM STDIN: all rows or none.

The server gets only names of tables and columns that were parsed from the caller's text, and quoted
again, so that a name cannot end the statement that contains it.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, Literal

from psycopg import pq
from psycopg.pq.abc import PGresult

from common.errors import InvalidRequest, PlatformError
from sqlgateway.errors import EngineUnavailable, OutcomeUnknown, QueryCancelled, QueryTimeout
from sqlgateway.formats.results import split_tag
from sqlgateway.pg import pool
from sqlgateway.pg.message_stream import ConnectionLost, ResultOverflow
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.pg.watchdog import ENDED_SQLSTATES, WATCHDOG, give_up_at
from sqlgateway.pg.wire import CopyBroken, CopyIn
from sqlgateway.run import gateway, sqlstates
from sqlgateway.run.admission import ADMISSION
from sqlgateway.run.history import recorded_request
from sqlgateway.run.outcomes import StatementFailed, refusal
from sqlgateway.run.requests import Caller, SqlRequest, SqlText
from sqlgateway.run.running_requests import REGISTRY, Cancellation, RunningRequest
from sqlgateway.run.sqlstates import ErrorPosition
from sqlgateway.transfer import csv_columns, import_target
from sqlgateway.transfer.csv_columns import BYTE_ORDER_MARK
from sqlgateway.transfer.import_target import TargetColumn, TargetFailed
from sqlgateway.transfer.minimum_rate import TRANSFER_MONITOR, Transfer
from sqlgateway.transfer.uploads import UploadedBody

Header = Literal["match", "true", "false"]
# NAMEDATALEN - 1: PostgreSQL would truncate a longer name, which may be another table's.
MAX_NAME_BYTES: Final = 63
# An identifier with its quotes, or a bare one, as PostgreSQL's lexer reads them (scan.l).
IDENTIFIER: Final = re.compile(
    r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<bare>[A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*))\s*'
)
TO_LOWER: Final = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
# Servers before this version end a CSV at a line \. and silently ignore the rest.
READS_CSV_TO_ITS_END: Final = 180_000
END_MARKER: Final = re.compile(rb"[\r\n]\\\.[\r\n]")
END_MARKER_REFUSED: Final = (
    "This version of PostgreSQL takes a line that holds only \\. for the end of the body."
)
UNDEFINED_COLUMN: Final = "42703"
HEADER_HINT: Final = (
    "The first line has to name columns of the table, in any order. `skip` names those of the body "
    "that the table does not have; with `header=true` the first line is not read."
)
# The position in the body, in the context of an error (PostgreSQL's CopyFromErrorCallback).
ERROR_POSITION: Final = re.compile(
    r"^COPY .*?, line (?P<line>\d{1,18})\b(?:, column (?P<column>.{1,63}?)(?::|$))?", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The target of an import, and the format of its body.

    table: one or two names.
    columns: of the body; empty for those that its first line names, or for all of the table's.
    skip: columns of the body that are not imported.
    header: ``match`` finds the columns by the first line, ``true`` skips it, ``false`` reads it as
    a row.
    """

    table: tuple[str, ...]
    columns: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    header: Header = "match"
    delimiter: str = ","

    @property
    def quoted_table(self) -> str:
        """The table's name in quotes."""
        return _quoted(self.table, separator=".")

    def statement(self, columns: Sequence[str]) -> bytes:
        """Return the COPY statement. columns: empty for all of the table's."""
        names = _quoted(columns, separator=", ")
        target = f"{self.quoted_table} ({names})" if names else self.quoted_table
        header = "false" if self.header == "false" else "true"
        options = f"FORMAT csv, HEADER {header}, DELIMITER '{self.delimiter}', ENCODING 'UTF8'"
        return f"COPY {target} FROM STDIN ({options})".encode()


@dataclass(frozen=True, slots=True)
class RowImportResult:
    """The result of an import."""

    row_count: int
    size_bytes: int
    elapsed_ms: float
    notices: list[dict[str, Any]]


def run(
    caller: Caller,
    request: ImportRequest,
    upload: UploadedBody,
    *,
    timeout_ms: int,
    environ: dict[str, Any],
    request_id: str,
) -> RowImportResult:
    """Import a body and commit; after an error no row is kept.

    timeout_ms: the time limit, including the upload. environ: the WSGI environment. The history
    shows the COPY statement.
    Raises the errors of sqlgateway.errors, PayloadTooLarge, and NotFound for a deleted environment.
    """
    started = time.monotonic()
    deadline = started + timeout_ms / 1000
    text = request.statement(request.columns).decode()
    shown = SqlRequest((SqlText(text),), timeout_ms=timeout_ms)
    running = RunningRequest(caller, request_id, shown)
    with (
        ADMISSION.slot(caller.scope),
        REGISTRY.track(running),
        recorded_request(caller, shown, request_id=request_id) as record,
    ):
        connection = gateway.connect(caller.scope, caller.role)
        try:
            with TRANSFER_MONITOR.upload(environ, deadline=deadline) as transfer:
                copy = Import(connection, request, deadline, running.cancellation)
                result = copy.run(upload, transfer, timeout_ms=timeout_ms)
            notices = [sqlstates.notice(notice, connection.login) for notice in connection.notices]
            notices += copy.warnings
        finally:
            # The connection's settings differ from those that other requests need.
            pool.CONNECTION_POOL.discard(connection)
        record.row_count = _row_count(result)
    elapsed_ms = round((time.monotonic() - started) * 1000, 1)
    return RowImportResult(_row_count(result), upload.size_bytes, elapsed_ms, notices)


class Import:
    """One import on one connection.

    deadline: a time.monotonic().
    cancellation: cancels the import from another thread.
    """

    def __init__(
        self,
        connection: TenantConnection,
        request: ImportRequest,
        deadline: float,
        cancellation: Cancellation,
    ) -> None:
        self._connection = connection
        self._request = request
        self._deadline = deadline
        self._cancellation = cancellation
        self._may_be_committed = False
        self.warnings: list[dict[str, Any]] = []

    def run(self, upload: UploadedBody, transfer: Transfer, *, timeout_ms: int) -> PGresult:
        """Return the result of the COPY, committed.

        timeout_ms: what the deadline was made from. Raises the errors of sqlgateway.errors.
        """
        connection = self._connection
        connection.give_up_at = give_up_at(self._deadline)
        watch = WATCHDOG.watch(connection, self._deadline)
        self._cancellation.attach(partial(WATCHDOG.cancel, watch))
        error: PlatformError | None = None
        try:
            connection.extend_limits(timeout_ms)
            result = self._transaction(upload, transfer)
            error = self._refusal(result)
        except TargetFailed as exc:
            error = self._refusal(exc.result)
        except (CopyBroken, ConnectionLost, ResultOverflow):
            error = self._lost()
        finally:
            was_late = WATCHDOG.finish(watch)
        if was_late and self._cancellation.is_requested and error is not None:
            error = QueryCancelled("Its cancellation was requested.")
        elif was_late and (watch.was_open or _is_late(error)):
            error = QueryTimeout(f"The limit was {timeout_ms / 1000:g} s.")
        if error is not None:
            raise error
        return result

    def _transaction(self, upload: UploadedBody, transfer: Transfer) -> PGresult:
        """Return the result of the COPY or, if something after it failed, the error."""
        connection = self._connection
        connection.run(b"BEGIN")
        known = import_target.columns_of(connection, self._request.quoted_table)
        columns, pieces = self._body(upload.pieces(transfer), known)
        result = self._copy(columns, pieces)
        if result.status != pq.ExecStatus.COMMAND_OK:
            return result
        for name in columns or known:
            self._move_sequence(name, known)
        self._may_be_committed = True
        ended = connection.run(b"COMMIT")
        return result if ended.status == pq.ExecStatus.COMMAND_OK else ended

    def _body(
        self, pieces: Iterator[bytes], known: Mapping[str, TargetColumn]
    ) -> tuple[Sequence[str], Iterator[bytes]]:
        """Return the columns to import, and the body with the values of these columns alone.

        known: the table's columns. Raises InvalidRequest.
        """
        request = self._request
        header = b""
        names: Sequence[str] = request.columns
        if request.header == "match":
            header, pieces = csv_columns.split_header(pieces)
            given = csv_columns.names_in(header, request.delimiter)
            names = _matched(given, {*known, *request.columns, *request.skip})
            _check_names(names, request)
        elif unknown := set(request.skip).difference(names):
            sentence = f"The body has no column {_quoted(sorted(unknown), separator=', ')}."
            raise InvalidRequest.for_field("skip", sentence)
        generated = {name for name, column in known.items() if column.is_generated}
        dropped = {
            place for place, name in enumerate(names) if name in generated.union(request.skip)
        }
        columns = [name for place, name in enumerate(names) if place not in dropped]
        for name in columns:
            _check_length(name, "header" if header else "columns")
        whole = chain([header], pieces)
        if not dropped:
            return columns, whole
        if not columns:
            raise InvalidRequest.for_field("skip", "No column of the body is left to import.")
        kept = csv_columns.without_values(whole, dropped, len(names), delimiter=request.delimiter)
        return columns, kept

    def _copy(self, columns: Sequence[str], pieces: Iterator[bytes]) -> PGresult:
        connection = self._connection
        connection.send_text(self._request.statement(columns))
        first = connection.next_result()
        if first is None:
            raise ConnectionLost
        if first.status != pq.ExecStatus.COPY_IN:
            return first
        copy = connection.copy_in()
        try:
            if connection.pgconn.server_version < READS_CSV_TO_ITS_END:
                pieces = _without_end_marker(pieces)
            _send(copy, pieces)
        except PlatformError:
            # Make the server roll back: no row of an incomplete body may be kept.
            with suppress(CopyBroken, ConnectionLost, ResultOverflow):
                copy.end(error=b"the body was incomplete")
                connection.last_result()
            raise
        copy.end()
        return connection.last_result()

    def _move_sequence(self, name: str, known: Mapping[str, TargetColumn]) -> None:
        """Move the sequence that a column takes its values from beyond the imported ones."""
        column = known.get(name)
        if column is None or column.is_generated or not column.sequence:
            return
        is_moved = import_target.move_sequence(
            self._connection,
            column.sequence,
            table=self._request.quoted_table,
            column=_quoted([name], separator=""),
            name=name,
        )
        if not is_moved:
            self.warnings.append(_not_moved(column.sequence, name))

    def _lost(self) -> PlatformError:
        if self._may_be_committed:
            return OutcomeUnknown(extra={"retryable": False})
        return EngineUnavailable("The connection was lost; nothing was imported.")

    def _refusal(self, result: PGresult) -> PlatformError | None:
        if result.status == pq.ExecStatus.COMMAND_OK:
            return None
        failed = StatementFailed(result, ErrorPosition("", 0))
        error = refusal(self._connection, failed, was_sent=self._may_be_committed)
        error.extra.update(_error_position(result))
        is_header = self._request.header == "match" and not self._request.columns
        # A trigger's error has the line of the row.
        is_header = is_header and "line" not in error.extra
        if is_header and error.extra.get("sqlstate") == UNDEFINED_COLUMN:
            error.extra |= {"line": 1, "hint": HEADER_HINT}
        return error


def parse_names(text: str, *, separator: str, field: str) -> tuple[str, ...]:
    """Return the names in a text such as ``public.Items`` or ``id,"Full name"``.

    Bare names are folded to lower case (A to Z only), as PostgreSQL does. Those of ``skip`` may be
    longer than a column's.
    Raises InvalidRequest with the name of the field.
    """
    names: list[str] = []
    at = 0
    while True:
        found = IDENTIFIER.match(text, at)
        if found is None:
            raise InvalidRequest.for_field(field, f"No name at character {at + 1}.")
        quoted = found["quoted"]
        bare = found["bare"]
        name = bare.translate(TO_LOWER) if quoted is None else quoted.replace('""', '"')
        if field != "skip":
            _check_length(name, field)
        names.append(name)
        at = found.end()
        if at == len(text):
            return tuple(names)
        if text[at] != separator:
            raise InvalidRequest.for_field(field, f"Unexpected character {at + 1}.")
        at += 1


def _check_length(name: str, field: str) -> None:
    if not name:
        raise InvalidRequest.for_field(field, "A name is not empty.")
    if "\0" in name:
        raise InvalidRequest.for_field(field, "A name holds no NUL character.", code="nul")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise InvalidRequest.for_field(field, f"A name has at most {MAX_NAME_BYTES} bytes.")


def _matched(given: Sequence[str], known: set[str]) -> list[str]:
    """Return the names of a first line as the known ones that they are, or unchanged.

    A name that is not known as it is may be in capitals, and have blanks around it.
    """
    folded = [name.strip().translate(TO_LOWER) for name in given]
    return [
        bare if name not in known and bare in known else name
        for name, bare in zip(given, folded, strict=True)
    ]


def _check_names(names: Sequence[str], request: ImportRequest) -> None:
    """Raise InvalidRequest if the first line does not agree with ``columns`` and ``skip``."""
    for field, listed in (("columns", request.columns), ("skip", request.skip)):
        if missing := set(listed).difference(names):
            sentence = f"The first line does not name {_quoted(sorted(missing), separator=', ')}."
            raise InvalidRequest.for_field(field, sentence)
    surplus = set(names).difference(request.columns, request.skip)
    if request.columns and surplus:
        sentence = f"The first line also names {_quoted(sorted(surplus), separator=', ')}."
        raise InvalidRequest.for_field("columns", f"{sentence} Name it here, or in `skip`.")


def _quoted(names: Sequence[str], *, separator: str) -> str:
    """Return the names for an SQL statement, each in quotes."""
    return separator.join('"{}"'.format(name.replace('"', '""')) for name in names)


def _not_moved(sequence: str, column: str) -> dict[str, Any]:
    message = f"sequence {sequence} may be behind column {_quoted([column], separator='')}"
    hint = "An admin moves it with setval(), or grants SELECT and UPDATE on it."
    return {"severity": "WARNING", "sqlstate": "01000", "message": message, "hint": hint}


def _without_end_marker(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces; raise InvalidRequest at a line that older servers treat as the end."""
    before = b"\n"
    for piece in pieces:
        if END_MARKER.search(before + piece):
            raise InvalidRequest(END_MARKER_REFUSED)
        # The marker, with the ends of lines around it, may span two pieces.
        before = (before + piece)[-3:]
        yield piece
    if END_MARKER.search(before + b"\n"):
        raise InvalidRequest(END_MARKER_REFUSED)


def _send(copy: CopyIn, pieces: Iterator[bytes]) -> None:
    is_first = True
    for piece in pieces:
        rows = piece.removeprefix(BYTE_ORDER_MARK) if is_first else piece
        is_first = False
        if not copy.put(rows):
            return


def _is_late(error: PlatformError | None) -> bool:
    return error is not None and error.extra.get("sqlstate") in ENDED_SQLSTATES


def _error_position(result: PGresult) -> Mapping[str, Any]:
    """Return the position of an error in the body: line and column."""
    context = result.error_field(pq.DiagnosticField.CONTEXT) or b""
    found = ERROR_POSITION.search(context.decode("utf-8", "replace"))
    if found is None:
        return {}
    column = found["column"]
    return {"line": int(found["line"])} | ({"column_name": column} if column else {})


def _row_count(result: PGresult) -> int:
    tag = (result.command_status or b"").decode("ascii", "replace")
    return split_tag(tag)[1] or 0
