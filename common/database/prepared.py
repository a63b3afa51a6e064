"""A frequent query, planned once per connection to the control database."""

import hashlib
import select
from typing import Any, Final
from weakref import WeakSet

import psycopg
import structlog
from django.db import DEFAULT_DB_ALIAS, ProgrammingError, connections
from psycopg import errors
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

# Errors behind a pooler that uses another server connection for each transaction: the prepared
# statement does not exist, or exists already.
NOT_KEPT: Final = frozenset({"26000", "42P05"})

log = structlog.get_logger(__name__)


class PreparedQuery:
    """A query that returns one text, prepared and run with libpq calls on Django's connection.

    Planning a join of four tables takes PostgreSQL three times as long as running it, and the two
    cursors, Django's over psycopg's, take even longer to return one value.
    text: with $1, $2 as placeholders for values of these types.
    """

    def __init__(self, text: str, types: tuple[str, ...]) -> None:
        typed = text
        for number, type_ in enumerate(types, start=1):
            typed = typed.replace(f"${number}", f"${number}::{type_}")
        self._text = typed.encode()
        # The name depends on the text: behind a pooler another release's statement must not be
        # used.
        self._name = b"zonal_" + hashlib.sha256(self._text).hexdigest()[:16].encode()
        self._prepared_on: WeakSet[psycopg.Connection[Any]] = WeakSet()
        self._is_kept = True

    def value(self, *values: bytes) -> bytes | None:
        """Return the text of the first row, None without a row.

        Behind a pooler that does not keep prepared statements the query is planned each time.
        Raises what Django's cursor raises, and counts as one query in its query log.
        """
        database = connections[DEFAULT_DB_ALIAS]
        database.ensure_connection()
        database.validate_no_broken_transaction()
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
            return self.value(*values)
        return result.get_value(0, 0) if result.ntuples else None

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
