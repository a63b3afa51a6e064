"""The table of records in a tenant's database, which the administrator creates at the first use.

Its schema belongs to the platform, so that the tenant cannot change or drop the table. Admins and
operators may write rows. Readers may not, because they could fill the disk.
"""

from typing import Final

import psycopg
import structlog
from psycopg import sql

from sqlgateway.clusters import servers
from sqlgateway.clusters.placements import Login
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Database

CREATE: Final = sql.SQL(
    """
    CREATE SCHEMA IF NOT EXISTS zonal;
    CREATE TABLE IF NOT EXISTS zonal.idempotency (
        key pg_catalog.bytea PRIMARY KEY,
        made_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now(),
        record pg_catalog.bytea
    );
    CREATE INDEX IF NOT EXISTS idempotency_made_at ON zonal.idempotency (made_at);
    GRANT USAGE ON SCHEMA zonal TO {admin}, {operator};
    GRANT SELECT, INSERT, UPDATE, DELETE ON zonal.idempotency TO {admin}, {operator};
    """
)
# Serializes requests that create the table concurrently.
LOCK: Final = "SELECT pg_catalog.pg_advisory_xact_lock(7305808869229538)"
# SQLSTATEs of a missing table or schema, and of missing privileges after a restore.
MISSING: Final = frozenset({"42P01", "3F000", "42501"})

log = structlog.get_logger(__name__)


def create(login: Login) -> None:
    """Create the schema, the table and their privileges, if they are missing.

    Raises EngineUnavailable.
    """
    database = Database.unscoped.get(pk=login.database_id)  # unscoped: that of an open connection
    roles = {role: sql.Identifier(name) for role, name in database.roles.items()}
    try:
        with (
            servers.administer(login.address, login.dbname) as connection,
            connection.transaction(),
        ):
            connection.execute(LOCK)
            connection.execute(CREATE.format(**roles))
    except psycopg.Error as exc:
        log.warning("sql_idempotency_table_failed", database=database.pk, sqlstate=exc.sqlstate)
        raise EngineUnavailable from None


def literal(digest: bytes) -> bytes:
    """Return a key as a constant that does not depend on settings of the session."""
    return b"pg_catalog.decode('%b', 'hex')" % digest.hex().encode()


def claim(digest: bytes, begin: bytes, *, wait_ms: int) -> bytes:
    """Return the text that begins the transaction and inserts the key without a record.

    A second request of the same key waits for the end of the first one's transaction.
    """
    return (
        b"%b; SET LOCAL lock_timeout = %d;"
        b" INSERT INTO zonal.idempotency (key) VALUES (%b) ON CONFLICT (key) DO NOTHING;"
        b" SET LOCAL lock_timeout TO DEFAULT" % (begin, wait_ms, literal(digest))
    )


def select(digest: bytes) -> bytes:
    """Return the query that reads and locks a key's record."""
    return (
        b"SELECT record FROM zonal.idempotency WHERE key OPERATOR(pg_catalog.=) %b FOR UPDATE"
        % literal(digest)
    )


def update(digest: bytes) -> bytes:
    """Return the statement that sets a key's record to $1."""
    return (
        b"UPDATE zonal.idempotency SET record = $1, made_at = pg_catalog.now()"
        b" WHERE key OPERATOR(pg_catalog.=) %b" % literal(digest)
    )


def clean(hours: int) -> bytes:
    """Return the statement that deletes some old records."""
    return (
        b"DELETE FROM zonal.idempotency WHERE key IN (SELECT key FROM zonal.idempotency"
        b" WHERE made_at OPERATOR(pg_catalog.<)"
        b" (pg_catalog.now() OPERATOR(pg_catalog.-) '%d hours'::pg_catalog.interval)"
        b" LIMIT 100 FOR UPDATE SKIP LOCKED)" % hours
    )
