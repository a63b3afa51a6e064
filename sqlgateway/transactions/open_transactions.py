"""The open transactions of this process: connections, numbers of statements, time limits."""

import hashlib
import threading
import time
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Self

from django.conf import settings
from psycopg import pq

from common.errors import PlatformError
from common.every import Every
from common.permissions import database_role
from common.principals import Principal, Scope
from sqlgateway import errors
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.pg import pool
from sqlgateway.pg.message_stream import ConnectionLost
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.pg.watchdog import WATCHDOG, give_up_at
from sqlgateway.run import boundaries
from sqlgateway.run.execution import Execution
from sqlgateway.run.history import recorded_request
from sqlgateway.run.outcomes import FAILURES, StatementFailed, refusal
from sqlgateway.run.requests import Caller, SqlRequest
from sqlgateway.run.results import JsonSink, render
from sqlgateway.run.running_requests import REGISTRY, RunningRequest
from sqlgateway.run.sqlstates import ErrorPosition
from sqlgateway.run.usage import METER

Status = pq.TransactionStatus
Ending = Literal["committed", "rolled_back", "unknown"]

XID: Final = b"SELECT pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text"
# Answers up to this size are kept: a statement that is sent again gets the same answer.
KEPT_ANSWER_BYTES: Final = 2**20
TICK_S: Final = 0.5


class OpenTransactionBoundary:
    """The boundary of a statement in an open transaction, which must not end the transaction."""

    def open(self, connection: TenantConnection) -> None:
        """Do nothing: the transaction is open."""

    def check(self, connection: TenantConnection, number: int) -> None:
        """Raise TransactionEnded if the statement ended the transaction."""
        if connection.status == Status.IDLE:
            raise errors.TransactionEnded(extra={"outcome": "unknown"})

    def close(self, connection: TenantConnection, *, was_cancelled_early: bool) -> None:
        """Do nothing: the transaction goes on."""


class Holder(NamedTuple):
    """The only principal that may use a transaction: the one that began it."""

    organization_id: int
    environment_pk: int
    actor_id: str
    session_id: str
    role: str

    @classmethod
    def of(cls, principal: Principal) -> Self:
        """Return the holder of the transactions that a principal begins."""
        return cls(
            principal.organization_id,
            principal.environment_pk,
            str(principal.actor_id),
            str(principal.session_id),
            database_role(principal),
        )


@dataclass(slots=True)
class OpenTransaction:
    """One open transaction.

    number: the number of the last statement that ran.
    digest: the hash of that statement's request.
    answer: that statement's answer or error; None if it was too long to keep.
    running: the statement that runs now.
    is_ending: it is being committed or rolled back, so that no other statement may run.
    """

    connection: TenantConnection
    caller: Caller
    holder: Holder
    expires_at: float
    idle_until: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    number: int = 0
    digest: bytes = b""
    answer: bytes | PlatformError | None = None
    running: RunningRequest | None = None
    is_ending: bool = False

    def is_due(self, now: float) -> bool:
        """True if a time limit has passed; the caller checks that no statement runs."""
        return now > min(self.expires_at, self.idle_until)


