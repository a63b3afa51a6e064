"""Keep one tenant from filling the lock table, which all databases of a server share.

A transaction holds a lock for each table that it created or changed. When the server's lock table
is full, other tenants cannot create or change tables ("out of shared memory"), and PostgreSQL has
no limit for each role or database. So each process has a thread for each cluster, which checks it
while it is in use: while tenants hold more than SHARE of the locks, it terminates a session of the
database that holds the most locks, beginning with the session that holds the most.
"""

import atexit
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import psycopg
import structlog

from sqlgateway.clusters.servers import ClusterAddress, said
from sqlgateway.names import ROLE_PREFIX
from sqlgateway.pg.administrator import Administrator

# Filling the table takes seconds.
EVERY_S: Final = 0.5
# The fraction of the server's lock table above which sessions are terminated. The rest remains for
# other tenants until that has happened.
SHARE: Final = 0.5
# A thread ends, and closes its connection, when its cluster was not in use at this many checks.
MAX_IDLE_CHECKS: Final = 20
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
    """The threads.

    addresses: a function that returns the clusters in use by this process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By cluster with a thread: for how many checks it has not been in use.
        self._idle_checks: dict[int, int] = {}
        self._administrator = Administrator()
        self.addresses: Callable[[], Iterable[ClusterAddress]] = tuple

    def start(self, cluster_id: int) -> None:
        """Start a cluster's thread if there is none; cheap enough to be called for each request."""
        with self._lock:
            is_running = cluster_id in self._idle_checks
            self._idle_checks[cluster_id] = 0
        if not is_running:
            run = partial(self._run, cluster_id)
            threading.Thread(target=run, name="sql-locks", daemon=True).start()

    def _run(self, cluster_id: int) -> None:
        """Check a cluster until it has not been in use for a while."""
        while not self._is_over(cluster_id):
            time.sleep(EVERY_S)
            try:
                is_used = self.check(cluster_id)
            except Exception:
                log.exception("sql_locks_failed", cluster=cluster_id)
                is_used = True
            with self._lock:
                self._idle_checks[cluster_id] += 1
                if is_used:
                    self._idle_checks[cluster_id] = 0

    def _is_over(self, cluster_id: int) -> bool:
        if self._idle_checks[cluster_id] < MAX_IDLE_CHECKS:
            return False
        self._administrator.forget(cluster_id)
        with self._lock:
            # It may be in use again.
            if self._idle_checks[cluster_id] < MAX_IDLE_CHECKS:
                return False
            del self._idle_checks[cluster_id]
            return True

    def check(self, cluster_id: int) -> bool:
        """Terminate sessions that hold too many locks on a cluster; False if it is not in use."""
        address = next((each for each in self.addresses() if each.cluster_id == cluster_id), None)
        if address is None:
            return False
        try:
            self._check(address)
        except psycopg.Error as exc:
            log.info("sql_locks_unknown", cluster=cluster_id, said=said(exc))
        return True

    def close(self) -> None:
        """Close the administrative connections, at the end of the process."""
        self._administrator.close()

    def _check(self, address: ClusterAddress) -> None:
        for _ in range(ROUNDS):
            dbname = self._administrator.ask(address, TERMINATE, [ROLE_PREFIX, SHARE])
            if dbname is None:
                return
            log.warning("sql_too_many_locks", cluster=address.cluster_id, database=dbname)


LOCK_GUARD: Final = LockGuard()
atexit.register(LOCK_GUARD.close)
