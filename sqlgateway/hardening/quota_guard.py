"""Stop a database from growing, even if its admin, who owns the tables, resists.

Revoked privileges are not enough, because an owner can grant them to itself again; a session can
change settings as well. So while an environment is over its disk quota, every table has a trigger
before INSERT and UPDATE, and an event trigger refuses DDL except DROP. Both belong to the platform.
The tenant can neither drop nor disable them, because that is DDL. DELETE, TRUNCATE, DROP and VACUUM
are allowed.

The platform's own tables must accept the record of a DELETE with an Idempotency-Key. The tenant can
write to them, so they may grow by a limited number of bytes.

The functions have a search_path of their own, so that they do not use operators of the tenant. Only
the platform may create triggers with them: otherwise a tenant could create a trigger that never
fires, and its table would seem to be guarded.

Creating a trigger does not run code of the tenant.
"""

import time
from typing import Final

import psycopg
import structlog

from sqlgateway.names import ROLE_PREFIX

# Class ZQ is not PostgreSQL's; the gateway answers it with 403 quota_exceeded.
SQLSTATE: Final = "ZQ001"
GUARD_NAME: Final = "zonal_over_quota"
PLATFORM_SCHEMA: Final = "zonal"
# Bytes by which each of the platform's own tables may grow: thousands of usual records.
ALLOWANCE_BYTES: Final = 16 * 1024 * 1024
# In pg_catalog, so that dumps do not contain the functions and tenants cannot replace them. A row
# trigger with an argument permits its table to grow to that size.
REFUSAL: Final = f"""
CREATE OR REPLACE FUNCTION pg_catalog.{GUARD_NAME}() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
BEGIN
    IF tg_nargs = 1 AND pg_total_relation_size(tg_relid) + octet_length(new::text)
        <= tg_argv[0]::bigint THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION USING ERRCODE = '{SQLSTATE}', MESSAGE = 'The disk quota is used up',
        HINT = 'DELETE, TRUNCATE and DROP work.';
END $$
"""
DDL_REFUSAL: Final = f"""
CREATE OR REPLACE FUNCTION pg_catalog.{GUARD_NAME}_ddl() RETURNS event_trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
BEGIN
    IF current_setting('is_superuser') = 'off' AND tg_tag NOT IN (
        'DROP TABLE', 'DROP INDEX', 'DROP VIEW', 'DROP MATERIALIZED VIEW', 'DROP SCHEMA',
        'DROP SEQUENCE', 'DROP TYPE', 'DROP DOMAIN', 'DROP FUNCTION', 'DROP PROCEDURE',
        'DROP ROUTINE', 'DROP AGGREGATE', 'DROP STATISTICS', 'DROP EXTENSION'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = '{SQLSTATE}', MESSAGE = 'The disk quota is used up',
            HINT = 'DELETE, TRUNCATE and DROP work.';
    END IF;
END $$
"""
# Takes effect immediately, also where a lock prevents a trigger from being dropped.
PERMISSION: Final = f"""
CREATE OR REPLACE FUNCTION pg_catalog.{GUARD_NAME}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN new;
END $$
"""
OWN: Final = (
    f"REVOKE EXECUTE ON FUNCTION pg_catalog.{GUARD_NAME}(), pg_catalog.{GUARD_NAME}_ddl()"
    " FROM PUBLIC"
)
CREATE_EVENT_TRIGGER: Final = (
    f"CREATE EVENT TRIGGER {GUARD_NAME} ON ddl_command_start"
    f" EXECUTE FUNCTION pg_catalog.{GUARD_NAME}_ddl()"
)
HAS_EVENT_TRIGGER: Final = "SELECT FROM pg_event_trigger WHERE evtname = %s"
# A tenant can create a schema of the platform's name before the platform does; tables of tenants in
# it must not grow.
TABLES: Final = """
SELECT relation.oid::regclass::text, pg_total_relation_size(relation.oid),
    schema.nspname = %(platform)s
        AND NOT starts_with(pg_get_userbyid(relation.relowner), %(tenants)s)
FROM pg_class AS relation
JOIN pg_namespace AS schema ON schema.oid = relation.relnamespace
WHERE relation.relkind IN ('r', 'p') AND relation.relpersistence <> 't'
    AND schema.nspname NOT LIKE 'pg\\_%%' AND schema.nspname <> 'information_schema'
    AND %(guarded)s = EXISTS (
        SELECT FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
        WHERE tgrelid = relation.oid AND proname = %(name)s
            AND pronamespace = 'pg_catalog'::regnamespace AND tgparentid = 0 AND tgenabled = 'A'
    )
"""
GUARD: Final = (
    "CREATE OR REPLACE TRIGGER {name} BEFORE INSERT OR UPDATE ON {table}"
    " FOR EACH {level} EXECUTE FUNCTION pg_catalog.{name}({argument});"
    " ALTER TABLE ONLY {table} ENABLE ALWAYS TRIGGER {name}"
)
# A tenant over its quota must not prevent a trigger by writing to the table all the time.
END_WRITERS: Final = """
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE relation = %s::regclass AND datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type = 'client backend' AND mode NOT IN ('AccessShareLock', 'RowShareLock')
"""
LOCK_TIMEOUT: Final = "SET lock_timeout = '1s'"
# For all tables of a database: locks of one tenant must not delay the measurement of others.
BUDGET_S: Final = 10.0

