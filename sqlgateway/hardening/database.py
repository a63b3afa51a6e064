"""A tenant's database: its ACL, its roles' privileges, and what PUBLIC loses in the catalogues.

The server's catalogues would show other tenants, or let a role do more than its own rights permit.
"""

import fnmatch
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
# Relations that all databases of the server share, or that describe all of its sessions. Catalogues
# marked relisshared are revoked as well, also those that later versions add.
REVOKED_RELATIONS: Final = (
    "pg_roles",
    "pg_user",
    "pg_shadow",
    "pg_group",
    "pg_locks",
    "pg_prepared_xacts",
    "pg_stat_activity",
    "pg_stat_database",
    "pg_stat_database_conflicts",
    "pg_stat_ssl",
    "pg_stat_gssapi",
    "pg_stat_replication",
    "pg_stat_replication_slots",
    "pg_stat_wal_receiver",
    "pg_stat_subscription",
    "pg_stat_subscription_stats",
    "pg_replication_slots",
    "pg_replication_origin_status",
    "pg_stat_archiver",
    "pg_stat_bgwriter",
    "pg_stat_wal",
    "pg_stat_checkpointer",
    "pg_stat_io",
    "pg_stat_slru",
    "pg_stat_recovery_prefetch",
    "pg_user_mappings",
    "pg_aios",
    "pg_hba_file_rules",
    "pg_ident_file_mappings",
    "pg_file_settings",
    "pg_config",
    "pg_shmem_allocations",
    "pg_backend_memory_contexts",
)
# LIKE patterns over pg_proc.proname.
REVOKED_FUNCTIONS: Final = (
    # Other sessions and databases.
    "pg_stat_get_activity",
    "pg_stat_get_backend\\_%",
    "pg_stat_get_db\\_%",
    "pg_lock_status",
    "pg_stat_get_progress_info",
    "pg_stat_get_wal%",
    "pg_stat_get_subscription%",
    # About the whole server; the views that use them are revoked as well.
    "pg_stat_get_io",
    "pg_stat_get_bgwriter\\_%",
    "pg_stat_get_checkpointer\\_%",
    "pg_stat_get_buf\\_%",
    "pg_stat_get_slru",
    "pg_stat_get_archiver",
    "pg_tablespace_size",
    "pg_stat_get_replication_slot",
    "pg_get_replication_slots",
    "pg_prepared_xact",
    "pg_show_replication_origin_status",
    "pg_blocking_pids",
    "pg_safe_snapshot_blocking_pids",
    "pg_cancel_backend",
    "pg_terminate_backend",
    "pg_tablespace_databases",
    "pg_tablespace_location",
    "pg_isolation_test_session_is_blocked",
    # Resources shared with other tenants: lock tables, large objects, WAL. Advisory locks fill the
    # lock table of the server between two checks of lock_guard.py, which then cannot work either.
    "pg_advisory\\_%",
    "pg_try_advisory\\_%",
    "pg_export_snapshot",
    "lo\\_%",
    "loread",
    "lowrite",
    "pg_logical_emit_message",
    # Functions that run SQL from a text.
    "query_to_xml%",
    "cursor_to_xml%",
    "table_to_xml%",
    "schema_to_xml%",
    "database_to_xml%",
    "ts_stat",
    "ts_rewrite",
    # The server's files, address and state.
    "pg_ls\\_%",
    "pg_read\\_%",
    "pg_stat_file",
    "pg_current_logfile",
    "pg_control\\_%",
    "inet_server_addr",
    "inet_server_port",
    "pg_walfile%",
    "pg_current_wal%",
    "pg_last\\_%",
    "pg_hba_file_rules",
    "pg_show_all_file_settings",
    "pg_config",
)
# Revoked by earlier versions; it does no more than the statement NOTIFY.
GRANT_AGAIN: Final = b"GRANT EXECUTE ON FUNCTION pg_catalog.pg_notify(text, text) TO PUBLIC"
REVOKE_CATALOG: Final = """
DO $hardening$
DECLARE statement text;
BEGIN
    EXECUTE 'REVOKE ALL ON SCHEMA public FROM PUBLIC';
    EXECUTE 'REVOKE ALL ON LANGUAGE plpgsql, sql FROM PUBLIC';
    FOR statement IN
        SELECT format('REVOKE ALL ON TABLE pg_catalog.%I FROM PUBLIC', relation.relname)
        FROM pg_class AS relation
        WHERE relation.relnamespace = 'pg_catalog'::regnamespace
          AND relation.relkind IN ('r', 'v')
          AND (relation.relisshared
               OR relation.relname = ANY (string_to_array(current_setting('zonal.relations'), ','))
               OR relation.relname LIKE 'pg\\_stat\\_progress\\_%')
        UNION ALL
        SELECT format('REVOKE ALL ON %s %s FROM PUBLIC',
                      CASE routine.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END,
                      routine.oid::regprocedure)
        FROM pg_proc AS routine
        WHERE routine.pronamespace = 'pg_catalog'::regnamespace
          AND routine.prokind IN ('f', 'p')
          AND routine.proname LIKE ANY (string_to_array(current_setting('zonal.functions'), ','))
    LOOP
        EXECUTE statement;
    END LOOP;
END
$hardening$
"""


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


def harden_catalog(connection: psycopg.Connection) -> None:
    """Revoke the privileges in the database of the administrator's connection."""
    with connection.transaction():
        for name, values in (("relations", REVOKED_RELATIONS), ("functions", REVOKED_FUNCTIONS)):
            connection.execute(
                "SELECT set_config(%s, %s, true)", [f"zonal.{name}", ",".join(values)]
            )
        connection.execute(REVOKE_CATALOG)
        connection.execute(GRANT_AGAIN)


def is_revoked(name: str) -> bool:
    """True if no tenant may use the relation or function of PostgreSQL of this name."""
    if name in REVOKED_RELATIONS or name.startswith("pg_stat_progress_"):
        return True
    return any(
        fnmatch.fnmatchcase(name, pattern.replace("\\_", "_").replace("%", "*"))
        for pattern in REVOKED_FUNCTIONS
    )


def _identifiers(roles: Mapping[Role, str]) -> dict[str, sql.Identifier]:
    return {str(role): sql.Identifier(name) for role, name in roles.items()}
