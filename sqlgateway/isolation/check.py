"""Run the harmless attacks against a server, in two databases that are created for this.

The attacks run as roles of tenants, but are not sent by HTTP: this checks the server and the
hardening. Databases of real tenants are neither read nor changed.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
import structlog
from psycopg import pq, sql
from psycopg.conninfo import conninfo_to_dict

from common.commands import CommandRefused
from common.errors import PlatformError
from common.permissions import Role
from sqlgateway.clusters.placements import Login, Placement, placement_of
from sqlgateway.clusters.servers import address_of, administer
from sqlgateway.databases import stock, tenant_databases
from sqlgateway.databases.tenant_databases import TEMPLATE
from sqlgateway.hardening.tenant_roles import end_idle_sessions, restore_role
from sqlgateway.isolation.attacks import REFUSED, Attack, AttackStep, Result, filled, load, subjects
from sqlgateway.models import Cluster, Database
from sqlgateway.pg import pool
from sqlgateway.pg.message_stream import ConnectionLost, ResultOverflow
from sqlgateway.pg.pool import LoginRefused
from sqlgateway.pg.tenant_connection import TenantConnection

log = structlog.get_logger(__name__)

# Each tenant's admin runs this once.
SETUP: Final = (
    "CREATE TABLE t (id int); INSERT INTO t VALUES (1); CREATE SEQUENCE s;"
    "CREATE MATERIALIZED VIEW v AS SELECT 1 AS one; CREATE VIEW seen AS SELECT * FROM t"
)
# The admin runs this before each attack: an empty schema for the attack's objects.
RESET: Final = "DROP SCHEMA IF EXISTS evil CASCADE; CREATE SCHEMA evil"
# Rows, privileges and settings as one value, which each role reads before and after an attack.
# Without settings of extensions, which depend on the libraries that a session has loaded.
STATE: Final = """
SELECT concat_ws(' ', (SELECT string_agg(id::text, ',') FROM public.t),
    has_table_privilege('public.t', 'INSERT'), has_table_privilege('public.t', 'TRUNCATE'),
    (SELECT last_value || is_called::text FROM public.s),
    (SELECT md5(string_agg(name || setting, ' ' ORDER BY name)) FROM pg_settings
     WHERE name NOT LIKE '%.%'))
