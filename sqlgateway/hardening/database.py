"""A tenant's database: its ACL, and its three roles' privileges inside."""

from collections.abc import Mapping
from typing import Final

import psycopg
from django.conf import settings
from psycopg import sql

from platform_site.lib.permissions import Role

# Inside the database. The schema belongs to pg_database_owner, which is no tenant's role. Readers'
# privileges are granted to PUBLIC, which here is the three roles: a role can drop its own entry
# from the default privileges (DROP OWNED), and all readers of an organization share one role.
GRANTS: Final = sql.SQL(
    """
    GRANT USAGE, CREATE ON SCHEMA public TO {admin};
    GRANT USAGE ON SCHEMA public TO {operator}, {reader};
    GRANT USAGE ON LANGUAGE plpgsql, sql TO {admin};
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT USAGE ON SCHEMAS TO PUBLIC;
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT SELECT ON TABLES TO PUBLIC;
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT SELECT ON SEQUENCES TO PUBLIC;
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin}
        GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {operator};
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT USAGE, SELECT ON SEQUENCES TO {operator};
    """
)
# On the database itself, from a connection to another one.
ACCESS: Final = sql.SQL(
    """
    REVOKE ALL ON DATABASE {db} FROM PUBLIC;
    REVOKE ALL ON DATABASE {db} FROM {admin}, {operator}, {reader};
    GRANT CONNECT, TEMPORARY, CREATE ON DATABASE {db} TO {admin};
    GRANT CONNECT, TEMPORARY ON DATABASE {db} TO {operator};
    GRANT CONNECT ON DATABASE {db} TO {reader};
    """
)


def grant_access(connection: psycopg.Connection, dbname: str, roles: Mapping[Role, str]) -> None:
    """Let exactly the three roles connect; called from a connection to another database."""
    connection.execute(ACCESS.format(db=sql.Identifier(dbname), **_identifiers(roles)))


def grant_inside(connection: psycopg.Connection, roles: Mapping[Role, str]) -> None:
    """Grant the roles their privileges in the database of the connection."""
    connection.execute(GRANTS.format(**_identifiers(roles)))


def open_database(connection: psycopg.Connection, dbname: str) -> None:
    """Allow as many connections as a tenant may have; before this only a superuser connects."""
    connection.execute(
        sql.SQL("ALTER DATABASE {} CONNECTION LIMIT {}").format(
            sql.Identifier(dbname), sql.Literal(settings.SQL.database_connections)
        )
    )


def _identifiers(roles: Mapping[Role, str]) -> dict[str, sql.Identifier]:
    return {str(role): sql.Identifier(name) for role, name in roles.items()}
