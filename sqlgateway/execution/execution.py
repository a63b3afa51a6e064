"""Run one request on one connection: send, read, cut, commit, clean up.

Cutting a result and writes: rows past the cap are not needed, but their statement may have written
or others may follow it, and cancelling would silently undo that. So the query is cancelled only if
nothing can be lost: it is the request's last statement and its transaction has not written. In
every other case the remaining rows are read and discarded, up to the deadline; the answer is then
truncated and every statement has run. At the deadline everything is rolled back, and the answer is
``query_timeout``.
"""

import time
from dataclasses import dataclass, field
from typing import Final

import psycopg
import structlog
from django.conf import settings
from psycopg import pq
from psycopg.pq.abc import PGresult

from platform_site.lib.errors import PlatformError
from sqlgateway import errors
from sqlgateway.connection.administrator import ADMINISTRATOR
from sqlgateway.connection.tenant_connection import ConnectionLost, ResultOverflow, TenantConnection
from sqlgateway.connection.watchdog import WATCHDOG
from sqlgateway.execution import lookups, sqlstates
from sqlgateway.execution.requests import Piece, SqlRequest
from sqlgateway.execution.sqlstates import ErrorPosition
from sqlgateway.formats.results import Budget, Collector, Statement

Status = pq.ExecStatus
Transaction = pq.TransactionStatus

# After the deadline: time for the watchdog's cancel and termination to be noticed.
GRACE_S: Final = 3.0
COPIES: Final = frozenset({Status.COPY_IN, Status.COPY_OUT, Status.COPY_BOTH})
FAILURES: Final = frozenset({Status.FATAL_ERROR, Status.BAD_RESPONSE})
# SQLSTATEs that the watchdog's cancel and termination cause.
LATE: Final = frozenset({"57014", "57P01"})

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Outcome:
    """The result of a request.

    error: if set, there are no statements. is_clean: the connection may be used again.
    """

    statements: list[Statement] = field(default_factory=list)
    notices: list[dict[str, str]] = field(default_factory=list)
    truncated: bool = False
    error: PlatformError | None = None
    is_clean: bool = True


class Failed(Exception):
    """A piece failed; ``result`` is the server's error."""

    def __init__(self, result: PGresult, spot: ErrorPosition) -> None:
        super().__init__()
        self.result = result
        self.spot = spot


