"""A tenant's role: its attributes, and the settings it cannot change itself."""

from collections.abc import Iterable
from typing import Final

import psycopg
from django.conf import settings
from psycopg import sql

ATTRIBUTES: Final = sql.SQL(
    "LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
)


def ensure_roles(connection: psycopg.Connection, passwords: Iterable[tuple[str, str]]) -> None:
    """Create the roles, or restore them, each with its password.

    A tenant's changes to its own role are undone: password, VALID UNTIL, settings. The password is
    sent as a SCRAM verifier, so that neither the network nor the server's log ever holds it.
    """
    given = list(passwords)
    names = [name for name, _ in given]
    rows = connection.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [names])
    existing = {str(name) for (name,) in rows}
    statements: list[sql.Composable] = []
    for name, password in given:
        if name not in existing:
            statements.append(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
        statements += _attributes(connection, name, password)
    connection.execute(sql.SQL("; ").join(statements))


def forget_settings(connection: psycopg.Connection, name: str, dbname: str) -> None:
    """Remove what the role has set for itself, in general and in its database."""
    role = sql.Identifier(name)
    connection.execute(
        sql.SQL("ALTER ROLE {role} IN DATABASE {db} RESET ALL").format(
            role=role, db=sql.Identifier(dbname)
        )
    )


def _attributes(
    connection: psycopg.Connection, name: str, password: str
) -> Iterable[sql.Composable]:
    role = sql.Identifier(name)
    verifier = connection.pgconn.encrypt_password(
        password.encode(), name.encode(), b"scram-sha-256"
    ).decode()
    yield sql.SQL("ALTER ROLE {} {} CONNECTION LIMIT {} PASSWORD {} VALID UNTIL 'infinity'").format(
        role, ATTRIBUTES, sql.Literal(settings.SQL.role_connections), sql.Literal(verifier)
    )
    yield sql.SQL("ALTER ROLE {} RESET ALL").format(role)
    for setting, value in _settings().items():
        yield sql.SQL("ALTER ROLE {} SET {} = {}").format(
            role, sql.Identifier(setting), sql.Literal(value)
        )


def _settings() -> dict[str, str]:
    """Return settings that only a superuser may change, so that the tenant cannot.

    The server's log must hold no tenant's statements, and no flood of errors may fill it.
    """
    return {
        "temp_file_limit": f"{settings.SQL.temp_file_limit_kib}kB",
        "log_min_messages": "fatal",
        "log_min_error_statement": "panic",
        "log_statement": "none",
        "log_min_duration_statement": "-1",
    }
