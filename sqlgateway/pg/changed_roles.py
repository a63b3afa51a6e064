"""Roles that their tenants changed: found within seconds, restored, and kept so during a login.

Any role, even a reader's, can change its own password and settings, and drop its privileges (DROP
OWNED). All users of an organization share the three roles.

A changed setting has no effect (session_settings.py), and a changed password is noticed at the next
login, so no request waits for the periodic check. The check limits the time in which a tenant knows
a working password, and it is the only defence where a pooler drops start-up options. A function can
change a role, so neither the text of a statement nor its tag shows it. Therefore the state of the
roles is compared, with one query for each cluster.

In PostgreSQL one of two concurrent changes of a role fails ("tuple concurrently updated"), and a
tenant can repeat its change in a loop. So a repair locks the role's row in pg_authid first: a
session that changes the role waits, and then fails.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg
import structlog
from django.db import connection as control_connection
from django.db import transaction

from audit import trail
from common.errors import NotFound, PlatformError
from common.every import Every
from common.scoping import unscoped
from sqlgateway.audit_tags import SqlTag
from sqlgateway.clusters.placements import Login, Placement, placement_of
from sqlgateway.clusters.servers import ClusterAddress, administer, said, unavailable
from sqlgateway.errors import DatabaseNotReady, EngineUnavailable
from sqlgateway.hardening.database import restore_defaults
from sqlgateway.hardening.tenant_roles import RoleDrift, changes_of, end_idle_sessions, restore_role
from sqlgateway.models import Database

log = structlog.get_logger(__name__)

# More than one only if a tenant changes its role in a loop.
REPAIR_ATTEMPTS: Final = 8
# A tenant's open transaction can hold the row for as long as a request may run.
BEGIN: Final = "BEGIN; SET LOCAL lock_timeout = '300ms'"
LOCK: Final = "SELECT FROM pg_authid WHERE rolname = ANY(%s) ORDER BY oid FOR UPDATE"
# Another change was faster, or holds the row.
LOST_RACES: Final = (
    psycopg.errors.InternalError_,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)
END_CHANGES: Final = """
SELECT pg_terminate_backend(pid)
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE relation IN ('pg_authid'::regclass, 'pg_db_role_setting'::regclass)
  AND mode = 'RowExclusiveLock' AND usename = ANY(%s)
"""
# Shorter than it takes to make use of a password; each check costs one query.
CHECK_EVERY_S: Final = 5.0


def repair(login: Login) -> None:
    """Restore a role as the database's row describes it, if it was changed.

    Raises NotFound (the database is no longer in use), DatabaseNotReady, EngineUnavailable.
    """
    with intact(login):
        pass


@contextmanager
def intact(login: Login) -> Iterator[Placement]:
    """Restore a role if it was changed, and keep it from changing while the block runs.

    Yield the present placement: the passwords may have been rotated since the login was read. The
    database's row is locked, so that only one process repairs its roles at a time, and not while
    the database is being moved or deleted, or its passwords rotated.

    Raises NotFound (the database is no longer in use), DatabaseNotReady, EngineUnavailable.
    """
    with transaction.atomic():
        database = _locked_row(login)
        placement = placement_of(database)
        with administer(placement.address) as connection:
            try:
                _lock_intact(connection, database, placement.login(login.role))
            except psycopg.Error as exc:
                # An object is missing on the server; the message names the database.
                log.warning("sql_role_not_repaired", database=database.pk, said=said(exc))
                raise unavailable(exc) from None
            # Closing the connection releases the role.
            yield placement


def begin_locked(connection: psycopg.Connection, users: Sequence[str]) -> None:
    """Begin a transaction that locks these roles.

    Raises one of LOST_RACES while a tenant changes one of them.
    """
    connection.execute(BEGIN)
    connection.execute(LOCK, [list(users)])


def end_changes(connection: psycopg.Connection, database: Database, lost: psycopg.Error) -> None:
    """Roll back after a conflict, and terminate the tenant's sessions that change a role."""
    connection.execute("ROLLBACK")
    connection.execute(END_CHANGES, [list(database.roles.values())])
    log.info("sql_role_contended", database=database.pk, kind=type(lost).__name__)


def changed_logins(address: ClusterAddress, logins: list[Login]) -> list[Login]:
    """Return the logins whose roles were changed; none if their cluster does not answer."""
    try:
        with administer(address) as connection:
            changes = changes_of(connection, [login.expected for login in logins])
    except (PlatformError, psycopg.Error) as exc:
        log.info("sql_roles_not_checked", cluster=address.cluster_id, said=said(exc))
        return []
    return [login for login in logins if changes.get(login.user)]


class RoleCheck:
    """The roles that this process has used since the last check, and the thread that checks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[str, Login] = {}
        self.checks = Every(CHECK_EVERY_S, self._run_and_disconnect, name="sql-roles")

    def note(self, login: Login) -> None:
        """Schedule a role's check; called when a request has ended."""
        with self._lock:
            kept = self._used.get(login.user)
            # A connection may have been opened before the password was rotated.
            if kept is None or not login.is_older_than(kept):
                self._used[login.user] = login
        self.checks.start()

    def run(self) -> None:
        """Check the scheduled roles; one that cannot be checked is scheduled at its next use."""
        with self._lock:
            used, self._used = self._used, {}
        by_address: dict[ClusterAddress, list[Login]] = {}
        for login in used.values():
            by_address.setdefault(login.address, []).append(login)
        for address, logins in by_address.items():
            for login in changed_logins(address, logins):
                _repair(login)

    def _run_and_disconnect(self) -> None:
        try:
            self.run()
        finally:
            control_connection.close()


def _repair(login: Login) -> None:
    try:
        repair(login)
    except PlatformError as exc:
        log.info("sql_role_not_checked", database=login.database_id, said=said(exc))


@unscoped("the row of a login that is in use")
def _locked_row(login: Login) -> Database:
    database: Database | None = (
        Database.objects.select_related("cluster", "organization__quota")
        .select_for_update(of=("self",))
        .filter(pk=login.database_id)
        .first()
    )
    if database is not None and database.state == Database.State.MOVING:
        raise DatabaseNotReady
    if database is None or database.state != Database.State.ACTIVE:
        raise NotFound
    return database


def _lock_intact(connection: psycopg.Connection, database: Database, login: Login) -> None:
    """Restore and lock the role, in a transaction that stays open."""
    expected = login.expected
    for _ in range(REPAIR_ATTEMPTS):
        try:
            begin_locked(connection, [login.user])
            changes = changes_of(connection, [expected]).get(login.user)
            if changes is None:
                raise EngineUnavailable("The role or its database is missing.")
            if not changes:
                return
            restore_role(connection, expected)
            if RoleDrift.PRIVILEGES in changes:
                with administer(login.address, database.dbname) as inside:
                    restore_defaults(inside, database.roles, login.role)
            connection.execute("COMMIT")
            if not login.address.takes_options:
                end_idle_sessions(connection, login.user)
        except LOST_RACES as exc:
            end_changes(connection, database, exc)
        else:
            _note_repaired(database, login)
    raise EngineUnavailable("The role is being changed.")


def _note_repaired(database: Database, login: Login) -> None:
    log.warning("sql_role_repaired", database=database.pk, role=login.role)
    organization_id = database.organization_id
    if organization_id is None or database.environment is None:
        return
    trail.add(
        None,
        SqlTag.ROLE_REPAIR,
        organization_id=organization_id,
        environment_id=database.environment.slug,
        actor="platform",
        data={"role": login.role},
    )


ROLE_CHECK: Final = RoleCheck()