class Execution:
    """One request on one connection."""

    def __init__(self, session: TenantConnection, request: SqlRequest) -> None:
        self._session = session
        self._request = request
        self._budget = Budget(
            max_rows=min(request.max_rows, settings.SQL.max_rows),
            bytes_left=settings.SQL.max_bytes,
            rows_as=request.rows,
            numeric=request.numeric,
        )
        self._outcome = Outcome()
        self._finished: list[tuple[Collector, str]] = []
        self._dropped = 0
        self._has_cancelled = self._was_cut = False
        self._asked_piece = 0
        self._looks_late = False

    def run(self) -> Outcome:
        """Run the request; errors of the server are in the outcome, not raised."""
        timeout_s = min(self._request.timeout_ms, settings.SQL.timeout_ms) / 1000
        deadline = time.monotonic() + timeout_s
        self._session.give_up_at = deadline + settings.SQL.grace_ms / 1000 + GRACE_S
        watch = WATCHDOG.watch(self._session, deadline)
        outcome = self._outcome
        try:
            self._run()
        except Failed as failed:
            outcome.error = self._refusal(failed)
        except PlatformError as error:
            outcome.error = error
        except ResultOverflow:
            outcome.is_clean = False
            outcome.error = self._end_overflow()
        except ConnectionLost:
            outcome.is_clean = False
            outcome.error = self._lost()
            # A backend that is terminated while it writes to the gateway sends no last message.
            self._looks_late = watch.was_open
        if WATCHDOG.finish(watch):
            outcome.is_clean = False
            if self._looks_late and not watch.is_abandoned:
                outcome.error = errors.QueryTimeout(f"The limit was {timeout_s:g} s.")
        outcome.truncated = any(statement.truncated for statement in outcome.statements)
        outcome.truncated = outcome.truncated or self._dropped > 0
        return outcome

    def _run(self) -> None:
        request = self._request
        if request.opens_transaction:
            self._command(request.begin)
        for number, piece in enumerate(request.pieces, start=1):
            self._piece(piece, number)
            if request.is_batch and self._session.status == Transaction.IDLE:
                raise errors.TransactionEnded(
                    "It committed or rolled back the statements before it; the statements "
                    "after it did not run.",
                    extra={"statement": number},
                )
        self._close_transaction()
        self._collect()

    def _close_transaction(self) -> None:
        """Commit the gateway's transaction; roll back and report one that the text left open."""
        if self._session.status == Transaction.IDLE:
            return
        if self._was_cut:
            # It had written nothing.
            self._session.run(b"ROLLBACK")
            return
        if not self._request.opens_transaction:
            self._session.run(b"ROLLBACK")
            raise errors.TransactionNotCommitted("End it with COMMIT in the same text.")
        was_aborted = self._session.status == Transaction.INERROR
        self._command(b"COMMIT")
        if was_aborted:
            raise errors.TransactionNotCommitted("One of its statements failed.")

    def _command(self, text: bytes) -> None:
        result = self._session.run(text)
        if result.status in FAILURES:
            # A COMMIT fails for what the statements did: a deferred constraint, a serialization.
            raise Failed(result, ErrorPosition("", len(self._request.pieces)))

    # --- one piece ------------------------------------------------------------------------------

    def _piece(self, piece: Piece, number: int) -> None:
        session = self._session
        if piece.params is None:
            session.send_text(piece.sent)
        else:
            session.send_statement(piece.sent, piece.params)
        collector: Collector | None = None
        failure: PGresult | None = None
        tag = ""
        done = 0
        while (result := self._next(failure)) is not None:
            status = result.status
            # libpq puts the tag on a statement's last rows, or on the empty result after them.
            tag = _tag(result) or tag
            if status == Status.TUPLES_CHUNK:
                collector = self._rows(result, collector)
                if collector.is_full:
                    self._cut(piece, number)
            elif status in COPIES:
                self._refuse_copy()
            elif status in FAILURES:
                failure = failure or result
            else:
                if status == Status.TUPLES_OK:
                    collector = self._rows(result, collector)
                self._finish(collector or Collector(self._budget), tag)
                collector, tag = None, ""
                done += 1
        if failure is not None and collector is not None and self._is_our_cancel(failure):
            self._was_cut = True
            self._finish(collector, "")
        elif failure is not None:
            place = number if self._request.is_batch else _place(failure, done)
            raise Failed(failure, ErrorPosition(piece.text[piece.offset :], place, piece.offset))

    def _next(self, failure: PGresult | None) -> PGresult | None:
        try:
            return self._session.next_result()
        except ConnectionLost:
            # The server's last message came first: it explains more than the lost connection.
            if failure is not None and sqlstates.is_fatal(failure):
                return None
            raise

    def _rows(self, result: PGresult, collector: Collector | None) -> Collector:
        session = self._session
        if collector is None:
            collector = Collector(self._budget)
            collector.start(result, session.kinds)
        collector.add(result, is_plain=session.is_plain, held_bytes=session.last_bytes)
        return collector

    def _finish(self, collector: Collector, tag: str) -> None:
        self._finished.append((collector, tag))
        if len(self._finished) > settings.SQL.max_statements:
            # The last statement is always reported; of the others the first ones.
            del self._finished[-2]
            self._dropped += 1

    # --- cutting --------------------------------------------------------------------------------

    def _cut(self, piece: Piece, number: int) -> None:
        """Cancel a query whose further rows are not needed, if that cannot lose a write.

        A statement that ends before the cancel reaches it has run normally.
        """
        if self._asked_piece == number:
            return
        self._asked_piece = number
        session = self._session
        is_last = number == len(self._request.pieces)
        if not is_last or not lookups.is_single(session.login, piece):
            return
        if ADMINISTRATOR.has_written(session):
            return
        self._has_cancelled = True
        self._outcome.is_clean = False
        try:
            session.connection.cancel_safe(timeout=GRACE_S)
        except psycopg.Error as exc:
            # The rows are then read to their end, or to the deadline.
            log.warning("sql_cancel_failed", pid=session.pid, kind=type(exc).__name__)

    def _is_our_cancel(self, failure: PGresult) -> bool:
        return self._has_cancelled and sqlstates.sqlstate_of(failure) == "57014"

    def _refuse_copy(self) -> None:
        """End a COPY and report what happened to its transaction.

        COPY FROM STDIN is refused while the server waits for data. COPY TO STDOUT may have ended,
        and its transaction committed, before it could be stopped: it is read to its end.
        """
        self._outcome.is_clean = False
        raise errors.CopyNotSupported(
            "Use INSERT to write, and SELECT to read.",
            extra={"hint": "Accept: text/csv", "outcome": self._end_copy()},
        )

    def _end_copy(self) -> str:
        try:
            has_failed = self._session.end_copy()
        except ConnectionLost:
            return "unknown"
        is_kept = not has_failed and self._session.status == Transaction.IDLE
        return "committed" if is_kept else "rolled_back"

    # --- errors ----------------- ---------------------------------------------------------------

    def _end_overflow(self) -> PlatformError:
        """Terminate the backend, usually while it still sends, so that it cannot commit."""
        was_open = ADMINISTRATOR.is_open(self._session)
        was_told = ADMINISTRATOR.terminate(self._session)
        outcome = self._session.last_words()
        if outcome == "rolled_back" and not (was_open and was_told):
            outcome = "unknown"
        return errors.ResultTooWide(
            f"Single rows must stay well below {settings.SQL.buffer_bytes} bytes.",
            extra={"outcome": outcome},
        )

    def _lost(self) -> PlatformError:
        if self._session.login.role == "reader":
            return errors.EngineAway("The connection was lost; a reader changes nothing.")
        return errors.OutcomeUnknown(extra={"retryable": False})

    def _refusal(self, failed: Failed) -> PlatformError:
        session = self._session
        state = sqlstates.sqlstate_of(failed.result)
        self._looks_late = state in LATE
        if sqlstates.is_fatal(failed.result):
            self._outcome.is_clean = False
            # A crash can cut the connection at any moment, during a commit as well.
            if state == "57P02":
                return self._lost()
        return sqlstates.refusal(failed.result, session.login, failed.spot)

    # --- the answer -----------------------------------------------------------------------------

    def _collect(self) -> None:
        """Look up unknown types' names, then finish the statements."""
        session = self._session
        unknown = set[int]().union(*(collector.unknown for collector, _ in self._finished))
        if unknown:
            lookups.learn_kinds(session, unknown)
        self._outcome.statements = [
            collector.finish(tag, session.kinds) for collector, tag in self._finished
        ]
        self._outcome.notices = [
            sqlstates.notice(notice, session.login) for notice in session.notices
        ]


def _place(failure: PGresult, done: int) -> int:
    """Return which statement of a text failed, from 1; 0 if the text could not be parsed."""
    if done == 0 and sqlstates.sqlstate_of(failure) == "42601":
        return 0
    return done + 1


def _tag(result: PGresult) -> str:
    return (result.command_status or b"").decode("ascii", "replace")
