"""End a query whose further rows are not needed.

Rows past the cap are not needed, but their statement may have written or others may follow it, and
cancelling would silently undo that. So the query is cancelled only if nothing can be lost: it is
the request's last statement and its transaction has not written. In every other case the remaining
rows are read and discarded, up to the deadline; the answer is then truncated and every statement
has run. At the deadline everything is rolled back, and the answer is ``query_timeout``.
"""

from typing import Final

import psycopg
import structlog
from psycopg.pq.abc import PGresult

from sqlgateway.connection.administrator import ADMINISTRATOR
from sqlgateway.connection.tenant_connection import TenantConnection
from sqlgateway.execution import lookups, sqlstates
from sqlgateway.execution.requests import Piece

CANCEL_S: Final = 3.0
CANCELLED: Final = "57014"

log = structlog.get_logger(__name__)


class Cutter:
    """Cancels the last query of a request once, if that cannot lose a write.

    has_cancelled: a cancel was sent; a statement that ends before it arrives has run normally.
    was_cut: the cancel ended the query.
    """

    def __init__(self, session: TenantConnection) -> None:
        self._session = session
        self._asked: Piece | None = None
        self.has_cancelled = self.was_cut = False

    def cut(self, piece: Piece, *, is_last: bool) -> None:
        """Cancel the piece's query if nothing can be lost; asked once for each piece."""
        if self._asked is piece:
            return
        self._asked = piece
        session = self._session
        if not is_last or not lookups.is_single(session.login, piece):
            return
        if ADMINISTRATOR.has_written(session):
            return
        self.has_cancelled = True
        try:
            session.connection.cancel_safe(timeout=CANCEL_S)
        except psycopg.Error as exc:
            # The rows are then read to their end, or to the deadline.
            log.warning("sql_cancel_failed", pid=session.pid, kind=type(exc).__name__)

    def is_own_cancel(self, failure: PGresult) -> bool:
        """True if a query failed because it was cut."""
        return self.has_cancelled and sqlstates.sqlstate_of(failure) == CANCELLED
