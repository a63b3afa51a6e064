"""Run texts on a connection and pass their results to a sink."""

from collections.abc import Iterator
from typing import Final

from psycopg import pq
from psycopg.pq.abc import PGresult

from sqlgateway import errors
from sqlgateway.pg.message_stream import ConnectionLost
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import sqlstates
from sqlgateway.run.outcomes import FAILURES, RequestOutcome, StatementFailed
from sqlgateway.run.parameter_types import NotParsed, decide
from sqlgateway.run.requests import SqlText
from sqlgateway.run.sinks import Sink
from sqlgateway.run.sqlstates import ErrorPosition
from sqlgateway.run.surplus_rows import SurplusRowsCanceller

Status = pq.ExecStatus

COPIES: Final = frozenset({Status.COPY_IN, Status.COPY_OUT, Status.COPY_BOTH})
SYNTAX_ERROR: Final = "42601"


class TextRunner:
    """Runs the texts of one request, one after the other."""

    def __init__(
        self,
        session: TenantConnection,
        sink: Sink,
        *,
        canceller: SurplusRowsCanceller,
        outcome: RequestOutcome,
    ) -> None:
        self._session = session
        self._sink = sink
        self._canceller = canceller
        self._outcome = outcome

    def run(self, sql_text: SqlText, *, number: int = 0, is_last: bool = True) -> Iterator[None]:
        """Run a text; yield after each chunk of rows.

        number: of its statement in the request; 0 if the text may contain several statements.
        Raises StatementFailed, CopyNotSupported, ConnectionLost, ResultOverflow.
        """
        self._send(sql_text, number)
        sink, canceller = self._sink, self._canceller
        failure: PGresult | None = None
        tag = ""
        has_rows = False
        row_count = done = 0
        while (result := self._next(failure)) is not None:
            status = result.status
            # libpq puts the tag on a statement's last rows, or on the empty result after them.
            tag = _tag(result) or tag
            if status in {Status.TUPLES_CHUNK, Status.TUPLES_OK}:
                self._rows(result, is_first=not has_rows)
                has_rows = True
                row_count += result.ntuples
                if status == Status.TUPLES_CHUNK and sink.is_full:
                    canceller.cancel_early(sql_text, is_last=is_last, row_count=row_count)
                yield
            if status == Status.COPY_OUT and sink.takes_copy:
                yield from self._copy_lines()
            elif status in COPIES:
                self._refuse_copy()
            elif status in FAILURES:
                failure = failure or result
            elif status != Status.TUPLES_CHUNK:
                self._end(tag)
                has_rows, tag = False, ""
                row_count, done = 0, done + 1
        if failure is not None and has_rows and canceller.is_own_cancel(failure):
            canceller.was_cancelled_early = True
            self._end("")
        elif failure is not None:
            place = number or _place(failure, done)
            raise StatementFailed(failure, _position(sql_text, place))

    def _send(self, sql_text: SqlText, number: int) -> None:
        session = self._session
        if sql_text.params is None:
            session.send_text(sql_text.sent)
            return
        try:
            params = decide(session, sql_text.sent, sql_text.params)
        except NotParsed as refused:
            place = number or _place(refused.result, 0)
            raise StatementFailed(refused.result, _position(sql_text, place)) from None
        session.send_statement(sql_text.sent, params)

    def _next(self, failure: PGresult | None) -> PGresult | None:
        try:
            return self._session.next_result()
        except ConnectionLost:
            # The server sent an error before it closed the connection, which explains more.
            if failure is not None and sqlstates.is_fatal(failure):
                return None
            raise

    def _rows(self, result: PGresult, *, is_first: bool) -> None:
        if is_first:
            self._sink.start(result, self._session)
        self._sink.add(result, self._session)

    def _copy_lines(self) -> Iterator[None]:
        for lines in self._session.copy_lines():
            self._sink.add_lines(lines)
            yield

    def _end(self, tag: str) -> None:
        self._outcome.has_committed |= tag == "COMMIT"
        self._sink.end(tag)

    def _refuse_copy(self) -> None:
        """End a COPY and report what happened to its transaction.

        COPY FROM STDIN is refused while the server waits for data. COPY TO STDOUT is read to its
        end, because it may have ended, and its transaction committed, before a cancel arrives.
        """
        self._outcome.is_clean = False
        raise errors.CopyNotSupported(
            "Use INSERT to write, and SELECT to read.",
            extra={"hint": "Accept: text/csv, or POST /v1/sql/import", "outcome": self._end_copy()},
        )

    def _end_copy(self) -> str:
        try:
            has_failed = self._session.end_copy()
        except ConnectionLost:
            return "unknown"
        is_kept = not has_failed and self._session.status == pq.TransactionStatus.IDLE
        return "committed" if is_kept else "rolled_back"


def _position(sql_text: SqlText, place: int) -> ErrorPosition:
    return ErrorPosition(sql_text.text[sql_text.offset :], place, sql_text.offset)


def _place(failure: PGresult, done: int) -> int:
    """Return the number of the statement that failed, from 1; 0 if the text cannot be parsed."""
    if done == 0 and sqlstates.sqlstate_of(failure) == SYNTAX_ERROR:
        return 0
    return done + 1


def _tag(result: PGresult) -> str:
    return (result.command_status or b"").decode("ascii", "replace")