"""
# The comment of the databases, by which a later run finds and drops those of a crashed run. It also
# names the lock, which allows only one run at a time on a server.
MARK = "zonal isolation check"
LOCK: Final = "SELECT pg_try_advisory_lock(hashtext(%s))"
LEFT: Final = """
SELECT datname, split_part(description, ': ', 2)
FROM pg_database JOIN pg_shdescription ON objoid = pg_database.oid
WHERE classoid = 'pg_database'::regclass AND starts_with(description, %s)
"""
ANSWER_S: Final = 30.0
ROLES: Final[tuple[Role, ...]] = ("admin", "operator", "reader")
# libpq's text of a boolean, as the attacks write it.
BOOLEANS: Final = {"t": "True", "f": "False"}
BOOL_OID: Final = 16
# Classes of SQLSTATEs that are not a refusal: lost connections, resources, errors of the server.
FAULTS: Final = ("08", "53", "57", "58", "XX")


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check. findings: an object for each unexpected outcome."""

    cluster: str
    attacks: int
    elapsed_ms: int
    findings: list[dict[str, str]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the members of the command's JSON."""
        return {
            "cluster": self.cluster,
            "attacks": self.attacks,
            "elapsed_ms": self.elapsed_ms,
            "findings": self.findings,
        }


def check(cluster: Cluster) -> Report:
    """Run all harmless attacks on a cluster, in two databases that are dropped afterwards.

    Raises CommandRefused (another check is running), EngineUnavailable.
    """
    started = time.monotonic()
    attacks = [one for subject in subjects() for one in load(subject) if one.is_harmless]
    with _two_databases(cluster) as (own, other):
        tenants = Tenants(own, other)
        tenants.prepare()
        findings = [finding for attack in attacks for finding in tenants.run(attack)]
    elapsed_ms = round((time.monotonic() - started) * 1000)
    return Report(cluster.name, len(attacks), elapsed_ms, findings)


class Tenants:
    """Two tenants of a server, which exist only for the check."""

    def __init__(self, own: Database, other: Database) -> None:
        self._names = names_of(own, other)
        self._own, self._other = placement_of(own), placement_of(other)
        self._before: list[str | None] = []

    def prepare(self) -> None:
        """Create the objects that are attacked."""
        for placement in (self._own, self._other):
            _send(placement, AttackStep("admin", SETUP, ("ok",)), SETUP)
        self._before = self._state()

    def run(self, attack: Attack) -> Iterator[dict[str, str]]:
        """Yield a finding for each unexpected outcome."""
        _send(self._own, AttackStep("admin", RESET, ("ok",)), RESET)
        for step in attack.steps:
            placement = self._other if step.of_other else self._own
            result = _send(placement, step, filled(step.sql, self._names))
            if not result.is_one_of(step.expect):
                # The attack's own text, without the names of databases and roles.
                yield _finding(attack, step.sql, " or ".join(step.expect), result)
        if self._state() != self._before:
            yield _finding(attack, attack.name, "no other effect", Result(frozenset({"changed"})))

    def _state(self) -> list[str | None]:
        seen = [_send(self._own, AttackStep(role, STATE, ("ok",)), STATE).value for role in ROLES]
        return [*seen, _send(self._other, AttackStep("admin", STATE, ("ok",)), STATE).value]


def _finding(attack: Attack, text: str, expected: str, result: Result) -> dict[str, str]:
    return {
        "subject": attack.subject,
        "role": attack.role,
        "statement": text,
        "reason": attack.reason,
        "expected": expected,
        "outcome": " ".join(sorted(result.outcomes)),
    }


@contextmanager
def _two_databases(cluster: Cluster) -> Iterator[tuple[Database, Database]]:
    with administer(address_of(cluster)) as connection:
        row = connection.execute(LOCK, [MARK]).fetchone()
        if row is None or not row[0]:
            raise CommandRefused("check_running", f"Another check of {cluster.name} is running.")
        _drop_left(connection)
        # The rows are not saved, so that no other process uses the databases.
        own, other = stock.new_row(cluster), stock.new_row(cluster)
        try:
            for database in (own, other):
                tenant_databases.create(database)
                mark(connection, database)
            yield own, other
        finally:
            for database in (own, other):
                pool.CONNECTION_POOL.forget(database.dbname)
                tenant_databases.drop(database)


def mark(connection: psycopg.Connection, database: Database) -> None:
    """Mark a database, so that a later check can drop it and its roles if this one crashes."""
    roles = " ".join(database.roles.values())
    connection.execute(
        sql.SQL("COMMENT ON DATABASE {} IS {}").format(
            sql.Identifier(database.dbname), sql.Literal(f"{MARK}: {roles}")
        )
    )


def names_of(own: Database, other: Database) -> dict[str, str]:
    """Return the names that attacks use, such as ``own_db``."""
    return {
        **{str(role): name for role, name in own.roles.items()},
        "own_db": own.dbname,
        "other_db": other.dbname,
        "other_role": other.admin_role,
        "superuser": str(conninfo_to_dict(own.cluster.url).get("user", "")),
        "template": TEMPLATE,
    }


def _drop_left(connection: psycopg.Connection) -> None:
    for dbname, roles in connection.execute(LEFT, [MARK]).fetchall():
        log.info("sql_isolation_check_left", count=1)
        connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(dbname))
        )
        for role in roles.split():
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


def _send(placement: Placement, step: AttackStep, text: str) -> Result:
    login = placement.login(step.role)
    if step.is_fresh:
        pool.CONNECTION_POOL.forget(login.dbname)
    try:
        connection = _checkout(login)
    except (LoginRefused, PlatformError) as exc:
        return Result(frozenset({type(exc).__name__}))
    try:
        result = _answer(connection, text, step.options.get("params"))
    except (ConnectionLost, ResultOverflow) as exc:
        pool.CONNECTION_POOL.discard(connection)
        return Result(frozenset({type(exc).__name__}))
    pool.CONNECTION_POOL.release(connection)
    return result


def _checkout(login: Login) -> TenantConnection:
    """Return a connection; restore a role that has locked itself out, as the gateway does.

    Raises LoginRefused, EngineUnavailable.
    """
    with suppress(LoginRefused):
        return pool.CONNECTION_POOL.checkout(login)
    with administer(login.address) as connection:
        restore_role(connection, login.expected)
        end_idle_sessions(connection, login.user)
    return pool.CONNECTION_POOL.checkout(login)


def _answer(connection: TenantConnection, text: str, params: list[Any] | None) -> Result:
    connection.give_up_at = time.monotonic() + ANSWER_S
    if params is None:
        connection.send_text(text.encode())
    else:
        connection.send_statement(text.encode(), [str(value).encode() for value in params])
    failed = ""
    value: str | None = None
    while (result := connection.next_result()) is not None:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
            failed = failed or state.decode("ascii", "replace")
        elif result.status in {pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT}:
            raise ConnectionLost
        elif result.nfields:
            value = _value(result) if result.ntuples else value
    if not failed:
        return Result(frozenset({"ok"}), value)
    return Result(frozenset({failed} if failed.startswith(FAULTS) else {failed, REFUSED}))


def _value(result: Any) -> str:
    given = (result.get_value(0, 0) or b"").decode("utf-8", "replace")
    return BOOLEANS.get(given, given) if result.ftype(0) == BOOL_OID else given
