"""Keep one tenant from filling the lock table, which all databases of a server share.

A transaction holds a lock for each table that it created or changed. When the server's lock table
is full, other tenants cannot create or change tables ("out of shared memory"), and PostgreSQL has
no limit for each role or database. So a thread in each process checks the clusters in use: while
tenants hold more than SHARE of the locks, it terminates a session of the database that holds the
most locks, beginning with the session that holds the most.
"""

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

import psycopg
import structlog

from sqlgateway.clusters.servers import ClusterAddress
from sqlgateway.names import ROLE_PREFIX
from sqlgateway.pg.administrator import Administrator

# Filling the table takes seconds.
EVERY_S: Final = 0.5
# The fraction of the server's lock table above which sessions are terminated. The rest remains for
# other tenants until that has happened.
SHARE: Final = 0.5
# Maximum sessions that one check terminates: more than an organization can have.
ROUNDS: Final = 20
# A lock counts once, in any number of modes; fast-path and predicate locks are stored elsewhere.
# Source of the size: PostgreSQL's documentation of max_locks_per_transaction.
TERMINATE: Final = """
WITH taken AS (
    SELECT DISTINCT pid, datname, locktype, relation, page, tuple, virtualxid, transactionid::text,
        classid, objid, objsubid
    FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE NOT fastpath AND mode <> 'SIReadLock' AND starts_with(usename, %s)
), held AS (
    SELECT pid, datname, count(*) AS locks FROM taken GROUP BY pid, datname
), worst AS (
    SELECT pid, datname FROM held
    WHERE (SELECT sum(locks) FROM held) > %s * current_setting('max_locks_per_transaction')::int
        * (current_setting('max_connections')::int
           + current_setting('max_prepared_transactions')::int)
    ORDER BY sum(locks) OVER (PARTITION BY datname) DESC, locks DESC
    LIMIT 1
)
SELECT datname, pg_terminate_backend(pid, 200) FROM worst
"""

log = structlog.get_logger(__name__)


class LockGuard:
    """The thread. addresses: a function that returns the clusters in use by this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._administrator = Administrator()
        self.addresses: Callable[[], Iterable[ClusterAddress]] = tuple

    def start(self) -> None:
        """Start the thread if it does not run yet; cheap enough to be called for each request."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="sql-locks", daemon=True)
                self._thread.start()

    def check(self) -> None:
        """Terminate sessions that hold too many locks on the clusters in use."""
        for address in self.addresses():
            try:
                self._check(address)
            except psycopg.Error as exc:
                log.info("sql_locks_unknown", cluster=address.cluster_id, kind=type(exc).__name__)

    def close(self) -> None:
        """Close the administrative connections, at the end of the process."""
        self._administrator.close()

    def _check(self, address: ClusterAddress) -> None:
        for _ in range(ROUNDS):
            dbname = self._administrator.ask(address, TERMINATE, [ROLE_PREFIX, SHARE])
            if dbname is None:
                return
            log.warning("sql_too_many_locks", cluster=address.cluster_id, database=dbname)

    def _loop(self) -> None:
        while True:
            time.sleep(EVERY_S)
            try:
                self.check()
            except Exception:
                # An error must not end the thread.
                log.exception("sql_lock_guard_failed")


LOCK_GUARD: Final = LockGuard()
atexit.register(LOCK_GUARD.close)


def _after_fork() -> None:
    addresses = LOCK_GUARD.addresses
    LOCK_GUARD.__init__()  # type: ignore[misc]  # threads and connections stay with the parent
    LOCK_GUARD.addresses = addresses


os.register_at_fork(after_in_child=_after_fork)
