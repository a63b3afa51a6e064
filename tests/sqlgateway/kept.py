"""Databases that a test left as it found them, for the next one: making one takes long."""

from typing import Any, Final

import psycopg
from psycopg import sql

from common.principals import Scope
from common.scoping import within
from sqlgateway.clusters import servers
from sqlgateway.databases import provisioning
from sqlgateway.models import Database
from tests.throwaway import is_throwaway

MAX_READY: Final = 2
ROLES: Final = ("admin_role", "operator_role", "reader_role")
FIELDS: Final = ("dbname", *ROLES, "secrets", "hardening")
CATALOGS: Final = (
    "attribute",
    "cast",
    "class",
    "collation",
    "constraint",
    "conversion",
    "default_acl",
    "event_trigger",
    "extension",
    "foreign_server",
    "language",
    "largeobject_metadata",
    "namespace",
    "operator",
    "policy",
    "proc",
    "publication",
    "rewrite",
    "seclabel",
    "statistic_ext",
    "trigger",
    "ts_config",
    "type",
)
# What was written has a newer transaction; what was deleted is missing in the count.
SUMMARY: Final = "count(*), max(xmin::text::bigint) FROM pg_catalog"
OF_ROLES: Final = "SELECT oid FROM pg_authid WHERE rolname = ANY(%(roles)s)"
OF_ITSELF: Final = "SELECT oid FROM pg_database WHERE datname = current_database()"
STATE: Final = f"""
    {" UNION ALL ".join(f"SELECT '{name}', {SUMMARY}.pg_{name}" for name in CATALOGS)}
    UNION ALL SELECT 'database', {SUMMARY}.pg_database WHERE oid IN ({OF_ITSELF})
    UNION ALL SELECT 'authid', {SUMMARY}.pg_authid WHERE oid IN ({OF_ROLES})
    UNION ALL SELECT 'settings', {SUMMARY}.pg_db_role_setting
    WHERE setrole IN ({OF_ROLES}) OR setdatabase IN ({OF_ITSELF})
"""
# Schemas first, with what is inside; names as they were before anything was dropped.
MADE: Final = """
    WITH ours AS (SELECT oid FROM pg_authid WHERE rolname = ANY(%(roles)s))
    SELECT format('DROP EXTENSION IF EXISTS %%I CASCADE', extname) FROM pg_extension
    WHERE extname <> 'plpgsql'
    UNION ALL SELECT format('DROP SCHEMA IF EXISTS %%I CASCADE', nspname) FROM pg_namespace
    WHERE nspowner IN (TABLE ours) AND nspname !~ '^pg_'
    UNION ALL SELECT format('DROP %%s IF EXISTS %%s CASCADE', CASE relkind WHEN 'v' THEN 'VIEW'
        WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, oid::regclass)
    FROM pg_class WHERE relowner IN (TABLE ours) AND relkind IN ('r', 'p', 'v', 'm', 'S')
    UNION ALL SELECT format('DROP ROUTINE IF EXISTS %%s CASCADE', oid::regprocedure)
    FROM pg_proc WHERE proowner IN (TABLE ours)
    UNION ALL SELECT format('DROP TYPE IF EXISTS %%s CASCADE', oid::regtype)
    FROM pg_type WHERE typowner IN (TABLE ours) AND typtype IN ('d', 'e', 'r')
"""

State = list[tuple[Any, ...]]


class Kept:
    """The prepared databases of one process. Each test has rows of its own for them."""

    def __init__(self) -> None:
        self._ready: list[dict[str, Any]] = []
        self._states: dict[str, State] = {}
        self._left: list[dict[str, Any]] = []
        self._address: servers.ClusterAddress | None = None

    def give(self, scope: Scope) -> None:
        """Make one the scope's."""
        if not self._ready:
            provisioning.database_for(scope)
            with within(scope):
                database = Database.objects.select_related("cluster").get()
            self._states[database.dbname] = state_of(database)
            return
        database = Database(cluster=servers.default(), **self._ready.pop())
        database.save()
        database.hand_over(scope.organization_id, scope.environment_pk)

    def take(self, database: Database) -> None:
        """Take one back; it serves again if it came from here and can be made as it was.

        The others are dropped in the end: ext4 does not use a file's inode again for a minute or
        more, and a new database has hundreds of files that would each look at all of those.
        """
        if database.cluster.name != servers.DEFAULT:
            # That server ends with the tests.
            return
        self._address = servers.address_of(database.cluster)
        fields = {name: getattr(database, name) for name in FIELDS}
        state = self._states.get(database.dbname)
        is_full = len(self._ready) >= MAX_READY
        if is_full or state is None or not _is_again(database, state):
            self._states.pop(database.dbname, None)
            self._left.append(fields)
            return
        self._ready.append(fields)

    def drop_all(self) -> None:
        """Drop all of them, where the last one was, unless their server ends as well."""
        if self._address is None or is_throwaway():
            return
        databases = [*self._left, *self._ready]
        roles = [fields[name] for fields in databases for name in ROLES]
        with servers.administer(self._address) as connection:
            for fields in databases:
                name = sql.Identifier(fields["dbname"])
                connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
            for role in roles:
                connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


def state_of(database: Database) -> State:
    """Return what differs once anything in a database, or of its roles, was changed."""
    address = servers.address_of(database.cluster)
    with servers.administer(address, database.dbname) as inside:
        return _state(inside, database)


def _state(inside: psycopg.Connection, database: Database) -> State:
    return inside.execute(STATE.encode(), {"roles": list(database.roles.values())}).fetchall()


def _is_again(database: Database, state: State) -> bool:
    """Drop what a test has made in a database; return whether it is as it was, then."""
    address = servers.address_of(database.cluster)
    with servers.administer(address, database.dbname) as inside:
        if _state(inside, database) == state:
            return True
        made = inside.execute(MADE.encode(), {"roles": list(database.roles.values())}).fetchall()
        drops = "; ".join(["SET lock_timeout = '1s'", *(drop for (drop,) in made)])
        try:
            inside.execute(drops.encode())
        except psycopg.Error:
            return False
        return _state(inside, database) == state


KEPT: Final = Kept()
