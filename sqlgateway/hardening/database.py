"""A tenant's database: its ACL, and its three roles' privileges inside."""

from collections.abc import Mapping
from typing import Final

import psycopg
from django.conf import settings
from psycopg import sql

from common.permissions import Role

# Inside the database. Schema public belongs to pg_database_owner, which is not a tenant's role. The
# schema zonal is created now, because an admin that creates it would own its contents.
INSIDE: Final = sql.SQL(
    """
    CREATE SCHEMA IF NOT EXISTS zonal;
    GRANT USAGE, CREATE ON SCHEMA public TO {admin};
    GRANT USAGE ON SCHEMA public TO {operator}, {reader};
    GRANT USAGE ON LANGUAGE plpgsql, sql TO {admin};
    """
)
# Default privileges. Those of readers are granted to PUBLIC, which is the three roles here: a role
# can drop its own entries (DROP OWNED), and all readers of an organization share one role.
DEFAULTS: Final = sql.SQL(
    """
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT USAGE ON SCHEMAS TO PUBLIC;
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT SELECT ON TABLES TO PUBLIC;
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT SELECT ON SEQUENCES TO PUBLIC;
    """
)
OPERATORS_DEFAULTS: Final = sql.SQL(
    """
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin}
        GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {operator};
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT USAGE, SELECT ON SEQUENCES TO {operator};
    """
)
# A function that runs with its owner's privileges (SECURITY DEFINER) may write, so readers cannot
# call an admin's functions until they are granted. Operators can: defaults and constraints of a
# table call functions as the role that writes. Not limited to a schema, because such a REVOKE would
# not change the general default.
FUNCTION_DEFAULTS: Final = sql.SQL(
    """
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
    ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT EXECUTE ON FUNCTIONS TO {operator};
    """
)
# On the database itself, from a connection to another database.
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
    """Let only the three roles connect; called on a connection to another database."""
    connection.execute(ACCESS.format(db=sql.Identifier(dbname), **_identifiers(roles)))


def grant_inside(connection: psycopg.Connection, roles: Mapping[Role, str]) -> None:
    """Grant the roles their privileges in the database of the connection."""
    for statements in (INSIDE, DEFAULTS, OPERATORS_DEFAULTS):
        connection.execute(statements.format(**_identifiers(roles)))


def restrict_functions(connection: psycopg.Connection, roles: Mapping[Role, str]) -> None:
    """Keep readers from calling an admin's future functions; for new databases only.

    In an older database readers may rely on functions that its admin will create.
    """
    connection.execute(FUNCTION_DEFAULTS.format(**_identifiers(roles)))


def restore_defaults(connection: psycopg.Connection, roles: Mapping[Role, str], role: Role) -> None:
    """Restore the default privileges that a role dropped, but not those that an admin revoked.

    An admin that drops its own (DROP OWNED) drops those of all roles, and all of its functions.
    """
    if role == "operator":
        connection.execute(OPERATORS_DEFAULTS.format(**_identifiers(roles)))
    elif role == "admin":
        grant_inside(connection, roles)
        restrict_functions(connection, roles)


def open_database(connection: psycopg.Connection, dbname: str) -> None:
    """Set the limit of connections; until then only a superuser can connect."""
    connection.execute(
        sql.SQL("ALTER DATABASE {} CONNECTION LIMIT {}").format(
            sql.Identifier(dbname), sql.Literal(settings.SQL.database_connections)
        )
    )


def _identifiers(roles: Mapping[Role, str]) -> dict[str, sql.Identifier]:
    return {str(role): sql.Identifier(name) for role, name in roles.items()}
