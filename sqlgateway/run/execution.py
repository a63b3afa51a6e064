"""Run the texts of a request on one connection, up to its deadline, and pass results to a sink."""

import time
from collections.abc import Generator, Iterator
from functools import partial
from typing import Final

from psycopg import pq
from psycopg.pq.abc import PGresult

from common import tracing
from common.errors import PlatformError
from sqlgateway import errors
from sqlgateway.pg.message_stream import ConnectionLost, ResultOverflow
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.pg.watchdog import ENDED_SQLSTATES, WATCHDOG, give_up_at
from sqlgateway.run import outcomes, sqlstates
from sqlgateway.run.boundaries import Boundary, RequestBoundary, may_commit
from sqlgateway.run.memory import LARGE_RESULTS, LargeResult
from sqlgateway.run.outcomes import FAILURES, AlreadyAnswered, RequestOutcome, StatementFailed
from sqlgateway.run.parameters import NotParsed, decide
from sqlgateway.run.requests import SqlRequest, SqlText
from sqlgateway.run.results import Sink, SurplusRowsCanceller
from sqlgateway.run.running_requests import Cancellation
from sqlgateway.run.sqlstates import ErrorPosition

Status = pq.ExecStatus
COPIES: Final = frozenset({Status.COPY_IN, Status.COPY_OUT, Status.COPY_BOTH})
SYNTAX_ERROR: Final = "42601"
READ_ONLY_HINT: Final = (
    "The answer was full, and the rest was read in case it writes. With read_only: true it is cut."
)