log = structlog.get_logger(__name__)


def impose(inside: psycopg.Connection) -> bool:
    """Guard the database of the administrator's connection.

    Tables that were created since the last call are guarded as well. A session that writes to a
    table, and so prevents its trigger, is terminated.
    Returns False if tables are missing; the caller should try again.
    """
    inside.execute(REFUSAL.encode())
    inside.execute(DDL_REFUSAL.encode())
    inside.execute(OWN.encode())
    # First, so that no table is created while the existing ones are guarded.
    if inside.execute(HAS_EVENT_TRIGGER, [GUARD_NAME]).fetchone() is None:
        inside.execute(CREATE_EVENT_TRIGGER.encode())
    return _each(inside, GUARD, guarded=False, ends_writers=True)


def lift(inside: psycopg.Connection) -> bool:
    """Permit the database to grow again; do nothing if it is not guarded.

    Returns False if triggers could not be dropped yet; they have no effect.
    """
    inside.execute(f"DROP EVENT TRIGGER IF EXISTS {GUARD_NAME}".encode())
    if inside.execute("SELECT FROM pg_proc WHERE proname = %s", [GUARD_NAME]).fetchone() is None:
        return True
    inside.execute(PERMISSION.encode())
    return _each(inside, "DROP TRIGGER IF EXISTS {name} ON {table}", guarded=True)


def _each(
    inside: psycopg.Connection, statement: str, *, guarded: bool, ends_writers: bool = False
) -> bool:
    is_complete = True
    deadline = time.monotonic() + BUDGET_S
    inside.execute(LOCK_TIMEOUT)
    owners = {"platform": PLATFORM_SCHEMA, "tenants": ROLE_PREFIX}
    found = inside.execute(TABLES, {"guarded": guarded, "name": GUARD_NAME, **owners}).fetchall()
    for table, size_bytes, is_own in found:
        if time.monotonic() > deadline:
            log.warning("sql_quota_guard_incomplete")
            return False
        level, argument = ("ROW", size_bytes + ALLOWANCE_BYTES) if is_own else ("STATEMENT", "")
        text = statement.format(name=GUARD_NAME, table=table, level=level, argument=argument)
        is_done = _attempt(inside, text)
        if not is_done and ends_writers:
            inside.execute(END_WRITERS, [table])
            is_done = _attempt(inside, text)
        is_complete = is_complete and is_done
    return is_complete


def _attempt(inside: psycopg.Connection, text: str) -> bool:
    try:
        # One transaction for each table: a tenant that holds one lock delays one table.
        inside.execute(text.encode())
    except (psycopg.errors.LockNotAvailable, psycopg.errors.UndefinedTable) as exc:
        log.info("sql_quota_guard_waits", kind=type(exc).__name__)
        return False
    return True
