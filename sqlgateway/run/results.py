"""The results of a request: what receives its rows, and the JSON answer.

A query whose remaining rows exceed the limits of the answer is cancelled. A cancel also rolls back
what the transaction has written, or would write with later rows or statements. So a query is
cancelled only if it cannot write: it is the request's last statement, in a transaction that began
READ ONLY and can no longer become READ WRITE, because a query that returns rows has taken a
snapshot.

In every other case the remaining rows are read and discarded until the deadline. The answer is
truncated, and every statement has run. At the deadline everything is rolled back, and the answer is
``query_timeout``.

Types and single statements are looked up in the tenant's database, as the tenant's role.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import orjson
import psycopg
import structlog
from psycopg import pq
from psycopg.abc import Buffer
from psycopg.pq.abc import PGresult

from common.errors import PlatformError
from sqlgateway.clusters.placements import Login, read_again
from sqlgateway.clusters.servers import said
from sqlgateway.formats.results import Collector, ResponseBudget, Statement
from sqlgateway.pg import pool
from sqlgateway.pg.message_stream import ConnectionLost, ResultOverflow
from sqlgateway.pg.pool import LoginRefused
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import sqlstates
from sqlgateway.run.requests import SqlRequest, SqlText
from sqlgateway.run.type_lookup import look_up_types

log = structlog.get_logger(__name__)

# Of one request.
MAX_STATEMENTS: Final = 100
PARSE_S: Final = 2.0
# The server's routine that refuses a second statement. The SQLSTATE is that of any syntax error.
SECOND_STATEMENT: Final = b"exec_parse_message"
NO_STATEMENT: Final = Statement()
CANCEL_S: Final = 3.0
CANCELLED: Final = "57014"
# A CALL returns one row, and may have ended one transaction and begun another READ WRITE.
MIN_ROWS: Final = 2


class Sink(Protocol):
    """Receives each statement's columns, its rows chunk by chunk, and its end.

    The calls for a statement are ``start``, ``add`` for each chunk, ``end``; a statement without
    rows has only ``end``. A chunk is valid only during the call: libpq frees it afterwards. Any
    method may raise a PlatformError, which ends the request.

    Flow control: the execution yields after each chunk, and does not read further until the caller
    resumes it.
    """

    @property
    def takes_copy(self) -> bool:
        """True if the sink takes the lines of a COPY TO STDOUT; otherwise COPY is refused."""

    @property
    def is_full(self) -> bool:
        """True if the running statement's further rows are not needed."""

    def start(self, result: PGresult, connection: TenantConnection) -> None:
        """Read a statement's columns from its first chunk."""

    def add(self, result: PGresult, connection: TenantConnection) -> None:
        """Take a chunk's rows, including the first chunk's; also called while ``is_full``."""

    def add_lines(self, lines: Sequence[Buffer]) -> None:
        """Take lines of a COPY TO STDOUT."""

    def end(self, command_tag: str) -> None:
        """End a statement. command_tag: such as ``INSERT 0 5``; empty for a cancelled query."""

    def complete(self, connection: TenantConnection) -> None:
        """Finish the answer: all statements have run, and their transaction has ended.

        The connection is free for lookups. Not called for a request that failed.
        """


class JsonSink:
    """Collects statements' results.

    statements: set by ``complete``. truncated: rows or whole results are missing.
    """

    def __init__(self, request: SqlRequest) -> None:
        self._request = request
        self._budget = ResponseBudget(request.max_bytes)
        self._collector: Collector | None = None
        self._finished: list[tuple[Collector, str]] = []
        self._ended = self._dropped = 0
        self.statements: list[Statement] = []

    @property
    def takes_copy(self) -> bool:
        """False: the lines of a COPY are not JSON."""
        return False

    @property
    def is_full(self) -> bool:
        """True if the running statement reached a limit."""
        return self._collector is not None and self._collector.is_full

    @property
    def truncated(self) -> bool:
        """True if rows or whole results are missing."""
        return self._dropped > 0 or any(statement.truncated for statement in self.statements)

    @property
    def row_count(self) -> int:
        """Rows that the last statement returned or changed."""
        return self.statements[-1].row_count if self.statements else 0

    @property
    def size_bytes(self) -> int:
        """Size of all rows as JSON."""
        return sum(statement.size_bytes for statement in self.statements)

    def start(self, result: PGresult, connection: TenantConnection) -> None:
        """Read a statement's columns."""
        self._budget.deadline = connection.deadline
        self._collector = self._new_collector()
        self._collector.start(result, connection.column_types)

    def add(self, result: PGresult, connection: TenantConnection) -> None:
        """Collect a chunk's rows, as many as fit."""
        if connection.on_held is not None:
            encoded_bytes = self._request.max_bytes - self._budget.bytes_left
            connection.on_held(encoded_bytes + self._budget.unencoded_bytes)
        if self._collector is not None:
            self._collector.add(result, held_bytes=connection.last_bytes)

    def add_lines(self, lines: Sequence[Buffer]) -> None:
        """Take nothing: COPY is refused."""

    def end(self, command_tag: str) -> None:
        """End a statement. The first ones and the last one are reported."""
        collector = self._collector or self._new_collector()
        # Before the commit, so that a statement whose result cannot be encoded is rolled back.
        collector.encode()
        self._finished.append((collector, command_tag))
        self._collector = None
        self._ended += 1
        if len(self._finished) > MAX_STATEMENTS:
            dropped, _ = self._finished.pop(-2)
            dropped.drop()
            self._dropped += 1

    def complete(self, connection: TenantConnection) -> None:
        """Look up unknown types' names, then encode the rest; a second call does nothing."""
        if self.statements:
            return
        unknown = set[int]().union(*(collector.unknown for collector, _ in self._finished))
        if unknown:
            # Without their names, the results are complete.
            with suppress(ConnectionLost):
                look_up_types(connection, unknown)
        self.statements = [
            collector.finish(tag, connection.column_types) for collector, tag in self._finished
        ]
        for sql_text, statement in zip(self._request.texts, self.statements, strict=False):
            if sql_text.explain and statement.batches:
                statement.plan = _plan(statement.batches[0])

    def _new_collector(self) -> Collector:
        """Return the collector of the next statement; each of ``queries`` is one statement."""
        index = self._ended if self._request.is_batch else 0
        return Collector(self._budget, self._request.texts[index].form)


