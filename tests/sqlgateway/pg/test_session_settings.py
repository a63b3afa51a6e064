"""What a role keeps for itself (ALTER ROLE ... SET) changes none of its later sessions."""

import structlog

from sqlgateway.clusters import servers
from sqlgateway.pg import pool
from sqlgateway.pg.session_settings import CLUSTER_SETTINGS, LIMIT_BYTES, startup_options
from tests.sqlgateway.support import Caller, as_provisioner

# Of a text, another value cannot be derived from pg_settings.
TEXTS = {
    "DateStyle": "SQL, DMY",
    "TimeZone": "Japan",
    "application_name": "evil",
    "client_encoding": "LATIN1",
    "createrole_self_grant": "set, inherit",
    "default_table_access_method": "heap",
    "default_tablespace": "pg_default",
    "default_text_search_config": "pg_catalog.german",
    "lc_monetary": "POSIX",
    "lc_numeric": "POSIX",
    "lc_time": "POSIX",
    "local_preload_libraries": "nonesuch",
    "plpgsql.extra_errors": "all",
    "plpgsql.extra_warnings": "all",
    "restrict_nonsystem_relation_kind": "view, foreign-table",
    "search_path": "evil",
    "temp_tablespaces": "pg_default",
    "timezone_abbreviations": "Australia",
}
# PostgreSQL cannot keep these for a role.
UNKEPT = {
    "ignore_system_indexes",
    "post_auth_delay",
    "transaction_isolation",
    "transaction_deferrable",
}
KEEP = """
DO $do$
DECLARE
    known record;
    other text;
BEGIN
    FOR known IN SELECT * FROM pg_settings WHERE context IN ('user', 'backend') LOOP
        other := CASE known.vartype
            WHEN 'bool' THEN CASE known.setting WHEN 'on' THEN 'off' ELSE 'on' END
            WHEN 'enum' THEN (SELECT max(val) FROM unnest(known.enumvals) AS val
                              WHERE val <> known.setting)
            WHEN 'string' THEN TEXTS::json ->> known.name
            ELSE CASE known.setting WHEN known.max_val THEN known.min_val ELSE known.max_val END
        END;
        -- Built without a second value.
        CONTINUE WHEN other IS NULL;
        BEGIN
            EXECUTE format('ALTER ROLE CURRENT_USER SET %I = %s', known.name,
                CASE WHEN known.name IN ('DateStyle', 'createrole_self_grant')
                     THEN other ELSE quote_literal(other) END);
        EXCEPTION WHEN OTHERS THEN
            RAISE WARNING '%: %', known.name, sqlerrm;
        END;
    END LOOP;
END
$do$
"""
SETTINGS = "SELECT name, setting, reset_val FROM pg_settings ORDER BY name"
LOAD = "CREATE EXTENSION IF NOT EXISTS pg_trgm; SELECT similarity('a', 'b')"


def _kept(someone: Caller) -> dict[str, str]:
    rows = as_provisioner(
        "SELECT split_part(kept, '=', 1), kept FROM pg_db_role_setting, unnest(setconfig) AS kept "
        "WHERE setrole::regrole::text = %s",
        [someone.database.roles["admin" if someone.role == "admin" else "reader"]],
    )
    return dict(rows)


def test_no_setting_that_the_server_knows_lasts_for_a_role(alice: Caller) -> None:
    assert alice.sql(LOAD).status == 200
    pool.CONNECTION_POOL.clear()
    before = alice.sql(f"{LOAD}; DO $$ BEGIN END $$; {SETTINGS}").rows
    ours = set(_kept(alice))

    literal = "'" + str(TEXTS).replace("'", '"') + "'"
    answer = alice.sql(f"{LOAD}; {KEEP.replace('TEXTS', literal)}")

    refused = {
        notice["message"].split(":")[0]
        for notice in answer.body["notices"]
        if notice["severity"] == "WARNING"
    }
    assert refused <= UNKEPT
    assert len(set(_kept(alice)) - ours) > 130
    pool.CONNECTION_POOL.clear()
    for text in (LOAD, f"{LOAD}; RESET ALL"):
        after = alice.sql(f"{text}; DO $$ BEGIN END $$; {SETTINGS}").rows
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        assert changed == [], text


def test_options_fit_into_the_start_up_packet(alice: Caller) -> None:
    address = servers.address_of(servers.default())

    options = startup_options(address, "reader")

    assert len(options) < LIMIT_BYTES * 0.6
    assert "-cdefault_transaction_isolation=read\\ committed " in options


def test_each_library_of_an_extension_is_found(alice: Caller) -> None:
    """The server logs each that is not as an error."""
    address = servers.address_of(servers.default())
    CLUSTER_SETTINGS.forget(address)
    with structlog.testing.capture_logs() as logs:
        CLUSTER_SETTINGS.of(address)
    assert [line["event"] for line in logs] == ["sql_settings_read"]


def test_a_setting_that_an_upgraded_server_dropped_fails_one_request_only(alice: Caller) -> None:
    alice.value("SELECT 1")
    pool.CONNECTION_POOL.clear()
    CLUSTER_SETTINGS.of(servers.address_of(servers.default()))["dropped_setting"] = "1"

    assert alice.sql("SELECT 1").code == "sql_unavailable"
    assert alice.value("SELECT 1") == 1
