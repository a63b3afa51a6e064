"""The role without superuser rights that owns the control plane's database."""

import psycopg
from psycopg import sql


def ensure_owner(superuser_url: str, owner: str, *, password: str, creates_databases: bool) -> None:
    """Make the role and its database of the same name; repeat as often as you like.

    The password travels as a SCRAM verifier: never in clear, not even to the server.
    """
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        verifier = connection.pgconn.encrypt_password(
            password.encode(), owner.encode(), b"scram-sha-256"
        ).decode()
        role = sql.Identifier(owner)
        if not _exists(connection, "SELECT FROM pg_roles WHERE rolname = %s", owner):
            connection.execute(sql.SQL("CREATE ROLE {}").format(role))
        rights = sql.SQL("CREATEDB" if creates_databases else "NOCREATEDB")
        connection.execute(
            sql.SQL("ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEROLE {} PASSWORD {}").format(
                role, rights, sql.Literal(verifier)
            )
        )
        if not _exists(connection, "SELECT FROM pg_database WHERE datname = %s", owner):
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))


def _exists(connection: psycopg.Connection, query: str, name: str) -> bool:
    return connection.execute(query, [name]).fetchone() is not None
