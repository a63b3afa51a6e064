"""Queries about a tenant's backend, and its termination, which only the administrator can do."""

import atexit
import threading
import time
from typing import Any, Final

import psycopg
import structlog

from sqlgateway.clusters.servers import (
    TAKES_NO_WRITES,
    ClusterAddress,
    connect_as_administrator,
    said,
)
from sqlgateway.clusters.silence import BoundedConnection
from sqlgateway.pg.tenant_connection import TenantConnection

# The user is compared because the process id may now belong to another tenant's backend. Behind a
# pooler the backend may already serve another session of the role; its statement began after the
# cancel.
SAME: Final = (
    " FROM pg_stat_activity WHERE pid = %s AND usename = %s"
    " AND coalesce(query_start <= clock_timestamp() - %s * interval '1 second', true)"
)
TERMINATE: Final = f"SELECT pg_terminate_backend(pid){SAME}"
# A transaction that has written may have committed and be waiting for a disk or a standby.
IS_OPEN: Final = (
    "SELECT xact_start IS NOT NULL"
    " AND (backend_xid IS NULL OR coalesce(wait_event_type NOT IN ('IO', 'IPC', 'LWLock'), true))"
    f"{SAME}"
)
# A standby that refused a write may have been promoted until it is asked. It wrote the history of
# its timeline then.
REFUSED_WRITES: Final = (
    f"{TAKES_NO_WRITES} OR EXISTS (SELECT FROM pg_ls_waldir()"
    " WHERE name LIKE '%.history' AND modification > now() - interval '10 seconds')"
)

# The queries here take milliseconds.
ANSWER_S: Final = 4.0

log = structlog.get_logger(__name__)


class Administrator:
    """One administrative connection for each cluster, reopened when it breaks.

    The watchdog has an instance of its own, so that it never waits for another thread. A
    cluster that does not answer delays no other.
    """

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}
        self._connections: dict[int, BoundedConnection] = {}

    def ask(self, address: ClusterAddress, query: str, values: list[Any] | None) -> Any:
        """Return the first value of the first row, None if there is no row.

        Raises psycopg.Error if the cluster does not answer.
        """
        with self._locks.setdefault(address.cluster_id, threading.Lock()):
            try:
                return self._ask(address, query, values)
            except psycopg.OperationalError:
                self.forget(address.cluster_id)
                return self._ask(address, query, values)

    def close(self) -> None:
        """Close all connections."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()

    def _ask(self, address: ClusterAddress, query: str, values: list[Any] | None) -> Any:
        connection = self._connections.get(address.cluster_id)
        if connection is None:
            connection = connect_as_administrator(address)
            connection.answers_within_s = ANSWER_S
            self._connections[address.cluster_id] = connection
        row = connection.execute(query.encode(), values).fetchone()
        return row[0] if row is not None else None

    def forget(self, cluster_id: int) -> None:
        """Close the connection to a cluster."""
        broken = self._connections.pop(cluster_id, None)
        if broken is not None:
            broken.close()

    def terminate(self, connection: TenantConnection) -> bool:
        """Terminate a connection's backend; True if it existed."""
        try:
            return bool(self.ask(connection.login.address, TERMINATE, _identity(connection)))
        except psycopg.Error as exc:
            log.warning("sql_terminate_failed", pid=connection.pid, said=said(exc))
            return False

    def refused_writes(self, connection: TenantConnection) -> bool:
        """True if the connection's server refuses writes, just did, or no longer answers."""
        try:
            return bool(self.ask(connection.login.address, REFUSED_WRITES, None))
        except psycopg.Error:
            return True

    def is_open(self, connection: TenantConnection) -> bool | None:
        """True if the backend is inside a transaction that it has not committed.

        None if the backend no longer exists; False also if this cannot be determined.
        """
        try:
            answer = self.ask(connection.login.address, IS_OPEN, _identity(connection))
        except psycopg.Error:
            return False
        return None if answer is None else bool(answer)


def _identity(connection: TenantConnection) -> list[Any]:
    is_reusable = connection.is_pooled and connection.cancelled_at is not None
    since_s = time.monotonic() - (connection.cancelled_at or 0) if is_reusable else 0.0
    return [connection.pid, connection.login.user, since_s]


ADMINISTRATOR: Final = Administrator()
atexit.register(ADMINISTRATOR.close)
