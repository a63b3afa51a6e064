"""A tenant that means harm: every statement is refused, harmless, or cut off at its deadline."""

import pytest

from sqlgateway.connection import cache
from sqlgateway.hardening.cluster import complaints
from sqlgateway.provisioning import clusters
from sqlgateway.provisioning.tenant_databases import TEMPLATE
from tests.sqlgateway.support import Caller, as_provisioner

# Refused for an admin, so for everyone below it as well.
REFUSED = [
    # Becoming somebody else.
    "SET ROLE zonal_provisioner",
    "SET SESSION AUTHORIZATION zonal_provisioner",
    "SELECT set_config('role', 'zonal_provisioner', false)",
    "SELECT set_config('session_authorization', 'zonal_provisioner', false)",
    "DO $$ BEGIN EXECUTE 'SET ROLE zonal_provisioner'; END $$",
    "CREATE ROLE evil SUPERUSER",
    "ALTER ROLE CURRENT_USER SUPERUSER",
    "ALTER ROLE CURRENT_USER CREATEROLE",
    "ALTER ROLE CURRENT_USER CREATEDB",
    "ALTER ROLE CURRENT_USER REPLICATION",
    "ALTER ROLE CURRENT_USER BYPASSRLS",
    "ALTER ROLE CURRENT_USER CONNECTION LIMIT -1",
    "ALTER ROLE CURRENT_USER RENAME TO evil",
    "ALTER ROLE zonal_provisioner PASSWORD 'x'",
    "ALTER ROLE zonal_provisioner SET search_path = evil",
    "ALTER ROLE ALL SET statement_timeout = 1",
    "GRANT zonal_provisioner TO evil",
    "GRANT pg_read_all_data TO evil",
    "GRANT pg_execute_server_program TO CURRENT_USER",
    "REASSIGN OWNED BY zonal_provisioner TO CURRENT_USER",
    "DROP OWNED BY zonal_provisioner",
    "DROP ROLE zonal_provisioner",
    # The server's settings, state and life.
    "ALTER SYSTEM SET shared_preload_libraries = 'evil'",
    "SET temp_file_limit = -1",
    "ALTER ROLE CURRENT_USER SET temp_file_limit = -1",
    "SET log_min_messages = debug5",
    "ALTER ROLE CURRENT_USER SET log_min_messages = debug5",
    "SET session_preload_libraries = 'evil'",
    "SET session_replication_role = replica",
    "SET allow_system_table_mods = on",
    "SET zero_damaged_pages = on",
    "SET lc_messages = 'de_DE'",
    "CHECKPOINT",
    "SELECT pg_reload_conf()",
    "SELECT pg_rotate_logfile()",
    "SELECT pg_promote()",
    "SELECT pg_backup_start('x')",
    "SELECT pg_switch_wal()",
    "SELECT pg_create_restore_point('x')",
    "SELECT pg_stat_reset()",
    "SELECT pg_stat_reset_shared('bgwriter')",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT pg_cancel_backend(1)",
    "SELECT pg_log_backend_memory_contexts(pg_backend_pid())",
    # Files, programs, libraries, other servers.
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "COPY (SELECT 1) TO '/tmp/evil'",
    "CREATE TEMP TABLE e (t text); COPY e FROM '/etc/passwd'",
    "CREATE TEMP TABLE e (t text); COPY e FROM PROGRAM 'id'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_read_file('postgresql.conf', 0, 100)",
    "SELECT pg_read_binary_file('PG_VERSION')",
    "SELECT pg_ls_dir('.')",
    "SELECT pg_ls_logdir()",
    "SELECT pg_ls_waldir()",
    "SELECT pg_ls_tmpdir()",
    "SELECT pg_stat_file('PG_VERSION')",
    "SELECT pg_current_logfile()",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(1, '/tmp/evil')",
    "SELECT lo_create(0)",
    "SELECT lo_creat(-1)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT lo_open(1, 1)",
    "SELECT loread(0, 1)",
    "SELECT lowrite(0, 'x')",
    "SELECT lo_put(1, 0, 'x')",
    "SELECT lo_unlink(1)",
    "SELECT * FROM pg_largeobject",
    "LOAD '/tmp/evil.so'",
    "LOAD 'plugins/evil'",
    "CREATE FUNCTION f() RETURNS int LANGUAGE c AS '/tmp/evil', 'f'",
    "CREATE FUNCTION f() RETURNS text LANGUAGE internal AS 'pg_read_file'",
    "CREATE LANGUAGE plpython3u",
    "CREATE EXTENSION dblink",
    "CREATE EXTENSION postgres_fdw",
    "CREATE EXTENSION file_fdw",
    "CREATE EXTENSION adminpack",
    "CREATE EXTENSION pg_stat_statements",
    "CREATE EXTENSION pageinspect",
    "CREATE EXTENSION pg_buffercache",
    "CREATE EXTENSION isn",
    "CREATE FOREIGN DATA WRAPPER evil",
    "CREATE SERVER evil FOREIGN DATA WRAPPER postgres_fdw",
    "CREATE SUBSCRIPTION s CONNECTION 'host=/tmp' PUBLICATION p",
    "CREATE TABLESPACE evil LOCATION '/tmp'",
    "CREATE ACCESS METHOD evil TYPE TABLE HANDLER heap_tableam_handler",
    "CREATE EVENT TRIGGER evil ON ddl_command_start EXECUTE FUNCTION f()",
    "CREATE CAST (text AS json) WITHOUT FUNCTION",
    "CREATE OPERATOR CLASS evil FOR TYPE int USING btree AS STORAGE int",
    # Other databases and sessions.
    "CREATE DATABASE evil",
    f"CREATE DATABASE evil TEMPLATE {TEMPLATE}",
    f"DROP DATABASE {TEMPLATE}",
    f"ALTER DATABASE {TEMPLATE} ALLOW_CONNECTIONS true",
    "ALTER DATABASE postgres SET search_path = evil",
    "REVOKE ALL ON DATABASE postgres FROM PUBLIC",
    "GRANT CONNECT ON DATABASE postgres TO PUBLIC",
    "SELECT * FROM pg_database",
    "SELECT * FROM pg_roles",
    "SELECT * FROM pg_user",
    "SELECT * FROM pg_group",
    "SELECT * FROM pg_shadow",
    "SELECT * FROM pg_authid",
    "SELECT * FROM pg_auth_members",
    "SELECT * FROM pg_db_role_setting",
    "SELECT * FROM pg_shdepend",
    "SELECT * FROM pg_shdescription",
    "SELECT * FROM pg_shseclabel",
    "SELECT * FROM pg_tablespace",
    "SELECT * FROM pg_subscription",
    "SELECT * FROM pg_parameter_acl",
    "SELECT * FROM pg_replication_origin",
    "SELECT * FROM pg_stat_activity",
    "SELECT * FROM pg_stat_database",
    "SELECT * FROM pg_stat_ssl",
    "SELECT * FROM pg_stat_gssapi",
    "SELECT * FROM pg_stat_replication",
    "SELECT * FROM pg_replication_slots",
    "SELECT * FROM pg_prepared_xacts",
    "SELECT * FROM pg_locks",
    "SELECT * FROM pg_stat_progress_vacuum",
    "SELECT * FROM pg_stat_progress_create_index",
    "SELECT * FROM pg_stat_progress_copy",
    "SELECT * FROM pg_hba_file_rules",
    "SELECT * FROM pg_file_settings",
    "SELECT * FROM pg_config",
    "SELECT * FROM pg_user_mappings",
    "SELECT pg_stat_get_activity(NULL)",
    "SELECT pg_stat_get_backend_pid(1)",
    "SELECT pg_stat_get_backend_activity(1)",
    "SELECT pg_stat_get_backend_dbid(1)",
    "SELECT pg_stat_get_db_numbackends(1)",
    "SELECT pg_stat_get_progress_info('VACUUM')",
    "SELECT pg_lock_status()",
    "SELECT pg_blocking_pids(1)",
    "SELECT pg_prepared_xact()",
    "SELECT pg_tablespace_databases(1663)",
    "SELECT pg_tablespace_location(1663)",
    "SELECT inet_server_addr()",
    "SHOW data_directory",
    "SHOW hba_file",
    "SHOW unix_socket_directories",
    "SELECT current_setting('config_file')",
    # Places that tenants share.
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_advisory_xact_lock(1, 2)",
    "SELECT pg_try_advisory_lock(1)",
    "SELECT pg_try_advisory_xact_lock_shared(1)",
    "SELECT pg_notify('a', 'b')",
    "SELECT pg_export_snapshot()",
    "SELECT pg_logical_emit_message(false, 'a', 'b')",
    "SELECT pg_create_logical_replication_slot('a', 'pgoutput')",
    "SELECT pg_replication_origin_create('a')",
    # SQL inside a text, out of sight.
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "SELECT query_to_xmlschema('SELECT 1', true, true, '')",
    "SELECT table_to_xml('pg_class', true, true, '')",
    "SELECT schema_to_xml('pg_catalog', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT ts_stat('SELECT 1')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT 1')",
    # The catalogue and what belongs to the platform.
    "UPDATE pg_class SET relowner = 10",
    "DELETE FROM pg_proc",
    "UPDATE pg_proc SET proacl = NULL",
    "BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE; COMMIT",
    "BEGIN; LOCK TABLE pg_database; COMMIT",
    "DROP SCHEMA public",
    "ALTER SCHEMA public OWNER TO CURRENT_USER",
    "ALTER FUNCTION pg_catalog.pg_notify(text, text) OWNER TO CURRENT_USER",
    "CREATE FUNCTION pg_catalog.evil() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TABLE pg_catalog.evil (id int)",
    "CREATE TABLE information_schema.evil (id int)",
    "CREATE SCHEMA pg_evil",
    "REINDEX DATABASE",
    "REINDEX SYSTEM",
    "BEGIN; CREATE TABLE e (); PREPARE TRANSACTION 'evil'",
    "ALTER DEFAULT PRIVILEGES FOR ROLE zonal_provisioner GRANT ALL ON TABLES TO PUBLIC",
    "GRANT ALL ON FUNCTION pg_catalog.pg_notify(text, text) TO PUBLIC",
    "GRANT SELECT ON pg_authid TO PUBLIC",
]
# Allowed, since they reach nothing but the tenant's own.
HARMLESS = [
    "RESET ROLE",
    "RESET SESSION AUTHORIZATION",
    "SET ROLE NONE",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "NOTIFY a, 'b'",
    "LISTEN a",
    "VACUUM FULL pg_class",
    "DISCARD ALL",
    "SET statement_timeout = 0",
    "SET local_preload_libraries = 'evil'",
    "EXPLAIN ANALYZE SELECT 1",
]
# Nothing that a reader or, of the first ones, an operator may do.
NOT_FOR_READERS = [
    "CREATE TEMP TABLE e (id int)",
    "CREATE TABLE e (id int)",
    "CREATE SCHEMA e",
    "CREATE FUNCTION e() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "DO $$ BEGIN PERFORM 1; END $$",
    "INSERT INTO t VALUES (2)",
    "UPDATE t SET id = 3",
    "DELETE FROM t",
    "TRUNCATE t",
    "DROP TABLE t",
    "ALTER TABLE t ADD COLUMN e int",
    "CREATE INDEX ON t (id)",
    "SELECT * FROM t FOR UPDATE",
    "WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone",
    "COPY t FROM STDIN",
    "SELECT nextval('s')",
    "SELECT setval('s', 9)",
    "REFRESH MATERIALIZED VIEW v",
    "COMMENT ON TABLE t IS 'e'",
    "CREATE EXTENSION hstore",
]


