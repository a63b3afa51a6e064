"""The pool of connections, the least recently used first, one for all tenants of the process."""

import atexit
import threading
import time
from collections import OrderedDict
from typing import Final

import psycopg
import structlog
from django.conf import settings

from common.every import Every
from sqlgateway.clusters import silence
from sqlgateway.clusters.placements import Login
from sqlgateway.clusters.servers import ClusterAddress, said
from sqlgateway.errors import EngineUnavailable, SqlBusy
from sqlgateway.pg.changed_roles import ROLE_CHECK, changed_logins
from sqlgateway.pg.lock_guard import LOCK_GUARD
from sqlgateway.pg.tenant_connection import (
    NoServerConnection,
    SettingsRefused,
    TenantConnection,
    open_connection,
)

Key = tuple[int, str, str]
# Messages of the server for temporary conditions, none about a role (in English: lc_messages is C).
NOT_NOW: Final = (
    "too many connections",
    "too many clients",
    "connection slots are reserved",
    "starting up",
    "shutting down",
    "in recovery mode",
    "not accepting connections",
    "terminating connection",
    # Messages of PgBouncer, about its own limits and about a server that is unreachable.
    "no more connections allowed",
    "query_wait_timeout",
    "cannot connect to server",
)
# How long an unused connection is kept.
IDLE_S: Final = 60
SWEEP_EVERY_S: Final = 5.0
# PgBouncer logs in to the server again a second after a failure (server_login_retry).
PAUSE_S: Final = 0.2

log = structlog.get_logger(__name__)


class LoginRefused(Exception):
    """The server answered and refused this role or database."""


class ConnectionPool:
    """Idle connections by (cluster, database, role), the least recently used key first.

    It also counts and lists the connections that are checked out.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: OrderedDict[Key, list[TenantConnection]] = OrderedDict()
        self._busy: set[TenantConnection] = set()
        self._open = 0
        self._sweeps = Every(SWEEP_EVERY_S, self.sweep, name="sql-pool")

    def checkout(self, login: Login) -> TenantConnection:
        """Return a clean connection, an idle one if possible.

        Raises LoginRefused, EngineUnavailable (503), SqlBusy (503).
        """
        cluster_id = login.address.cluster_id
        if silence.is_silent(cluster_id):
            raise EngineUnavailable
        while connection := self._take(login.key):
            # A connection that was opened with an old password is closed.
            if not connection.login.is_older_than(login) and connection.finish_reset():
                LOCK_GUARD.start(cluster_id)
                return connection
            self.discard(connection)
            if time.monotonic() > connection.give_up_at:
                # Other idle ones would take as long.
                break
        self._make_room()
        try:
            connection = _connect(login)
        except BaseException:
            with self._lock:
                self._open -= 1
            raise
        with self._lock:
            self._busy.add(connection)
        self._sweeps.start()
        LOCK_GUARD.start(cluster_id)
        return connection

    def release(self, connection: TenantConnection) -> None:
        """Clean a connection and keep it; close it if it cannot be cleaned."""
        if not connection.start_reset():
            self.discard(connection)
            return
        ROLE_CHECK.note(connection.login)
        with self._lock:
            self._busy.discard(connection)
            self._idle.setdefault(connection.login.key, []).append(connection)
            self._idle.move_to_end(connection.login.key)

    def discard(self, connection: TenantConnection) -> None:
        """Close a connection that is checked out."""
        ROLE_CHECK.note(connection.login)
        with self._lock:
            self._busy.discard(connection)
            self._open -= 1
        connection.close()

    def addresses_in_use(self) -> set[ClusterAddress]:
        """Return the clusters of the connections that are checked out."""
        with self._lock:
            return {connection.login.address for connection in self._busy}

    def sweep(self) -> None:
        """Close connections that have been idle for longer than IDLE_S."""
        oldest = time.monotonic() - IDLE_S
        with self._lock:
            expired = [s for kept in self._idle.values() for s in kept if s.used_at < oldest]
            for connection in expired:
                self._remove(connection)
        self._close(expired)

    def forget(self, dbname: str) -> None:
        """Close the idle connections to a database."""
        with self._lock:
            gone = [s for kept in self._idle.values() for s in kept if s.login.dbname == dbname]
            for connection in gone:
                self._remove(connection)
        self._close(gone)

    def clear(self) -> None:
        """Close all idle connections."""
        with self._lock:
            gone = [connection for kept in self._idle.values() for connection in kept]
            self._idle.clear()
        self._close(gone)

    def _take(self, key: Key) -> TenantConnection | None:
        with self._lock:
            kept = self._idle.get(key)
            if not kept:
                return None
            # The most recently used one: its backend's caches are warm, and idle ones can expire.
            connection = kept.pop()
            if not kept:
                del self._idle[key]
            self._busy.add(connection)
            return connection

    def _make_room(self) -> None:
        with self._lock:
            if self._open < settings.SQL.connections:
                self._open += 1
                return
            if not self._idle:
                raise SqlBusy
            # The new connection replaces the evicted one, so the count does not change.
            connection = next(iter(self._idle.values()))[0]
            self._remove(connection)
        connection.close()

    def _remove(self, connection: TenantConnection) -> None:
        kept = self._idle[connection.login.key]
        kept.remove(connection)
        if not kept:
            del self._idle[connection.login.key]

    def _close(self, connections: list[TenantConnection]) -> None:
        for connection in connections:
            self.discard(connection)


def _connect(login: Login) -> TenantConnection:
    try:
        connection = _open_soon(login)
    except NoServerConnection:
        words, is_refused = "The pooler has no connection to the server.", False
    except psycopg.Error as exc:
        words = said(exc)
        is_refused = isinstance(exc, SettingsRefused) or "FATAL" in words
    else:
        if login.role != "reader" and connection.starts_read_only:
            # Either the server takes no writes, or the tenant has changed its role.
            if not changed_logins(login.address, [login]):
                return connection
            connection.close()
            raise LoginRefused
        return connection
    # Outside the handler, so that the exception, which names hosts and roles, is not the cause.
    if is_refused and not any(sign in words for sign in NOT_NOW):
        raise LoginRefused
    cluster = login.address.cluster_id
    log.warning("sql_connect_failed", cluster=cluster, full="too many" in words, said=words)
    raise EngineUnavailable


def _open_soon(login: Login) -> TenantConnection:
    """Open a connection; retry for a short time while a pooler refuses it.

    Raises LoginRefused, psycopg.OperationalError, EngineUnavailable.
    """
    give_up_at = time.monotonic() + silence.CONNECT_TIMEOUT_S
    is_intact = False
    while True:
        try:
            return open_connection(login)
        except NoServerConnection as exc:
            # PgBouncer does not report that the server refuses the role; it retries.
            if not is_intact and changed_logins(login.address, [login]):
                raise LoginRefused from None
            if not exc.is_pausing or time.monotonic() > give_up_at:
                raise
        is_intact = True
        time.sleep(PAUSE_S)


CONNECTION_POOL = ConnectionPool()
LOCK_GUARD.addresses = CONNECTION_POOL.addresses_in_use
# Close connections before the interpreter warns about open sockets.
atexit.register(CONNECTION_POOL.clear)
