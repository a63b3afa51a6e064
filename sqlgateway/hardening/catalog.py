"""Revoke privileges on the server's catalogues from PUBLIC.

They would show other tenants, or let a role do more than its own rights permit.
"""

from typing import Final

import psycopg

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
    # Resources shared with other tenants: lock tables, the notification queue, large objects, WAL.
    "pg_notify",
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

REVOKE: Final = """
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


def harden_catalog(connection: psycopg.Connection) -> None:
    """Revoke the privileges in the database of the administrator's connection."""
    with connection.transaction():
        for name, values in (("relations", REVOKED_RELATIONS), ("functions", REVOKED_FUNCTIONS)):
            connection.execute(
                "SELECT set_config(%s, %s, true)", [f"zonal.{name}", ",".join(values)]
            )
        connection.execute(REVOKE)
