"""Restore a dump in three sections, and between them what pg_restore would do too early.

A CHECK that calls a function of the database may read other tables: it is added when all rows are
there, and checks all of them, so that the copy guarantees what its source does. And since
PostgreSQL 17 an index or a materialized view is computed without the session's search_path:
meanwhile the functions of the database have a path of their own.

The administrator only reads catalogues here. Statements run as the tenant's own admin role.
"""

import selectors
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import DiagnosticField
from psycopg.pq.abc import PGresult

from sqlgateway.clusters import silence
from sqlgateway.clusters.servers import NETWORK_LIMITS, administer
from sqlgateway.databases.copies import CopyFailed, programs
from sqlgateway.databases.copies.programs import Archive, ProgramLogin
from sqlgateway.pg.session_settings import SEARCH_PATH, settings_statement, startup_options

RESTRICTED_SINCE: Final = 17
# Those that are inherited are dropped and added with the parent's.
CHECKS: Final = """
SELECT oid::int8, CASE contypid WHEN 0 THEN 'TABLE' ELSE 'DOMAIN' END,
    CASE contypid WHEN 0 THEN conrelid::regclass::text ELSE contypid::regtype::text END,
    quote_ident(conname), pg_get_constraintdef(oid), obj_description(oid, 'pg_constraint')
FROM pg_constraint
WHERE contype = 'c' AND convalidated AND coninhcount = 0 AND oid <> ALL(%s::int8[])
    AND EXISTS (
        SELECT FROM pg_depend
        WHERE classid = 'pg_constraint'::regclass AND objid = pg_constraint.oid
            AND refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
    )
ORDER BY oid
"""
FUNCTIONS: Final = """
SELECT oid::regprocedure::text FROM pg_proc
WHERE prokind = 'f' AND prosqlbody IS NULL
    AND prolang IN (SELECT oid FROM pg_language WHERE lanname IN ('sql', 'plpgsql'))
    AND pronamespace IN (
        SELECT oid FROM pg_namespace
        WHERE nspname NOT LIKE 'pg\\_%' AND nspname NOT IN ('information_schema', 'zonal')
    )
    AND NOT EXISTS (SELECT FROM unnest(proconfig) AS kept WHERE starts_with(kept, 'search_path='))
    AND NOT EXISTS (
        SELECT FROM pg_depend
        WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e'
    )
"""
# Classes of SQLSTATEs of the server's state, and of what others did at the same time.
PASSING: Final = ("08", "40", "53", "55", "57", "58")


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK. kind: TABLE or DOMAIN. of: its qualified name. definition: ``CHECK (…)``."""

    oid: int
    kind: str
    of: str
    name: str
    definition: str
    comment: str | None

    def drop(self) -> str:
        """Return the statement that drops it."""
        return f"ALTER {self.kind} {self.of} DROP CONSTRAINT {self.name}"

    def add(self) -> str:
        """Return the statement that adds it, which checks all rows."""
        return f"ALTER {self.kind} {self.of} ADD CONSTRAINT {self.name} {self.definition}"

    def describe(self) -> str:
        """Return the statement that adds its comment."""
        on = f"DOMAIN {self.of}" if self.kind == "DOMAIN" else self.of
        comment = sql.Literal(self.comment).as_string()
        return f"COMMENT ON CONSTRAINT {self.name} ON {on} IS {comment}"


def restore(
    archive: Archive,
    target: ProgramLogin,
    *,
    major: int,
    deadline: float,
    entries: Sequence[str] | None = None,
    check: Callable[[], None] | None = None,
) -> None:
    """Restore a dump as the target's role into its new database.

    major: of the server. deadline: of time.monotonic(). entries: of the dump; None for all but
    privileges. check: called every CHECK_S; its exceptions end the restore.
    Raises CopyFailed, EngineUnavailable, psycopg.Error.
    """
    section = partial(
        programs.restore_section,
        archive,
        target,
        entries=entries,
        major=major,
        deadline=deadline,
        check=check,
    )
    connect = partial(RestoreConnection, target, deadline, check)
    section("pre-data")
    checks = _take_checks(target, connect)
    section("data")
    functions = _functions(target) if major >= RESTRICTED_SINCE else []
    if functions:
        with connect() as connection:
            for function in functions:
                connection.run(f"ALTER FUNCTION {function} SET search_path = {SEARCH_PATH}")
    section("post-data")
    if functions or checks:
        with connect() as connection:
            for function in functions:
                connection.run(f"ALTER FUNCTION {function} RESET search_path")
            # The one that was dropped last belongs to the child tables of the first.
            for one in reversed(checks):
                connection.run(one.add(), about=f"constraint {one.name} of {one.of}")
                if one.comment is not None:
                    connection.run(one.describe())


def _take_checks(target: ProgramLogin, connect: Callable[[], "RestoreConnection"]) -> list[Check]:
    """Drop the CHECKs of tables and domains that call functions of the database; return them.

    One that could not be added again stays: that of a domain in arrays or composite types.
    """
    taken: list[Check] = []
    kept: list[int] = []
    with administer(target.address, target.dbname) as inside:
        while rows := inside.execute(CHECKS.encode(), [kept]).fetchall():
            with connect() as connection:
                for one in (Check(*row) for row in rows):
                    try:
                        connection.run(f"{one.drop()}; {one.add()}; {one.drop()}")
                        taken.append(one)
                    except CopyFailed:
                        kept.append(one.oid)
    return taken


def _functions(target: ProgramLogin) -> list[str]:
    with administer(target.address, target.dbname) as inside:
        return [str(name) for (name,) in inside.execute(FUNCTIONS.encode())]


class RestoreConnection:
    """A session of the tenant's role, as its own ones are, but for the limits of time."""

    def __init__(
        self, login: ProgramLogin, deadline: float, check: Callable[[], None] | None
    ) -> None:
        self._login, self._deadline, self._check = login, deadline, check

    def __enter__(self) -> "RestoreConnection":
        """Connect. Raises psycopg.Error, EngineUnavailable."""
        address = self._login.address
        words: dict[str, Any] = {**NETWORK_LIMITS, **conninfo_to_dict(self._login.conninfo())}
        words["password"] = self._login.password
        words["connect_timeout"] = silence.CONNECT_TIMEOUT_S
        if address.takes_options:
            words["options"] = startup_options(address, "admin", is_copy=True)
        self._connection = psycopg.connect(**words, autocommit=True, prepare_threshold=None)
        try:
            if not address.takes_options:
                self._connection.execute(settings_statement(address, "admin"))
            # The deadline is checked here, and the administrator ends what goes on after it.
            for name in ("statement_timeout", "transaction_timeout", "lock_timeout"):
                if name != "transaction_timeout" or address.can(name):
                    self._connection.execute(f"SET {name} = 0".encode())
        except BaseException:
            self._connection.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def run(self, statements: str, *, about: str = "") -> None:
        """Run statements in one transaction. Raises CopyFailed, psycopg.Error.

        about: what the tenant calls the object. The exceptions of ``check`` end the session.
        """
        connection = self._connection.pgconn
        connection.nonblocking = 0
        connection.send_query(statements.encode())
        failed: PGresult | None = None
        while (result := self._next_result()) is not None:
            if result.error_message and failed is None:
                failed = result
        if failed is not None:
            raise self._failure(failed, about)

    def _next_result(self) -> PGresult | None:
        connection = self._connection.pgconn
        check_at = time.monotonic() + programs.CHECK_S
        with selectors.DefaultSelector() as selector:
            selector.register(connection.socket, selectors.EVENT_READ)
            while connection.is_busy():
                if selector.select(programs.CHECK_S):
                    connection.consume_input()
                now = time.monotonic()
                if now > self._deadline:
                    raise programs.too_slow()
                # Notices, which a function may raise without end, do not put it off.
                if now > check_at and self._check is not None:
                    self._check()
                    check_at = now + programs.CHECK_S
        return connection.get_result()

    def _failure(self, result: PGresult, about: str) -> CopyFailed:
        state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
        said = (result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"").decode(errors="replace")
        line = said.partition("\n")[0][: programs.ERROR_CHARS]
        sentence = self._login.address.plain(f"{about}: {line}" if about else line)
        is_passing = state.startswith(PASSING) or not state
        return CopyFailed(sentence, reason="" if is_passing else sentence)