def render(
    sink: JsonSink, notices: Sequence[dict[str, Any]], *, elapsed_ms: float, request_id: str
) -> bytes:
    """Return the answer: the last statement's members, and ``results`` if there are several."""
    statements = sink.statements or [NO_STATEMENT]
    last = statements[-1]
    # A client that reads only these members must see that results are incomplete.
    parts = [b"{", *last.members(is_whole=not sink.truncated)]
    if len(statements) > 1:
        parts.append(b',"results":[')
        for number, statement in enumerate(statements):
            parts += [b",{" if number else b"{", *statement.members(), b"}"]
        parts.append(b"]")
    stats = {"elapsed_ms": elapsed_ms, "bytes": sink.size_bytes}
    tail: dict[str, Any] = {"notices": notices, "stats": stats, "request_id": request_id}
    parts += [b",", orjson.dumps(tail)[1:]]
    return b"".join(parts)


def _plan(row: bytes) -> bytes:
    """Return the only value of a row: the plan as PostgreSQL wrote it."""
    if row.startswith(b"["):
        return row[1:-1]
    return row.partition(b":")[2][:-1]


class SurplusRowsCanceller:
    """Cancels the last query of a request, at most once, if that cannot lose a write.

    is_read_only: the transaction of the request is or will be READ ONLY.
    has_cancelled: a cancel was sent; a statement that ends before it arrives has run normally.
    was_cancelled_early: the cancel ended the query.
    is_discarding: rows are read only to reach the end of the answer.
    """

    def __init__(self, connection: TenantConnection) -> None:
        self._connection = connection
        self._asked: SqlText | None = None
        self.is_read_only = False
        self.has_cancelled = self.was_cancelled_early = self.is_discarding = False

    def cancel_early(self, sql_text: SqlText, *, is_last: bool, row_count: int) -> None:
        """Cancel the text's query if no write can be lost.

        row_count: the rows of its running statement that were read so far.
        """
        if self._asked is sql_text or row_count < MIN_ROWS:
            return
        self._asked = sql_text
        connection = self._connection
        if not (is_last and self.is_read_only and is_single(connection.login, sql_text)):
            self.is_discarding = True
            return
        self.has_cancelled = True
        try:
            connection.psycopg_connection.cancel_safe(timeout=CANCEL_S)
        except psycopg.Error as exc:
            # The rows are then read until their end or the deadline.
            log.warning("sql_cancel_failed", pid=connection.pid, said=said(exc))

    def is_own_cancel(self, failure: PGresult) -> bool:
        """True if a query failed because ``cancel_early`` cancelled it."""
        return self.has_cancelled and sqlstates.sqlstate_of(failure) == CANCELLED


def look_up_types_beside(connection: TenantConnection, oids: Iterable[int]) -> None:
    """Look up types' names on another connection, while this one runs a query.

    A type that cannot be looked up remains unknown.
    """
    try:
        other = _checkout(connection.login)
    except (PlatformError, LoginRefused):
        return
    try:
        other.give_up_at = time.monotonic() + PARSE_S
        look_up_types(other, oids)
        connection.column_types.update(other.column_types)
    except (ConnectionLost, ResultOverflow):
        return
    finally:
        pool.CONNECTION_POOL.release(other)


def is_single(login: Login, sql_text: SqlText) -> bool:
    """True if a text is a single statement, False if not or if this cannot be determined.

    PostgreSQL parses the text on another connection.
    """
    if sql_text.params is not None:
        return True
    try:
        connection = _checkout(login)
    except (PlatformError, LoginRefused):
        return False
    try:
        return _parses_as_one(connection, sql_text)
    except (ConnectionLost, ResultOverflow):
        return False
    finally:
        pool.CONNECTION_POOL.release(connection)


def _checkout(login: Login) -> TenantConnection:
    """Return a second connection as the same role.

    The password may have been rotated since the first connection was opened.
    Raises LoginRefused, and the errors of ``read_again`` and of the pool.
    """
    try:
        return pool.CONNECTION_POOL.checkout(login)
    except LoginRefused:
        return pool.CONNECTION_POOL.checkout(read_again(login))


def _parses_as_one(connection: TenantConnection, sql_text: SqlText) -> bool:
    connection.give_up_at = time.monotonic() + PARSE_S
    connection.send_parse(sql_text.sent)
    is_one = True
    while (result := connection.next_result()) is not None:
        routine = result.error_field(pq.DiagnosticField.SOURCE_FUNCTION)
        is_one = is_one and routine != SECOND_STATEMENT
    return is_one
