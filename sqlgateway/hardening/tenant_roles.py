"""Create and restore a tenant's roles, and find what their tenant changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import psycopg
from django.conf import settings
from psycopg import sql

from common.permissions import Role
from sqlgateway.hardening.scram import scram_of

# Temporary files of one session.
TEMP_FILE_LIMIT_KIB: Final = 1_048_576
ATTRIBUTES: Final = sql.SQL(
    "LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
)
# Uses catalogues that all databases share, so that one query is enough for roles of many databases.
# pg_default_acl is not shared, but pg_shdepend lists its entries.
STATE: Final = """
SELECT role.rolname, role.rolpassword,
       ARRAY(SELECT split_part(kept, '=', 1)
             FROM pg_db_role_setting, unnest(setconfig) AS kept WHERE setrole = role.oid),
       (SELECT count(*) FROM pg_shdepend AS entry
        WHERE entry.refclassid = 'pg_authid'::regclass AND entry.refobjid = role.oid
          AND entry.dbid = database.oid AND entry.classid = 'pg_default_acl'::regclass)
FROM unnest(%s::text[], %s::text[]) AS login(rolname, datname)
JOIN pg_authid AS role USING (rolname) JOIN pg_database AS database USING (datname)
"""

END_IDLE: Final = (
    "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity"
    " WHERE usename = %s AND state = 'idle'"
)


class RoleDrift(StrEnum):
    """A change that a tenant made to its own role."""

    PASSWORD = "password"  # noqa: S105  # the kind of change, not a password
    SETTINGS = "settings"
    PRIVILEGES = "privileges"


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """The expected state of a role.

    user: the role's name on the server.
    role: its kind; a reader has no default privileges.
    """

    user: str
    role: Role
    dbname: str
    password: str = field(repr=False)


def ensure_roles(connection: psycopg.Connection, passwords: Iterable[tuple[str, str]]) -> None:
    """Create the roles, or restore them, each with its password.

    Passwords are sent as SCRAM verifiers, so that they appear neither on the network nor in the
    server's log.
    """
    given = list(passwords)
    names = [name for name, _ in given]
    rows = connection.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [names])
    existing = {str(name) for (name,) in rows}
    statements: list[sql.Composable] = []
    for name, password in given:
        role = sql.Identifier(name)
        if name not in existing:
            statements.append(sql.SQL("CREATE ROLE {}").format(role))
        statements.append(
            sql.SQL("ALTER ROLE {} {} CONNECTION LIMIT {} VALID UNTIL 'infinity'").format(
                role, ATTRIBUTES, sql.Literal(settings.SQL.role_connections)
            )
        )
        statements += _own(name, password)
    connection.execute(sql.SQL("; ").join(statements))


def changes_of(
    connection: psycopg.Connection, roles: Sequence[RoleSpec]
) -> dict[str, frozenset[RoleDrift]]:
    """Return the differences from the expected state by role name, without missing roles."""
    rows = connection.execute(
        STATE, [[role.user for role in roles], [role.dbname for role in roles]]
    ).fetchall()
    by_user = {role.user: role for role in roles}
    return {
        user: frozenset(
            change
            for change, is_found in (
                (RoleDrift.PASSWORD, verifier != _verifier(by_user[user])),
                (RoleDrift.SETTINGS, not _settings().keys() >= set(kept)),
                (RoleDrift.PRIVILEGES, by_user[user].role != "reader" and not defaults),
            )
            if is_found
        )
        for user, verifier, kept, defaults in rows
    }


def restore_role(connection: psycopg.Connection, expected: RoleSpec) -> None:
    """Restore the password and settings of a role, also those for its database.

    LOGIN is not restored: a tenant cannot change it, and the roles of a deleted environment must
    not get it.
    """
    statements = [
        sql.SQL("ALTER ROLE {} IN DATABASE {} RESET ALL").format(
            sql.Identifier(expected.user), sql.Identifier(expected.dbname)
        ),
        *_own(expected.user, expected.password),
    ]
    connection.execute(sql.SQL("; ").join(statements))


def limit_connections(connection: psycopg.Connection, users: Iterable[str]) -> None:
    """Set the CONNECTION LIMIT of roles to that of the settings."""
    for user in users:
        connection.execute(
            sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}").format(
                sql.Identifier(user), sql.Literal(settings.SQL.role_connections)
            )
        )


def end_idle_sessions(connection: psycopg.Connection, user: str) -> None:
    """End a role's idle sessions, which a pooler would use again.

    They have the role's settings from before the repair.
    """
    connection.execute(END_IDLE, [user])


def _verifier(role: RoleSpec) -> str:
    return scram_of(role.user, role.password).verifier


def _own(name: str, password: str) -> Iterable[sql.Composable]:
    """Yield statements that set everything that a role can change itself."""
    role = sql.Identifier(name)
    yield sql.SQL("ALTER ROLE {} PASSWORD {}").format(
        role, sql.Literal(scram_of(name, password).verifier)
    )
    yield sql.SQL("ALTER ROLE {} RESET ALL").format(role)
    for setting, value in _settings().items():
        yield sql.SQL("ALTER ROLE {} SET {} = {}").format(
            role, sql.Identifier(setting), sql.Literal(value)
        )


def _settings() -> dict[str, str]:
    """Return settings that a tenant cannot change, because only a superuser may.

    The server's log must not contain tenants' statements, nor be filled by their errors.
    """
    return {
        "temp_file_limit": f"{TEMP_FILE_LIMIT_KIB}kB",
        "log_min_messages": "fatal",
        "log_min_error_statement": "panic",
        "log_statement": "none",
        "log_min_duration_statement": "-1",
    }
