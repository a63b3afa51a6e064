"""Lookups in the tenant's database, run as the tenant's role."""

import time
from collections.abc import Iterable
from typing import Final

import structlog
from psycopg import pq

from common.errors import PlatformError
from sqlgateway.clusters.placements import Login, read_again
from sqlgateway.formats.column_types import ColumnType
from sqlgateway.pg import pool
from sqlgateway.pg.message_stream import ConnectionLost, ResultOverflow
from sqlgateway.pg.pool import LoginRefused
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run.requests import SqlText

# Names are qualified: the tenant controls its search_path.
TYPE_NAMES: Final = """
SELECT t.oid, CASE WHEN e.oid IS NULL THEN t.typname ELSE e.typname END, e.oid
FROM pg_catalog.pg_type AS t
LEFT JOIN pg_catalog.pg_type AS e
    ON e.oid OPERATOR(pg_catalog.=) t.typelem
    AND t.typcategory OPERATOR(pg_catalog.=) 'A' AND e.typdelim OPERATOR(pg_catalog.=) ','
WHERE t.oid OPERATOR(pg_catalog.=) ANY ('{%s}'::pg_catalog.oid[])
"""
MAX_COLUMN_TYPES: Final = 1000
PARSE_S: Final = 2.0
# The server's routine that refuses a second statement. The SQLSTATE is that of any syntax error.
SECOND_STATEMENT: Final = b"exec_parse_message"

log = structlog.get_logger(__name__)


def look_up_types(session: TenantConnection, oids: Iterable[int]) -> None:
    """Look up types' names, on a connection without an open transaction.

    A type that is not found, because its transaction was rolled back, remains unknown.
    Raises ConnectionLost.
    """
    if len(session.column_types) > MAX_COLUMN_TYPES:
        session.column_types.clear()
    query = TYPE_NAMES % ",".join(str(oid) for oid in sorted(oids))
    session.send_text(query.encode())
    while (result := session.next_result()) is not None:
        if result.status not in {pq.ExecStatus.TUPLES_CHUNK, pq.ExecStatus.TUPLES_OK}:
            continue
        for row in range(result.ntuples):
            oid, name, element = (
                (result.get_value(row, column) or b"").decode("utf-8", "replace")
                for column in range(3)
            )
            shown = f"{name}[]" if element else name
            session.column_types[int(oid)] = ColumnType(shown, is_array=bool(element))


def look_up_types_beside(session: TenantConnection, oids: Iterable[int]) -> None:
    """Look up types' names on another connection, while this one runs a query.

    A type that cannot be looked up remains unknown.
    """
    try:
        other = _checkout(session.login)
    except (PlatformError, LoginRefused):
        return
    try:
        other.give_up_at = time.monotonic() + PARSE_S
        look_up_types(other, oids)
        session.column_types.update(other.column_types)
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
        session = _checkout(login)
    except (PlatformError, LoginRefused):
        return False
    try:
        return _parses_as_one(session, sql_text)
    except (ConnectionLost, ResultOverflow):
        return False
    finally:
        pool.CONNECTION_POOL.release(session)


def _checkout(login: Login) -> TenantConnection:
    """Return a second connection as the same role.

    The password may have been rotated since the first connection was opened.
    Raises LoginRefused, and the errors of ``read_again`` and of the cache.
    """
    try:
        return pool.CONNECTION_POOL.checkout(login)
    except LoginRefused:
        return pool.CONNECTION_POOL.checkout(read_again(login))


def _parses_as_one(session: TenantConnection, sql_text: SqlText) -> bool:
    session.give_up_at = time.monotonic() + PARSE_S
    session.send_parse(sql_text.sent)
    is_one = True
    while (result := session.next_result()) is not None:
        routine = result.error_field(pq.DiagnosticField.SOURCE_FUNCTION)
        is_one = is_one and routine != SECOND_STATEMENT
    return is_one