class Execution:
    """One request on one connection.

    Errors of the server are in the outcome, not raised.

    boundary: the transaction around the texts; by default one that ends with the request.
    cancellation: cancels the request from another thread.
    is_lost: the connection broke.
    """

    def __init__(
        self,
        connection: TenantConnection,
        request: SqlRequest,
        sink: Sink,
        *,
        boundary: Boundary | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self._connection = connection
        self._request = request
        self._sink = sink
        self._boundary = boundary or RequestBoundary(request)
        self._cancellation = cancellation or Cancellation()
        self._canceller = SurplusRowsCanceller(connection)
        self._looks_late = self.is_lost = self._is_over = self._is_inside = False
        self.outcome = RequestOutcome()

    def run(self) -> RequestOutcome:
        """Run the request to its end."""
        # The statement's text and values may be confidential, so only their number is traced.
        attributes: tracing.Attributes = {
            "db.system.name": "postgresql",
            "db.statements": len(self._request.texts),
        }
        with tracing.span("SQL", "client", attributes) as span:
            for _ in self.steps():
                pass
            if span is not None and self.outcome.error is not None:
                span.set_attribute("error.type", self.outcome.error.code)
        return self.outcome

    def steps(self) -> Generator[None]:
        """Run the request, yielding after each chunk of rows that the sink got.

        The deadline also applies while the caller does not ask for the next step. A caller that
        stops early must close the iterator and then the connection.
        """
        own_ms = self._connection.timeout_ms
        timeout_ms = self._request.timeout_ms
        timeout_s = (timeout_ms if own_ms is None else min(timeout_ms, own_ms)) / 1000
        deadline = time.monotonic() + timeout_s
        self._connection.deadline = deadline
        large = LargeResult(
            LARGE_RESULTS, deadline, organization_id=self._connection.login.organization_id
        )
        self._connection.on_held = large.hold
        self._connection.give_up_at = give_up_at(deadline)
        watch = WATCHDOG.watch(self._connection, deadline)
        self._cancellation.attach(partial(WATCHDOG.cancel, watch))
        try:
            yield from self._run()
        finally:
            was_late = WATCHDOG.finish(watch)
            self._connection.on_held = None
            large.release()
        if was_late or self._canceller.has_cancelled:
            self.outcome.is_clean = False
        # A backend that is terminated while it writes to the gateway does not send an error.
        is_open = self._looks_late or (watch.was_open and self.is_lost)
        if was_late and is_open and watch.is_abandoned:
            # Terminated, if the cancel came before the statement began.
            self.outcome.error = errors.QueryCancelled("The client went away.")
        elif was_late and is_open:
            self.outcome.error = self._ended_late(timeout_s)
        if self.outcome.error is not None and self._may_have_committed(self.outcome.error):
            self.outcome.error = outcomes.after_commit(self.outcome.error)
        error, notices = self.outcome.error, self.outcome.notices
        if error is not None and notices and "notices" in error.members:
            error.extra["notices"] = notices

    def _may_have_committed(self, error: PlatformError) -> bool:
        """True if a COMMIT in the text or a routine may have kept changes of a failed request."""
        if self._connection.login.role == "reader":
            return False
        if self.outcome.has_committed:
            return not self._is_over
        if self._is_inside:
            # In a transaction that was opened before, PostgreSQL does not let a routine commit.
            return False
        is_undone = isinstance(error, errors.QueryTimeout | errors.QueryCancelled)
        is_undone = is_undone or bool(error.extra.get("retryable"))
        return is_undone and any(may_commit(each.text) for each in self._request.texts)

    def _ended_late(self, timeout_s: float) -> PlatformError:
        if self._cancellation.is_requested:
            return errors.QueryCancelled("Its cancellation was requested.")
        hint = {"hint": READ_ONLY_HINT} if self._canceller.is_discarding else {}
        return errors.QueryTimeout(f"The limit was {timeout_s:g} s.", extra=hint)

    def _run(self) -> Iterator[None]:
        """Run the request; an exception becomes the outcome's error."""
        outcome, connection = self.outcome, self._connection
        try:
            yield from self._run_texts()
        except AlreadyAnswered:
            return
        except StatementFailed as failed:
            outcome.error = outcomes.refusal(connection, failed)
            # The server may have become another one's standby.
            is_refusing = isinstance(outcome.error, errors.EngineUnavailable)
            outcome.is_clean = outcome.is_clean and not failed.is_fatal and not is_refusing
            self._looks_late = failed.sqlstate in ENDED_SQLSTATES
        except PlatformError as error:
            outcome.error = error
            if self._is_over and isinstance(error, errors.ResultNotText):
                error.extra["outcome"] = "committed"
            if connection.status == pq.TransactionStatus.ACTIVE and outcome.is_clean:
                outcome.is_clean = False
                outcome.error = outcomes.end_early(connection, error)
        except ResultOverflow:
            outcome.is_clean = False
            outcome.error = outcomes.end_overflow(connection)
        except ConnectionLost:
            outcome.is_clean = False
            outcome.error = outcomes.connection_lost(connection, was_sent=outcome.was_sent)
            self.is_lost = True

    def _run_texts(self) -> Iterator[None]:
        connection, request = self._connection, self._request
        runner = TextRunner(connection, self._sink, canceller=self._canceller, outcome=self.outcome)
        # The mode of a transaction that is already open is unknown here.
        begins = connection.status == pq.TransactionStatus.IDLE
        self._canceller.is_read_only = begins and connection.starts_read_only
        self._boundary.open(connection)
        self._is_inside = connection.status != pq.TransactionStatus.IDLE
        for number, sql_text in enumerate(request.texts, start=1):
            yield from runner.run(
                sql_text,
                number=number if request.is_batch else 0,
                is_last=number == len(request.texts),
            )
            self._boundary.check(connection, number)
        self._boundary.close(connection, was_cancelled_early=self._canceller.was_cancelled_early)
        self._is_over = True
        self._sink.complete(connection)
        outcomes.take_notices(connection, self.outcome)


class TextRunner:
    """Runs the texts of one request, one after the other."""

    def __init__(
        self,
        connection: TenantConnection,
        sink: Sink,
        *,
        canceller: SurplusRowsCanceller,
        outcome: RequestOutcome,
    ) -> None:
        self._connection = connection
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
            # libpq reads those of the next statement of a text together with the end of this one.
            self._take_notices(sql_text, number)
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
            statement = number or _statement_number(failure, done)
            raise StatementFailed(failure, _position(sql_text, statement))

    def _send(self, sql_text: SqlText, number: int) -> None:
        connection = self._connection
        if sql_text.params is None:
            self._outcome.was_sent = True
            connection.send_text(sql_text.sent)
            return
        try:
            params = decide(connection, sql_text.sent, sql_text.params)
        except NotParsed as refused:
            statement = number or _statement_number(refused.result, 0)
            raise StatementFailed(refused.result, _position(sql_text, statement)) from None
        self._outcome.was_sent = True
        connection.send_statement(sql_text.sent, params)

    def _next(self, failure: PGresult | None) -> PGresult | None:
        try:
            return self._connection.next_result()
        except ConnectionLost:
            # The server sent an error before it closed the connection, which explains more.
            if failure is not None and sqlstates.is_fatal(failure):
                return None
            raise

    def _take_notices(self, sql_text: SqlText, statement: int) -> None:
        if len(self._connection.notices) > len(self._outcome.notices):
            spot = _position(sql_text, statement)
            outcomes.take_notices(self._connection, self._outcome, spot)

    def _rows(self, result: PGresult, *, is_first: bool) -> None:
        if is_first:
            self._sink.start(result, self._connection)
        self._sink.add(result, self._connection)

    def _copy_lines(self) -> Iterator[None]:
        for lines in self._connection.copy_lines():
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
            has_failed = self._connection.end_copy()
        except ConnectionLost:
            return "unknown"
        is_kept = not has_failed and self._connection.status == pq.TransactionStatus.IDLE
        return "committed" if is_kept else "rolled_back"


def _position(sql_text: SqlText, statement: int) -> ErrorPosition:
    return ErrorPosition(sql_text.text[sql_text.offset :], statement, sql_text.offset)


def _statement_number(failure: PGresult, done: int) -> int:
    """Return the number of the statement that failed, from 1; 0 if the text cannot be parsed."""
    if done == 0 and sqlstates.sqlstate_of(failure) == SYNTAX_ERROR:
        return 0
    return done + 1


def _tag(result: PGresult) -> str:
    return (result.command_status or b"").decode("ascii", "replace")
