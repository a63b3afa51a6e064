"""Create and drop databases on clusters; safe to repeat after a crash."""

import time
from collections.abc import Sequence
from typing import Final

import psycopg
import structlog
from psycopg import sql

from sqlgateway import hardening, names
from sqlgateway.clusters.servers import ClusterAddress, address_of, administer, said
from sqlgateway.errors import EngineUnavailable
from sqlgateway.hardening.cluster import close_to_public
from sqlgateway.hardening.database import (
    grant_access,
    grant_inside,
    harden_catalog,
    open_database,
    restrict_functions,
)
from sqlgateway.hardening.tenant_roles import (
    RoleSpec,
    ensure_roles,
    limit_connections,
    restore_role,
)
from sqlgateway.models import Cluster, Database

TEMPLATE: Final = f"zonal_template_{hardening.VERSION}"
# How long running statements may take to end before a database is moved.
GRACE_S: Final = 5.0
POLL_S: Final = 0.05
# NOLOGIN does not end a role's sessions.
END_SESSIONS: Final = (
    "SELECT CASE WHEN state = 'idle' OR %s THEN pg_terminate_backend(pid) END"
    " FROM pg_stat_activity WHERE usename = ANY(%s)"
)
END_OTHERS: Final = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"
)

log = structlog.get_logger(__name__)


def create(database: Database) -> None:
    """Create the row's database and roles, hardened and open for logins.

    An existing database of this name is unfinished, because the row is not in use; it is dropped.
    Raises EngineUnavailable.
    """
    started = time.monotonic()
    address = address_of(database.cluster)
    with administer(address) as connection:
        template = _ensure_template(address, connection)
        _drop_database(connection, database.dbname)
        passwords = database.passwords
        ensure_roles(connection, [(name, passwords[role]) for role, name in database.roles.items()])
        _create(connection, database.dbname, template=template or "template0")
        grant_access(connection, database.dbname, database.roles)
        _allow_connections(connection, database.dbname, allowed=True)
        harden(address, database, catalog=template is None, is_new=True)
        open_database(connection, database.dbname)
    database.hardening = hardening.VERSION
    elapsed_ms = round((time.monotonic() - started) * 1000)
    log.info("sql_database_made", database=database.pk, elapsed_ms=elapsed_ms)


def harden(
    address: ClusterAddress, database: Database, *, catalog: bool, is_new: bool = False
) -> None:
    """Grant the roles their privileges; with ``catalog`` also revoke those of PUBLIC.

    A superuser connects to the database for this. That is safe because GRANT and REVOKE do not run
    code of the tenant, and names are resolved only in pg_catalog.

    is_new: no tenant has used the database, so restrictions of later versions break nothing. Other
    databases get the connection limits of the settings.
    """
    with administer(address, database.dbname) as inside:
        if catalog:
            harden_catalog(inside)
        grant_inside(inside, database.roles)
        if is_new:
            restrict_functions(inside, database.roles)
            return
        for role, user in database.roles.items():
            restore_role(inside, RoleSpec(user, role, database.dbname, database.passwords[role]))
        limit_connections(inside, database.roles.values())
        open_database(inside, database.dbname)


def drop(database: Database) -> None:
    """Drop the row's database, its connections and its roles; safe to repeat.

    Raises EngineUnavailable.
    """
    drop_named(database.cluster, database.dbname, list(database.roles.values()))
    log.info("sql_database_dropped", database=database.pk)


def set_login(database: Database, *, allowed: bool) -> None:
    """Allow or forbid the tenant's logins; forbidding also ends open sessions.

    Roles that do not exist yet, before a copy, are skipped.
    Raises EngineUnavailable.
    """
    words = sql.SQL("LOGIN" if allowed else "NOLOGIN")
    roles = list(database.roles.values())
    with administer(address_of(database.cluster)) as connection:
        found = connection.execute(
            "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [roles]
        ).fetchall()
        for (name,) in found:
            connection.execute(sql.SQL("ALTER ROLE {} {}").format(sql.Identifier(name), words))
        if not allowed:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ANY(%s)",
                [roles],
            )