@pytest.fixture
def world(alice: Caller) -> Caller:
    """Return Alice with a table, a sequence and a view."""
    made = alice.sql(
        "CREATE TABLE t (id int); INSERT INTO t VALUES (1); CREATE SEQUENCE s;"
        "CREATE MATERIALIZED VIEW v AS SELECT 1 AS one"
    )
    assert made.status == 200
    return alice


def _told_of() -> set[str]:
    """Return what this server's packager lets anybody install, beyond our own list.

    A server of one's own is not changed; the platform complains about these when it meets it.
    """
    with clusters.administer(clusters.address_of(clusters.default())) as connection:
        sentences = list(complaints(connection))
    names = [sentence.split()[2] for sentence in sentences if " is trusted; " in sentence]
    return {f"CREATE EXTENSION {name}" for name in names}


def test_harm_is_refused(world: Caller) -> None:
    told_of = _told_of()
    for text in REFUSED:
        if text in told_of:
            continue
        answer = world.sql(text)
        assert answer.status in {400, 403}, (text, answer.body)
        assert answer.code == "sql_error", (text, answer.body)
    assert world.value("SELECT count(*) FROM t") == 1


def test_harm_is_refused_to_readers_too(world: Caller) -> None:
    bob = world.be("reader")
    for text in REFUSED:
        for given in (text, f"SET default_transaction_read_only = off; {text}"):
            answer = bob.sql(given)
            assert answer.status in {400, 403}, (given, answer.body)
    assert bob.value("SELECT count(*) FROM t") == 1


