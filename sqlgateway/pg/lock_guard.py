"""Keep one tenant from filling the lock table, which all databases of a server share.

A transaction holds a lock for each table that it created or changed. When the server's lock table
is full, other tenants cannot create or change tables ("out of shared memory"), and PostgreSQL has
no limit for each role or database. So each process has a thread for each cluster, which checks it
while it is in use: while tenants hold more than SHARE of the locks, it terminates a session of the
database that holds the most locks, beginning with the session that holds the most.
"""

import atexit
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import psycopg
import structlog

from common.every import Every
from sqlgateway.clusters.servers import ClusterAddress, said
from sqlgateway.names import ROLE_PREFIX
from sqlgateway.pg.administrator import Administrator

# Filling the table takes seconds.
EVERY_S: Final = 0.5
# The fraction of the server's lock table above which sessions are terminated. The rest remains for
# other tenants until that has happened.
SHARE: Final = 0.5
# The connection to a cluster is closed when it was not in use at this many checks.
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
        self._checks: dict[int, Every] = {}
        self._idle_checks: Counter[int] = Counter()
        self._administrator = Administrator()
        self.addresses: Callable[[], Iterable[ClusterAddress]] = tuple

    def start(self, cluster_id: int) -> None:
        """Start a cluster's thread if there is none; cheap enough to be called for each request."""
        if cluster_id in self._checks:
            return
        with self._lock:
            if cluster_id not in self._checks:
                check = partial(self.check, cluster_id)
                self._checks[cluster_id] = Every(EVERY_S, check, name="sql-locks")
            self._checks[cluster_id].start()

    def check(self, cluster_id: int) -> None:
        """Terminate sessions that hold too many locks on a cluster, if it is in use."""
        address = next((each for each in self.addresses() if each.cluster_id == cluster_id), None)
        if address is None:
            self._idle_checks[cluster_id] += 1
            if self._idle_checks[cluster_id] == MAX_IDLE_CHECKS:
                self._administrator.forget(cluster_id)
            return
        self._idle_checks[cluster_id] = 0
        try:
            self._check(address)
        except psycopg.Error as exc:
            log.info("sql_locks_unknown", cluster=cluster_id, said=said(exc))

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