def try_end_copy(database: Database) -> None:
    """Forbid the logins of an unfinished copy, and end its sessions, if the server answers.

    After its program was killed the server continues a statement, possibly an endless one.
    """
    try:
        set_login(database, allowed=False)
    except (EngineUnavailable, psycopg.Error) as exc:
        log.warning("sql_copy_not_ended", database=database.pk, said=said(exc))


def set_open(database: Database, *, is_open: bool) -> None:
    """Allow or forbid connections to a database, including the administrator's.

    Raises EngineUnavailable.
    """
    with administer(address_of(database.cluster)) as connection:
        _allow_connections(connection, database.dbname, allowed=is_open)


def end_sessions(database: Database) -> None:
    """Forbid the tenant's logins, and end its sessions.

    A session that runs a statement has GRACE_S to end; then it is terminated, which rolls back its
    transaction.
    Raises EngineUnavailable.
    """
    deadline = time.monotonic() + GRACE_S
    roles = list(database.roles.values())
    with administer(address_of(database.cluster)) as connection:
        for name in roles:
            connection.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(sql.Identifier(name)))
        while True:
            is_late = time.monotonic() > deadline
            rows = connection.execute(END_SESSIONS, [is_late, roles]).fetchall()
            if not rows:
                return
            if time.monotonic() > deadline + GRACE_S:
                raise EngineUnavailable("A session of the tenant does not end.")
            time.sleep(POLL_S)


def set_passwords(database: Database) -> None:
    """Set the row's passwords on its roles. Raises EngineUnavailable."""
    passwords = database.passwords
    with administer(address_of(database.cluster)) as connection:
        ensure_roles(connection, [(name, passwords[role]) for role, name in database.roles.items()])


def drop_named(cluster: Cluster, dbname: str, roles: Sequence[str]) -> None:
    """Drop a database and roles by name; safe to repeat.

    Raises EngineUnavailable.
    """
    with administer(address_of(cluster)) as connection:
        _drop_database(connection, dbname)
        for name in roles:
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))


def ensure_template(address: ClusterAddress) -> None:
    """Create the hardened template if the cluster can copy one. Raises EngineUnavailable."""
    with administer(address) as connection:
        _ensure_template(address, connection)


def _ensure_template(address: ClusterAddress, connection: psycopg.Connection) -> str | None:
    """Create the template if it does not exist; return its name.

    None on a cluster that cannot copy databases. The template is renamed when it is complete: if
    two processes create it, the second one's is dropped.
    """
    if not address.can("template"):
        return None
    if _exists(connection, TEMPLATE):
        return TEMPLATE
    close_to_public(connection)
    name = names.template_name()
    _create(connection, name, template="template0")
    _allow_connections(connection, name, allowed=True)
    with administer(address, name) as inside:
        harden_catalog(inside)
    _allow_connections(connection, name, allowed=False)
    # A pooler keeps the connection open, and a database in use cannot be renamed.
    connection.execute(END_OTHERS, [name])
    try:
        connection.execute(
            sql.SQL("ALTER DATABASE {} RENAME TO {}").format(
                sql.Identifier(name), sql.Identifier(TEMPLATE)
            )
        )
    except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
        # UniqueViolation: the other process had not committed the name when this one checked it.
        _drop_database(connection, name)
    return TEMPLATE


def _create(connection: psycopg.Connection, name: str, *, template: str) -> None:
    connection.execute(
        sql.SQL(
            "CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8' ALLOW_CONNECTIONS false "
            "CONNECTION LIMIT 0"
        ).format(sql.Identifier(name), sql.Identifier(template))
    )
    connection.execute(
        sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name))
    )


def _allow_connections(connection: psycopg.Connection, name: str, *, allowed: bool) -> None:
    connection.execute(
        sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(
            sql.Identifier(name), sql.Literal(allowed)
        )
    )


def _drop_database(connection: psycopg.Connection, name: str) -> None:
    connection.execute(
        sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    )


def _exists(connection: psycopg.Connection, name: str) -> bool:
    row = connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone()
    return row is not None