def test_allowed_statements_do_not_reach_another_tenant(world: Caller) -> None:
    for text in HARMLESS:
        assert world.sql(text).status == 200, text
    for text in ("SELECT pg_notify('a', 'b')", "SELECT * FROM pg_authid"):
        assert world.sql(text).status == 403
    assert world.value("SELECT current_user = session_user") is True


def test_a_reader_changes_nothing_even_out_of_its_read_only_transaction(world: Caller) -> None:
    bob = world.be("reader")
    for text in NOT_FOR_READERS:
        for given in (text, f"BEGIN READ WRITE; {text}; COMMIT"):
            answer = bob.sql(given)
            assert answer.status == 403, (given, answer.body)
    assert world.value("SELECT count(*) FROM t") == 1


def test_a_reader_locks_no_table_against_others(world: Caller) -> None:
    bob = world.be("reader")
    for mode in ("ROW EXCLUSIVE", "SHARE", "EXCLUSIVE", "ACCESS EXCLUSIVE"):
        answer = bob.sql(f"BEGIN READ WRITE; LOCK TABLE t IN {mode} MODE; COMMIT")
        assert answer.body["sqlstate"] == "42501", mode


def test_a_reader_can_hand_on_nothing(world: Caller) -> None:
    bob = world.be("reader")

    bob.sql("BEGIN READ WRITE; GRANT ALL ON t TO PUBLIC; COMMIT")

    assert bob.value("SELECT has_table_privilege('t', 'INSERT')") is False


