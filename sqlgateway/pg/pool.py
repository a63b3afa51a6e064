"""A least-recently-used cache of connections, one for all tenants of the process."""

import atexit
import os
import threading
import time
from collections import OrderedDict
from typing import Final

import psycopg
import structlog
from django.conf import settings

from sqlgateway.clusters.placements import Login
from sqlgateway.clusters.servers import ClusterAddress
from sqlgateway.errors import EngineUnavailable, SqlBusy
from sqlgateway.pg.changed_roles import ROLE_CHECK, changed_logins
from sqlgateway.pg.lock_guard import LOCK_GUARD
from sqlgateway.pg.tenant_connection import (
    NoServerConnection,
    SessionRefused,
    TenantConnection,
    open_connection,
)
from sqlgateway.pg.watchdog import WATCHDOG

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
# PgBouncer logs in to the server again a second after a failure (server_login_retry).
PAUSE_S: Final = 0.2

log = structlog.get_logger(__name__)


class LoginRefused(Exception):
    """The server answered and refused this role or database."""


class ConnectionCache:
    """Idle connections by (cluster, database, role), the least recently used key first.

    It also counts and lists the connections that are checked out.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: OrderedDict[Key, list[TenantConnection]] = OrderedDict()
        self._busy: set[TenantConnection] = set()
        self._open = 0

    def checkout(self, login: Login) -> TenantConnection:
        """Return a clean connection, a cached one if possible.

        Raises LoginRefused, EngineUnavailable (503), SqlBusy (503).
        """
        LOCK_GUARD.start()
        while (session := self._take(login.key)) is not None:
            # A connection that was opened with an old password is closed.
            if not session.login.is_older_than(login) and session.finish_reset():
                return session
            self.discard(session)
        self._make_room()
        try:
            session = _connect(login)
        except BaseException:
            with self._lock:
                self._open -= 1
            raise
        with self._lock:
            self._busy.add(session)
        return session

    def release(self, session: TenantConnection) -> None:
        """Clean a connection and cache it; close it if it cannot be cleaned."""
        if not session.start_reset():
            self.discard(session)
            return
        ROLE_CHECK.note(session.login)
        with self._lock:
            self._busy.discard(session)
            self._idle.setdefault(session.login.key, []).append(session)
            self._idle.move_to_end(session.login.key)

    def discard(self, session: TenantConnection) -> None:
        """Close a connection that is checked out."""
        ROLE_CHECK.note(session.login)
        with self._lock:
            self._busy.discard(session)
            self._open -= 1
        session.close()

    def addresses_in_use(self) -> set[ClusterAddress]:
        """Return the clusters of the connections that are checked out."""
        with self._lock:
            return {session.login.address for session in self._busy}

    def sweep(self) -> None:
        """Close connections that have been idle for longer than ZSQL_IDLE_S."""
        oldest = time.monotonic() - settings.SQL.idle_s
        with self._lock:
            expired = [s for kept in self._idle.values() for s in kept if s.used_at < oldest]
            for session in expired:
                self._remove(session)
        self._close(expired)

    def forget(self, dbname: str) -> None:
        """Close the idle connections to a database."""
        with self._lock:
            gone = [s for kept in self._idle.values() for s in kept if s.login.dbname == dbname]
            for session in gone:
                self._remove(session)
        self._close(gone)

    def clear(self) -> None:
        """Close all idle connections."""
        with self._lock:
            gone = [session for kept in self._idle.values() for session in kept]
            self._idle.clear()
        self._close(gone)

    def _take(self, key: Key) -> TenantConnection | None:
        with self._lock:
            kept = self._idle.get(key)
            if not kept:
                return None
            # The most recently used one: its backend's caches are warm, and idle ones can expire.
            session = kept.pop()
            if not kept:
                del self._idle[key]
            self._busy.add(session)
            return session

    def _make_room(self) -> None:
        with self._lock:
            if self._open < settings.SQL.connections:
                self._open += 1
                return
            if not self._idle:
                raise SqlBusy
            # The new connection replaces the evicted one, so the count does not change.
            session = next(iter(self._idle.values()))[0]
            self._remove(session)
        session.close()

    def _remove(self, session: TenantConnection) -> None:
        kept = self._idle[session.login.key]
        kept.remove(session)
        if not kept:
            del self._idle[session.login.key]

    def _close(self, sessions: list[TenantConnection]) -> None:
        for session in sessions:
            self.discard(session)


def _connect(login: Login) -> TenantConnection:
    try:
        return _open_soon(login)
    except NoServerConnection:
        words, is_refused = "", False
    except psycopg.OperationalError as exc:
        words = str(exc)
        is_refused = isinstance(exc, SessionRefused) or "FATAL" in words
    # Outside the handler, so that the exception, which names hosts and roles, is not the cause.
    if is_refused and not any(sign in words for sign in NOT_NOW):
        raise LoginRefused
    log.warning("sql_connect_failed", cluster=login.address.cluster_id, full="too many" in words)
    raise EngineUnavailable


def _open_soon(login: Login) -> TenantConnection:
    """Open a connection; retry for a short time while a pooler refuses it.

    Raises LoginRefused, psycopg.OperationalError, EngineUnavailable.
    """
    give_up_at = time.monotonic() + settings.SQL.connect_timeout_s
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


CONNECTION_POOL = ConnectionCache()
WATCHDOG.on_tick = CONNECTION_POOL.sweep
LOCK_GUARD.addresses = CONNECTION_POOL.addresses_in_use
# Close connections before the interpreter warns about open sockets.
atexit.register(CONNECTION_POOL.clear)


def _after_fork() -> None:
    # libpq's objects know their process: deleting them here does not close the parent's sockets.
    CONNECTION_POOL.__init__()  # type: ignore[misc]  # emptied in place: other modules refer to this object


os.register_at_fork(after_in_child=_after_fork)