class OpenTransactions:
    """The transactions that this process owns. A process that owns some does not fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, OpenTransaction] = {}
        # Without it abandoned transactions would keep their slots and locks.
        self._reaper = Every(TICK_S, self.end_due, name="sql-reaper")

    def add(self, transaction_id: str, connection: TenantConnection, principal: Principal) -> None:
        """Keep a connection with an open transaction until it ends or a limit passes."""
        now = time.monotonic()
        entry = OpenTransaction(
            connection,
            Caller.of(principal),
            Holder.of(principal),
            expires_at=now + settings.SQL.transaction_life_s,
            idle_until=now + settings.SQL.transaction_idle_s,
        )
        with self._lock:
            self._open[transaction_id] = entry
        self._reaper.start()

    def check_holder(self, transaction_id: str, holder: Holder) -> None:
        """Raise TransactionNotFound if another principal began the transaction."""
        entry = self._open.get(transaction_id)
        if entry is not None and entry.holder != holder:
            raise errors.TransactionNotFound

    def has_room_for(self, scope: Scope) -> bool:
        """True if this process may own one more transaction of a scope.

        An organization must own fewer transactions than there are free slots, so that several large
        ones always leave a slot for an organization that owns none. A cluster without a transaction
        may have one even if others have all slots.
        """
        entries = list(self._open.values())
        of, taken = settings.SQL.transactions, len(entries)
        if taken >= of > 0:
            clusters = {entry.connection.login.address.cluster_id for entry in entries}
            return PLACEMENT_CACHE.cluster_of(scope.environment_pk) not in {0, *clusters}
        holders = [entry.caller.scope.organization_id for entry in entries]
        return holders.count(scope.organization_id) < of - taken

    def run(
        self,
        transaction_id: str,
        number: int,
        request: SqlRequest,
        *,
        digest: bytes,
        request_id: str,
    ) -> tuple[bytes, bool]:
        """Run a statement; return the JSON of its answer, and whether it is a stored answer.

        number: 1 for the first statement, then 1 more for each. The last number with the same
        digest returns the stored answer.
        Raises TransactionOver, TransactionBusy, StatementOutOfOrder and the statement's own errors.
        """
        entry = self._take(transaction_id)
        try:
            if entry.is_ending:
                raise errors.TransactionBusy
            if number == entry.number and number > 0:
                return _repeated(entry, digest), True
            if number != entry.number + 1:
                raise errors.StatementOutOfOrder(extra={"expected": entry.number + 1})
            entry.number, entry.digest, entry.answer = number, digest, None
            try:
                answer = self._run(transaction_id, entry, request, request_id)
            except PlatformError as error:
                entry.answer = error
                raise
            entry.answer = answer if len(answer) <= KEPT_ANSWER_BYTES else None
            return answer, False
        finally:
            entry.idle_until = time.monotonic() + settings.SQL.transaction_idle_s
            entry.lock.release()

    def xid(self, transaction_id: str) -> str | None:
        """Return the transaction's id in PostgreSQL, None if it has written nothing.

        No other statement can run afterwards: the outcome of its writes could not be looked up.
        Raises TransactionOver if a statement has failed or the session has ended; TransactionBusy.
        """
        entry = self._take(transaction_id)
        try:
            entry.is_ending = True
            return _xid(entry.connection)
        except ConnectionLost:
            self._drop(transaction_id, entry)
            raise errors.TransactionOver(extra={"outcome": "rolled_back"}) from None
        finally:
            # Its commit comes next.
            entry.idle_until = time.monotonic() + settings.SQL.transaction_idle_s
            entry.lock.release()

    def end(self, transaction_id: str, *, commit: bool, timeout_ms: int) -> Ending:
        """Commit or roll back, and return what happened.

        timeout_ms: the time limit of a commit, whose deferred triggers run code of the tenant.
        A rollback cancels a running statement; the transaction then ends soon.
        Raises TransactionOver if this process does not own it, TransactionBusy, and the error of a
        commit, such as a deferred constraint or a serialization failure.
        """
        try:
            entry = self._take(transaction_id)
        except errors.TransactionBusy:
            if commit or not self._end_soon(transaction_id):
                raise
            return "rolled_back"
        started = time.perf_counter()
        try:
            return self._end(transaction_id, entry, commit=commit, timeout_ms=timeout_ms)
        finally:
            # Triggers of the tenant may have run until now.
            METER.add(entry.caller.scope, seconds=time.perf_counter() - started)
            entry.lock.release()

    def end_due(self) -> None:
        """Roll back transactions whose time is over, except those that run a statement."""
        now = time.monotonic()
        for transaction_id, entry in list(self._open.items()):
            if entry.is_due(now) and entry.lock.acquire(blocking=False):
                try:
                    self._drop(transaction_id, entry)
                finally:
                    entry.lock.release()

    def clear(self) -> None:
        """Roll back all transactions."""
        with self._lock:
            gone, self._open = list(self._open.values()), {}
        for entry in gone:
            pool.CONNECTION_POOL.discard(entry.connection)

    def _end_soon(self, transaction_id: str) -> bool:
        """Cancel the running statement, and let the transaction be rolled back afterwards.

        False if this process does not own the transaction.
        """
        entry = self._open.get(transaction_id)
        if entry is not None:
            entry.is_ending, entry.expires_at = True, 0.0
            if (running := entry.running) is not None:
                running.cancellation.request()
        return entry is not None

    # --- one transaction; the caller holds its lock -----------------------------------------------

    def _take(self, transaction_id: str) -> OpenTransaction:
        with self._lock:
            entry = self._open.get(transaction_id)
        if entry is None:
            raise errors.TransactionOver(extra={"outcome": "rolled_back"})
        if not entry.lock.acquire(blocking=False):
            raise errors.TransactionBusy
        if self._open.get(transaction_id) is not entry:
            entry.lock.release()
            raise errors.TransactionOver(extra={"outcome": "rolled_back"})
        return entry

    def _run(
        self,
        transaction_id: str,
        entry: OpenTransaction,
        request: SqlRequest,
        request_id: str,
    ) -> bytes:
        running, sink = RunningRequest(entry.caller, request_id, request), JsonSink(request)
        with (
            REGISTRY.track(running),
            recorded_request(entry.caller, request, request_id=request_id) as record,
        ):
            entry.running = running
            try:
                answer = self._answer(transaction_id, entry, running, sink)
            finally:
                entry.running = None
            record.row_count, record.size_bytes = sink.row_count, sink.size_bytes
        METER.add(entry.caller.scope, bytes_out=len(answer))
        return answer

    def _answer(
        self,
        transaction_id: str,
        entry: OpenTransaction,
        running: RunningRequest,
        sink: JsonSink,
    ) -> bytes:
        if boundaries.first_control(running.request.texts[0].text):
            raise errors.TransactionEnded("Use the transaction's own commit or rollback.")
        started = time.perf_counter()
        entry.connection.notices = []
        # The connection has the limit from the beginning; the request has the present one.
        entry.connection.timeout_ms = None
        execution = Execution(
            entry.connection,
            running.request,
            sink,
            boundary=OpenTransactionBoundary(),
            cancellation=running.cancellation,
        )
        try:
            outcome = execution.run()
        except BaseException:
            # The next statement must not get the rest of this answer.
            self._drop(transaction_id, entry)
            raise
        is_over = not outcome.is_clean or entry.connection.status == Status.IDLE
        if is_over:
            self._drop(transaction_id, entry)
        if outcome.error is not None:
            # Before a commit, the loss of the connection rolls the transaction back.
            if execution.is_lost or isinstance(outcome.error, errors.OutcomeUnknown):
                raise errors.TransactionOver(extra={"outcome": "rolled_back"})
            raise outcome.error
        elapsed_ms = round((time.perf_counter() - started) * 1000, 1)
        return render(sink, outcome.notices, elapsed_ms=elapsed_ms, request_id=running.request_id)

    def _end(
        self, transaction_id: str, entry: OpenTransaction, *, commit: bool, timeout_ms: int
    ) -> Ending:
        connection, name = entry.connection, b"COMMIT" if commit else b"ROLLBACK"
        deadline = time.monotonic() + timeout_ms / 1000
        connection.give_up_at = give_up_at(deadline)
        watch = WATCHDOG.watch(connection, deadline)
        try:
            result = connection.run(name)
        except ConnectionLost:
            self._drop(transaction_id, entry)
            return "unknown" if commit else "rolled_back"
        finally:
            was_late = WATCHDOG.finish(watch)
        if result.status in FAILURES and connection.status != Status.IDLE:
            # The server ended the session, before or after the commit.
            self._drop(transaction_id, entry)
            return "unknown" if commit else "rolled_back"
        if result.status in FAILURES:
            failed = StatementFailed(result, ErrorPosition("", 0))
            error = refusal(connection, failed)
            if was_late and isinstance(error, errors.QueryCancelled):
                error = errors.QueryTimeout(
                    f"The limit was {timeout_ms / 1000:g} s.", extra=error.extra
                )
            self._drop(transaction_id, entry)
            raise error
        if was_late:
            self._drop(transaction_id, entry)
        else:
            self._forget(transaction_id)
            pool.CONNECTION_POOL.release(connection)
        # In an aborted transaction, COMMIT returns the tag ROLLBACK.
        return "committed" if result.command_status == b"COMMIT" else "rolled_back"

    def _forget(self, transaction_id: str) -> None:
        with self._lock:
            self._open.pop(transaction_id, None)

    def _drop(self, transaction_id: str, entry: OpenTransaction) -> None:
        """Close the connection, which rolls back what is open."""
        with self._lock:
            if self._open.pop(transaction_id, None) is None:
                return
        pool.CONNECTION_POOL.discard(entry.connection)


def _xid(connection: TenantConnection) -> str | None:
    """Return the id of an open transaction, if it has one.

    Raises ConnectionLost for one that can only be rolled back: it is aborted, or its session ended.
    """
    if connection.status != Status.INTRANS:
        raise ConnectionLost
    connection.give_up_at = time.monotonic() + settings.SQL.timeout_ms / 1000
    result = connection.run(XID)
    # An ended session is reported as an error, by its last result.
    if result.status != pq.ExecStatus.TUPLES_OK or connection.status != Status.INTRANS:
        raise ConnectionLost
    value = result.get_value(0, 0)
    return None if value is None else value.decode()


def digest_of(body: bytes) -> bytes:
    """Return the hash that identifies a statement's body."""
    return hashlib.sha256(body).digest()


def _repeated(entry: OpenTransaction, digest: bytes) -> bytes:
    if digest != entry.digest:
        raise errors.StatementOutOfOrder(
            "This number was another statement's.", extra={"expected": entry.number + 1}
        )
    if isinstance(entry.answer, PlatformError):
        # Without the traceback, which would keep the frames of every repetition, with their bodies.
        raise entry.answer.with_traceback(None)
    if entry.answer is None:
        raise errors.StatementOutOfOrder(
            "It has run; its answer was too long to be kept.",
            extra={"expected": entry.number + 1},
        )
    return entry.answer


OPEN_TRANSACTIONS: Final = OpenTransactions()
