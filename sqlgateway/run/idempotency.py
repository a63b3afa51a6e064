"""The transaction of a request with an ``Idempotency-Key``.

The key is inserted first and its record is written last, both in the request's own transaction, so
that after a crash both exist or neither. A second request with the same key waits for the end of
the first one's transaction.
"""

import time
from collections.abc import Callable
from typing import Final

from django.conf import settings
from psycopg import pq
from psycopg.pq.abc import PGresult

from sqlgateway import errors
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import sqlstates, table
from sqlgateway.run.outcomes import FAILURES, AlreadyAnswered, StatementFailed
from sqlgateway.run.records import Key
from sqlgateway.run.requests import SqlRequest
from sqlgateway.run.sqlstates import ErrorPosition

# Long enough for usual statements. For longer ones the client should retry, not hold a slot.
WAIT_MS: Final = 2_000
LOCKED: Final = "55P03"
HOUR_S: Final = 3600
# A request deletes old records if the first byte of its key's digest is below this: one in 16.
CLEANING: Final = 16


class KeyedBoundary:
    """A transaction that commits with the record of its answer.

    render: returns the answer after all statements have run.
    answer: set after the commit, or when a stored answer was found.
    is_replayed: a stored answer was found, and no statement ran.
    """

    def __init__(
        self, request: SqlRequest, key: Key, *, render: Callable[[TenantConnection], bytes]
    ) -> None:
        self._request = request
        self._key = key
        self._digest = key.digest
        self._render = render
        self.answer = b""
        self.is_replayed = False

    def open(self, session: TenantConnection) -> None:
        """Begin and claim the key.

        Raises AlreadyAnswered if it has a record, IdempotencyKeyReused, IdempotencyKeyInUse.
        """
        failure, is_new = self._claim(session)
        if failure is not None and sqlstates.sqlstate_of(failure) in table.MISSING:
            session.run(b"ROLLBACK")
            table.create(session.login)
            failure, is_new = self._claim(session)
        if failure is not None:
            if sqlstates.sqlstate_of(failure) == LOCKED:
                raise errors.IdempotencyKeyInUse
            raise self._failed(failure)
        if not is_new:
            self._look_up(session)

    def _claim(self, session: TenantConnection) -> tuple[PGresult | None, bool]:
        session.send_text(table.claim(self._digest, self._request.begin, wait_ms=WAIT_MS))
        failure: PGresult | None = None
        is_new = False
        while (result := session.next_result()) is not None:
            if result.status in FAILURES:
                failure = result
            is_new = is_new or result.command_status == b"INSERT 0 1"
        return failure, is_new

    def _look_up(self, session: TenantConnection) -> None:
        """Look for a stored answer; return if the record is missing, too old or not authentic.

        Raises AlreadyAnswered, IdempotencyKeyReused, IdempotencyKeyInUse.
        """
        result = session.run(table.select(self._digest))
        if result.status in FAILURES:
            raise self._failed(result)
        if result.ntuples != 1:
            # It was deleted between the two statements.
            raise errors.IdempotencyKeyInUse
        kept = self._key.unseal(_bytes(result.get_value(0, 0)))
        if kept is None or kept.at < time.time() - settings.SQL.idempotency_hours * HOUR_S:
            return
        if not kept.is_same_request:
            raise errors.IdempotencyKeyReused
        self.answer, self.is_replayed = kept.answer, True
        raise AlreadyAnswered

    def check(self, session: TenantConnection, number: int) -> None:
        """Raise TransactionEnded if a statement ended the transaction with the key."""
        if session.status == pq.TransactionStatus.IDLE:
            raise errors.TransactionEnded(
                "It committed or rolled back what ran before it, without a record of its key.",
                extra={"statement": number},
            )

    def close(self, session: TenantConnection, *, was_cancelled_early: bool) -> None:
        """Write the record and commit.

        Raises ResultTooWide, after a rollback, if the answer is too long to be stored.
        """
        if was_cancelled_early or session.status == pq.TransactionStatus.INERROR:
            session.run(b"ROLLBACK")
            raise errors.TransactionNotCommitted("One of its statements failed.")
        answer = self._render(session)
        if len(answer) > settings.SQL.idempotency_bytes:
            session.run(b"ROLLBACK")
            raise errors.ResultTooWide(
                f"An answer of at most {settings.SQL.idempotency_bytes} bytes can be kept for an "
                "Idempotency-Key: return fewer rows.",
                extra={"outcome": "rolled_back"},
            )
        self._write(session, answer)
        result = session.run(b"COMMIT")
        if result.status in FAILURES:
            raise self._failed(result)
        self.answer = answer
        if self._digest[0] < CLEANING:
            session.run(table.clean(settings.SQL.idempotency_hours))

    def _write(self, session: TenantConnection, answer: bytes) -> None:
        record = self._key.seal(answer, now=time.time())
        text = b"\\x" + record.hex().encode()
        session.send_statement(table.update(self._digest), [text])
        result = session.last_result()
        if result.status in FAILURES:
            raise self._failed(result)
        if result.command_status != b"UPDATE 1":
            session.run(b"ROLLBACK")
            raise errors.IdempotencyNotSupported("The request removed the record of its own key.")

    def _failed(self, result: PGresult) -> StatementFailed:
        return StatementFailed(result, ErrorPosition("", len(self._request.texts)))


def _bytes(value: bytes | None) -> bytes:
    """Return the bytes of a bytea in hexadecimal format; no bytes if it has another format."""
    try:
        return bytes.fromhex((value or b"").decode().removeprefix("\\x"))
    except ValueError:
        return b""
