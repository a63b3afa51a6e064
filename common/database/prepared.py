"""A frequent query, compiled once per process and planned once per connection."""

import hashlib
import select
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

import orjson
import psycopg
import structlog
from django.db import DEFAULT_DB_ALIAS, ProgrammingError, connections
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL
from psycopg import errors
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

# Errors behind a pooler that uses another server connection for each transaction: the prepared
# statement does not exist, or exists already.
NOT_KEPT: Final = frozenset({"26000", "42P05"})

log = structlog.get_logger(__name__)


def parameter(number: int, type_: str) -> RawSQL:
    """Return the place of a value in the query: ``parameter(1, "uuid")`` is the first one's."""
    return RawSQL(f"${number}::{type_}", ())  # noqa: S611 - literals of the callers


class PreparedQuery:
    """A queryset that is compiled once, prepared, and run with libpq calls.

    Each request runs one. The ORM takes five times as long to compile a join of four tables as
    PostgreSQL takes to answer it, planning takes three times as long as running it, and the two
    cursors, Django's over psycopg's, take even longer to return a row.
    rows: returns the queryset, by ``values`` and with ``parameter`` for what differs.
    """

    def __init__(self, rows: Callable[[], QuerySet[Any, dict[str, Any]]]) -> None:
        self._rows = rows
        self._text = self._name = b""
        self._prepared_on: WeakSet[psycopg.Connection[Any]] = WeakSet()
        self._is_kept = True

    def row(self, *values: bytes) -> dict[str, Any] | None:
        """Return the first row, as JSON has it (moments in ISO 8601), None without a row.

        Behind a pooler that does not keep prepared statements the query is planned each time.
        Raises what Django's cursor raises, and counts as one query in its query log.
        """
        database = connections[DEFAULT_DB_ALIAS]
        database.ensure_connection()
        database.validate_no_broken_transaction()
        if not self._text:
            self._compile(database)
        if database.queries_logged:
            database.queries_log.append({"sql": self._text.decode(), "time": "0.000"})
        try:
            with database.wrap_database_errors:
                result = self._run(database.connection, values)
        except ProgrammingError as exc:
            state = getattr(exc.__cause__, "sqlstate", None)
            if state not in NOT_KEPT or database.in_atomic_block:
                raise
            log.warning("prepared_statements_not_kept", sqlstate=state)
            self._is_kept = False
            return self.row(*values)
        found: bytes | None = result.get_value(0, 0) if result.ntuples else None
        return None if found is None else orjson.loads(found)

    def _compile(self, database: Any) -> None:
        rows = database.ops.compose_sql(*self._rows().query.sql_with_params())
        # Reading one JSON object takes a fraction of the time of as many columns.
        text = f"SELECT row_to_json(found)::text FROM ({rows}) AS found".encode()  # noqa: S608 - the ORM's
        # The name depends on the text: behind a pooler another release's statement must not be
        # used.
        self._name = b"zonal_" + hashlib.sha256(text).hexdigest()[:16].encode()
        self._text = text

    def _run(self, connection: psycopg.Connection[Any], values: tuple[bytes, ...]) -> PGresult:
        pgconn = connection.pgconn
        if not self._is_kept:
            pgconn.send_query_params(self._text, values)
            return _checked(connection, _wait_for_result(pgconn))
        if connection not in self._prepared_on:
            _checked(connection, pgconn.prepare(self._name, self._text))
            self._prepared_on.add(connection)
        pgconn.send_query_prepared(self._name, values)
        return _checked(connection, _wait_for_result(pgconn))


def _wait_for_result(pgconn: PGconn) -> PGresult:
    """Return the result.

    Raises psycopg.OperationalError for a lost connection.
    """
    poll = select.poll()
    poll.register(pgconn.socket, select.POLLIN)
    while pgconn.flush() or pgconn.is_busy():
        poll.poll()
        pgconn.consume_input()
    answer = pgconn.get_result()
    while pgconn.get_result() is not None:
        pass
    if answer is None:
        raise psycopg.OperationalError("the connection was lost")
    return answer


def _checked(connection: psycopg.Connection[Any], result: PGresult) -> PGresult:
    if result.status in {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}:
        return result
    if connection.pgconn.status == ConnStatus.BAD:
        raise psycopg.OperationalError("the connection was lost")
    raise errors.error_from_result(result)
