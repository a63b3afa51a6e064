"""Cancel a query whose remaining rows exceed the limits of the answer.

A cancel also rolls back what the transaction has written, or would write with later rows or
statements. So a query is cancelled only if it cannot write: it is the request's last statement, in
a transaction that began READ ONLY and can no longer become READ WRITE, because a query that returns
rows has taken a snapshot.

In every other case the remaining rows are read and discarded until the deadline. The answer is
truncated, and every statement has run. At the deadline everything is rolled back, and the answer is
``query_timeout``.
"""

from typing import Final

import psycopg
import structlog
from psycopg.pq.abc import PGresult

from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import lookups, sqlstates
from sqlgateway.run.requests import SqlText

CANCEL_S: Final = 3.0
CANCELLED: Final = "57014"
# A CALL returns one row, and may have ended one transaction and begun another READ WRITE.
MIN_ROWS: Final = 2

log = structlog.get_logger(__name__)


class SurplusRowsCanceller:
    """Cancels the last query of a request, at most once, if that cannot lose a write.

    is_read_only: the transaction of the request is or will be READ ONLY.
    has_cancelled: a cancel was sent; a statement that ends before it arrives has run normally.
    was_cancelled_early: the cancel ended the query.
    is_discarding: rows are read only to reach the end of the answer.
    """

    def __init__(self, session: TenantConnection) -> None:
        self._session = session
        self._asked: SqlText | None = None
        self.is_read_only = False
        self.has_cancelled = self.was_cancelled_early = self.is_discarding = False

    def cancel_early(self, sql_text: SqlText, *, is_last: bool, row_count: int) -> None:
        """Cancel the text's query if no write can be lost.

        row_count: the rows of its running statement that were read so far.
        """
        if self._asked is sql_text or row_count < MIN_ROWS:
            return
        self._asked = sql_text
        session = self._session
        if not (is_last and self.is_read_only and lookups.is_single(session.login, sql_text)):
            self.is_discarding = True
            return
        self.has_cancelled = True
        try:
            session.connection.cancel_safe(timeout=CANCEL_S)
        except psycopg.Error as exc:
            # The rows are then read until their end or the deadline.
            log.warning("sql_cancel_failed", pid=session.pid, kind=type(exc).__name__)

    def is_own_cancel(self, failure: PGresult) -> bool:
        """True if a query failed because ``cancel_early`` cancelled it."""
        return self.has_cancelled and sqlstates.sqlstate_of(failure) == CANCELLED
