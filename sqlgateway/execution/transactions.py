"""The transaction around the pieces of a request."""

from typing import Final, Protocol

from psycopg import pq

from sqlgateway import errors
from sqlgateway.connection.tenant_connection import TenantConnection
from sqlgateway.execution.outcomes import Failed
from sqlgateway.execution.requests import SqlRequest
from sqlgateway.execution.sqlstates import ErrorPosition

Status = pq.TransactionStatus

FAILURES: Final = frozenset({pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE})


class Boundary(Protocol):
    """What happens before, between and after the pieces of a request."""

    def open(self, session: TenantConnection) -> None:
        """Begin, before the first piece; raise AlreadyAnswered if none is to run."""

    def check(self, session: TenantConnection, number: int) -> None:
        """Look at the transaction after the piece of this number, from 1."""

    def close(self, session: TenantConnection, *, was_cut: bool) -> None:
        """End, after the last piece; was_cut: its query was cancelled and had written nothing."""


class RequestBoundary:
    """The transaction of one request: nothing of it stays open."""

    def __init__(self, request: SqlRequest) -> None:
        self._request = request

    def open(self, session: TenantConnection) -> None:
        """Begin if the request asks for one transaction around its pieces."""
        if self._request.opens_transaction:
            self._command(session, self._request.begin)

    def check(self, session: TenantConnection, number: int) -> None:
        """Raise TransactionEnded if a statement of ``queries`` ended their transaction."""
        if self._request.is_batch and session.status == Status.IDLE:
            raise errors.TransactionEnded(
                "It committed or rolled back the statements before it; the statements "
                "after it did not run.",
                extra={"statement": number},
            )

    def close(self, session: TenantConnection, *, was_cut: bool) -> None:
        """Commit the gateway's transaction; roll back and report one that the text left open."""
        if session.status == Status.IDLE:
            return
        if was_cut:
            session.run(b"ROLLBACK")
            return
        if not self._request.opens_transaction:
            session.run(b"ROLLBACK")
            raise errors.TransactionNotCommitted("End it with COMMIT in the same text.")
        was_aborted = session.status == Status.INERROR
        self._command(session, b"COMMIT")
        if was_aborted:
            raise errors.TransactionNotCommitted("One of its statements failed.")

    def _command(self, session: TenantConnection, text: bytes) -> None:
        result = session.run(text)
        if result.status in FAILURES:
            # A COMMIT fails for what the statements did: a deferred constraint, a serialization.
            raise Failed(result, ErrorPosition("", len(self._request.pieces)))
