"""Run one request on one connection, up to its deadline."""

import time
from collections.abc import Generator, Iterator
from functools import partial
from typing import Final

from psycopg import pq

from common import tracing
from common.errors import PlatformError
from sqlgateway import errors
from sqlgateway.pg.message_stream import ConnectionLost, ResultOverflow
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.pg.watchdog import ENDED_SQLSTATES, WATCHDOG, give_up_at
from sqlgateway.run import outcomes, sqlstates
from sqlgateway.run.boundaries import Boundary, RequestBoundary
from sqlgateway.run.manual_cancellation import Cancellation
from sqlgateway.run.memory import LARGE_RESULTS, LargeResult
from sqlgateway.run.outcomes import AlreadyAnswered, RequestOutcome, StatementFailed
from sqlgateway.run.requests import SqlRequest
from sqlgateway.run.sinks import Sink
from sqlgateway.run.surplus_rows import SurplusRowsCanceller
from sqlgateway.run.text_runner import TextRunner
from sqlgateway.run.transaction_control import may_commit

READ_ONLY_HINT: Final = (
    "The answer was full, and the rest was read in case it writes. With read_only: true it is cut."
)


class Execution:
    """One request on one connection.

    Errors of the server are in the outcome, not raised.

    boundary: the transaction around the texts; by default one that ends with the request.
    cancellation: cancels the request from another thread.
    """

    def __init__(
        self,
        session: TenantConnection,
        request: SqlRequest,
        sink: Sink,
        *,
        boundary: Boundary | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self._session = session
        self._request = request
        self._sink = sink
        self._boundary = boundary or RequestBoundary(request)
        self._cancellation = cancellation or Cancellation()
        self._canceller = SurplusRowsCanceller(session)
        self._looks_late = self._is_lost = self._is_over = self._is_inside = False
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
        own_ms = self._session.timeout_ms
        timeout_ms = self._request.timeout_ms
        timeout_s = (timeout_ms if own_ms is None else min(timeout_ms, own_ms)) / 1000
        deadline = time.monotonic() + timeout_s
        self._session.deadline = deadline
        large = LargeResult(
            LARGE_RESULTS, deadline, organization_id=self._session.login.organization_id
        )
        self._session.on_held = large.hold
        self._session.give_up_at = give_up_at(deadline)
        watch = WATCHDOG.watch(self._session, deadline)
        self._cancellation.attach(partial(WATCHDOG.cancel, watch))
        try:
            yield from self._run()
        finally:
            was_late = WATCHDOG.finish(watch)
            self._session.on_held = None
            large.release()
        if was_late or self._canceller.has_cancelled:
            self.outcome.is_clean = False
        # A backend that is terminated while it writes to the gateway does not send an error.
        is_open = self._looks_late or (watch.was_open and self._is_lost)
        if was_late and is_open and not watch.is_abandoned:
            self.outcome.error = self._ended_late(timeout_s)
        if self.outcome.error is not None and self._may_have_committed(self.outcome.error):
            self.outcome.error = outcomes.after_commit(self.outcome.error)

    def _may_have_committed(self, error: PlatformError) -> bool:
        """True if a COMMIT in the text or a routine may have kept changes of a failed request."""
        if self._session.login.role == "reader":
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
        outcome, session = self.outcome, self._session
        try:
            yield from self._run_texts()
        except AlreadyAnswered:
            return
        except StatementFailed as failed:
            outcome.error = outcomes.refusal(session, failed)
            outcome.is_clean = outcome.is_clean and not failed.is_fatal
            self._looks_late = failed.sqlstate in ENDED_SQLSTATES
        except PlatformError as error:
            outcome.error = error
            if self._is_over and isinstance(error, errors.ResultNotText):
                error.extra["outcome"] = "committed"
            if session.status == pq.TransactionStatus.ACTIVE and outcome.is_clean:
                outcome.is_clean = False
                outcome.error = outcomes.end_early(session, error)
        except ResultOverflow:
            outcome.is_clean = False
            outcome.error = outcomes.end_overflow(session)
        except ConnectionLost:
            outcome.is_clean = False
            outcome.error = outcomes.connection_lost(session)
            self._is_lost = True

    def _run_texts(self) -> Iterator[None]:
        session, request = self._session, self._request
        runner = TextRunner(session, self._sink, canceller=self._canceller, outcome=self.outcome)
        # The mode of a transaction that is already open is unknown here.
        begins = session.status == pq.TransactionStatus.IDLE
        self._canceller.is_read_only = begins and session.starts_read_only
        self._boundary.open(session)
        self._is_inside = session.status != pq.TransactionStatus.IDLE
        for number, sql_text in enumerate(request.texts, start=1):
            yield from runner.run(
                sql_text,
                number=number if request.is_batch else 0,
                is_last=number == len(request.texts),
            )
            self._boundary.check(session, number)
        self._boundary.close(session, was_cancelled_early=self._canceller.was_cancelled_early)
        self._is_over = True
        self._sink.complete(session)
        self.outcome.notices = [
            sqlstates.notice(notice, session.login) for notice in session.notices
        ]
