"""Read a tenant's database completely, in one snapshot, without a superuser."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import psycopg
from django.conf import settings
from django.utils import timezone
from psycopg import sql

from sqlgateway import names
from sqlgateway.clusters.servers import ADMIN_SETTINGS, ClusterAddress, administer, connect_with
from sqlgateway.databases.copies import temporary_roles
from sqlgateway.databases.copies.programs import ProgramLogin
from sqlgateway.hardening.tenant_roles import ensure_roles
from sqlgateway.models import Database

# The reading role inherits the privileges of the three roles, which are limited to this database,
# and reads rows that policies hide. It expires, because a crash may leave it behind
# (roles.py).
READER: Final = sql.SQL(
    "ALTER ROLE {role} INHERIT BYPASSRLS CONNECTION LIMIT 4 VALID UNTIL {until};"
    "GRANT {admin}, {operator}, {reader} TO {role}"
)
# Catalogues that pg_dump reads; names of other tenants in them are opaque. pg_read_all_data would
# also permit pg_authid.
CATALOGS: Final = sql.SQL(
    "GRANT SELECT ON pg_catalog.pg_roles, pg_catalog.pg_database, pg_catalog.pg_tablespace,"
    " pg_catalog.pg_shdescription, pg_catalog.pg_db_role_setting TO {}"
)
# Objects that the reading role cannot read because the admin revoked its own privileges.
UNREADABLE: Final = """
WITH own AS (
    SELECT oid, nspname FROM pg_namespace
    WHERE nspname NOT LIKE 'pg\\_%%' AND nspname <> 'information_schema'
)
SELECT format('USAGE ON SCHEMA %%I', nspname) FROM own
WHERE NOT has_schema_privilege(%(role)s, oid, 'USAGE')
UNION ALL
SELECT format('SELECT ON TABLE %%s', relation.oid::regclass)
FROM pg_class AS relation JOIN own ON own.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'S')
    AND NOT has_table_privilege(%(role)s, relation.oid, 'SELECT')
"""
TABLES: Final = (
    "SELECT relation.oid::regclass::text FROM pg_class AS relation"
    " JOIN pg_namespace AS schema ON schema.oid = relation.relnamespace"
    " WHERE relation.relkind = 'r' AND relation.relpersistence <> 't'"
    " AND schema.nspname NOT LIKE 'pg\\_%' AND schema.nspname <> 'information_schema'"
)


@contextmanager
def reading_role(address: ClusterAddress, database: Database) -> Iterator[ProgramLogin]:
    """Create a role that can read all of a tenant's database, and drop it afterwards.

    Raises EngineUnavailable.
    """
    name, password = names.role_name(), names.password()
    role = sql.Identifier(name)
    given = {str(key): sql.Identifier(user) for key, user in database.roles.items()}
    until = timezone.now() + timedelta(seconds=settings.SQL.copy_timeout_s)
    with administer(address) as connection:
        ensure_roles(connection, [(name, password)])
        connection.execute(READER.format(role=role, until=sql.Literal(until.isoformat()), **given))
    try:
        with administer(address, database.dbname) as inside:
            inside.execute(CATALOGS.format(role))
            for (privilege,) in inside.execute(UNREADABLE.encode(), {"role": name}).fetchall():
                inside.execute(f"GRANT {privilege} TO {name}".encode())
        yield ProgramLogin(address, database.dbname, name, password)
    finally:
        with administer(address, database.dbname) as inside:
            temporary_roles.drop(inside, name)


@contextmanager
def exported_snapshot(inside: psycopg.Connection) -> Iterator[str]:
    """Yield the name of a snapshot, which the administrator's connection holds in the block."""
    inside.execute("SET idle_in_transaction_session_timeout = 0")
    with inside.transaction():
        inside.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        row = inside.execute("SELECT pg_export_snapshot()").fetchone()
        yield str(row[0]) if row is not None else ""


def count_rows(login: ProgramLogin, *, snapshot: str = "") -> dict[str, int]:
    """Return the number of rows of each table by its qualified name. Raises psycopg.Error."""
    values = {**ADMIN_SETTINGS, "statement_timeout": f"{settings.SQL.copy_timeout_s}s"}
    given = {"password": login.password}
    with (
        connect_with(login.address, login.conninfo(), values, given) as connection,
        connection.transaction(),
    ):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if snapshot:
            connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
        tables = [str(name) for (name,) in connection.execute(TABLES.encode()).fetchall()]
        return {table: _count(connection, table) for table in tables}


def _count(connection: psycopg.Connection, table: str) -> int:
    counting = f"SELECT count(*) FROM ONLY {table}"  # noqa: S608 - quoted by the server
    row = connection.execute(counting.encode()).fetchone()
    return int(row[0]) if row is not None else 0