def test_a_reader_is_stopped_by_privileges_and_not_by_a_setting(world: Caller) -> None:
    for text in NOT_FOR_READERS:
        answer = world.be("reader").sql(f"BEGIN READ WRITE; {text}; COMMIT")
        assert answer.body["sqlstate"] == "42501", (text, answer.body)


def test_a_tenants_roles_can_enter_no_other_database(world: Caller, charlie: Caller) -> None:
    charlie.value("SELECT 1")
    others = ("postgres", "template1", TEMPLATE, charlie.database.dbname)
    for role in world.database.roles.values():
        for database in others:
            ((may,),) = as_provisioner(
                "SELECT has_database_privilege(%s, %s, 'CONNECT')", [role, database]
            )
            assert may is False, database


def test_a_tenants_roles_are_members_of_nothing_and_own_no_database(world: Caller) -> None:
    names = list(world.database.roles.values())

    attributes = as_provisioner(
        "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, rolinherit "
        "FROM pg_roles WHERE rolname = ANY(%s)",
        [names],
    )
    memberships = as_provisioner(
        "SELECT 1 FROM pg_auth_members WHERE member::regrole::text = ANY(%s)", [names]
    )
    owned = as_provisioner(
        "SELECT 1 FROM pg_database WHERE pg_get_userbyid(datdba) = ANY(%s)", [names]
    )

    assert attributes == [(False,) * 6] * 3
    assert memberships == owned == []


def test_settings_kept_by_a_role_are_outranked(world: Caller) -> None:
    world.sql("DO $$ BEGIN EXECUTE 'ALTER ROLE CURRENT_USER SET search_path = evil'; END $$")
    world.sql("DO $$ BEGIN EXECUTE 'ALTER ROLE CURRENT_USER SET statement_timeout = 1'; END $$")
    world.sql("DO $$ BEGIN EXECUTE 'ALTER ROLE CURRENT_USER SET TimeZone = Japan'; END $$")

    cache.CACHE.clear()

    assert world.value("SHOW search_path") == '"$user",public'
    assert world.value("SHOW statement_timeout") == "30500ms"
    assert world.value("SHOW TimeZone") == "UTC"


def test_reset_all_takes_none_of_the_platforms_settings(world: Caller) -> None:
    world.sql("DO $$ BEGIN EXECUTE 'ALTER ROLE CURRENT_USER RESET ALL'; END $$")

    cache.CACHE.clear()

    assert world.value("SHOW temp_file_limit") == "1GB"
    assert world.value("SHOW log_min_messages") == "fatal"
    assert world.value("SHOW log_min_error_statement") == "panic"


def test_a_planted_function_in_the_path_is_not_the_gateways(world: Caller) -> None:
    """The gateway's own look-ups name everything in full, and run as the tenant."""
    world.sql(
        "CREATE TYPE mood AS ENUM ('sad');"
        "CREATE FUNCTION public.evil(oid, oid) RETURNS bool LANGUAGE sql AS 'SELECT false';"
        "CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = public.evil)"
    )

    answer = world.sql("SET search_path = public, pg_catalog; SELECT 'sad'::public.mood AS m")

    assert answer.body["columns"][0]["type"] == "mood"


def test_a_security_definer_function_has_only_its_owners_privileges(world: Caller) -> None:
    made = world.sql(
        "CREATE FUNCTION steal() RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER AS "
        "$$ BEGIN RETURN QUERY EXECUTE 'SELECT rolpassword FROM pg_authid'; END $$"
    )
    assert made.status == 200

    for someone in (world, world.be("operator"), world.be("reader")):
        assert someone.sql("SELECT steal()").body["sqlstate"] == "42501"


def test_a_notification_reaches_no_other_database(world: Caller, charlie: Caller) -> None:
    charlie.sql("LISTEN a")

    world.sql("NOTIFY a, 'secret'")

    assert "secret" not in str(charlie.sql("LISTEN a; SELECT 1").body)
