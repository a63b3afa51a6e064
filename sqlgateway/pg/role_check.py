"""Restore roles that their tenants changed, within seconds.

A changed setting has no effect (session_settings.py), and a changed password is noticed at the next
login, so no request waits for this check. It limits the time in which a tenant knows a working
password, and it is the only defence where a pooler drops start-up options.

A function can change a role, so neither the text of a statement nor its tag shows it. Therefore the
state of the roles is compared, with one query for each cluster.
"""

import os
import threading
import time
from typing import Final

import psycopg
import structlog
from django.db import connection as control_connection

from common.errors import PlatformError
from sqlgateway.clusters.placements import Login
from sqlgateway.clusters.servers import ClusterAddress, administer
from sqlgateway.hardening.tenant_roles import changes_of
from sqlgateway.pg import changed_roles

# Shorter than it takes to make use of a password; each check costs one query.
EVERY_S = 5.0

log = structlog.get_logger(__name__)


class RoleCheck:
    """The roles that this process has used since the last check, and the thread that checks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[str, Login] = {}
        self._thread: threading.Thread | None = None

    def note(self, login: Login) -> None:
        """Schedule a role's check; called when a request has ended."""
        with self._lock:
            kept = self._used.get(login.user)
            # A connection may have been opened before the password was rotated.
            if kept is None or not login.is_older_than(kept):
                self._used[login.user] = login
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="sql-roles", daemon=True)
                self._thread.start()

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

    def _loop(self) -> None:
        while True:
            time.sleep(EVERY_S)
            try:
                self.run()
            except Exception:
                # The control database may be unreachable; the next round tries again.
                log.exception("sql_role_check_failed")
            finally:
                control_connection.close()


def changed_logins(address: ClusterAddress, logins: list[Login]) -> list[Login]:
    """Return the logins whose roles were changed; none if their cluster does not answer."""
    try:
        with administer(address) as connection:
            changes = changes_of(connection, [login.expected for login in logins])
    except (PlatformError, psycopg.Error) as exc:
        log.info("sql_roles_not_checked", cluster=address.cluster_id, kind=type(exc).__name__)
        return []
    return [login for login in logins if changes.get(login.user)]


def _repair(login: Login) -> None:
    try:
        changed_roles.repair(login)
    except PlatformError as exc:
        log.info("sql_role_not_checked", database=login.database_id, kind=type(exc).__name__)


ROLE_CHECK: Final = RoleCheck()


def _after_fork() -> None:
    ROLE_CHECK.__init__()  # type: ignore[misc]  # the thread stays with the parent


os.register_at_fork(after_in_child=_after_fork)
