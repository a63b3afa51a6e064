"""Interactive transactions as a caller uses them, in the process that receives the request.

The outcome of a commit is always known:

1. The owner returns the transaction's id in PostgreSQL.
2. The row changes from OPEN to COMMITTING with this id. Only one caller can do that.
3. The owner commits. If its answer is lost, PostgreSQL reports the outcome by the id.

A transaction that was reported as ended is no longer OPEN, so an owner that could not be reached
for some time cannot commit it later.

The outcome is kept for some time, and of a limited number of transactions, because a client can
begin and roll back many of them in a short time.
"""

import time
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final, cast
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from common.errors import InternalError, PlatformError
from common.permissions import Role, database_role
from common.principals import Principal, Scope
from common.scoping import across_environments
from environments.models import Organization
from sqlgateway import errors
from sqlgateway.clusters.organization_limits import Quota
from sqlgateway.databases import provisioning
from sqlgateway.models import InteractiveTransaction, RetiredDatabase
from sqlgateway.pg.message_stream import ConnectionLost
from sqlgateway.pg.pool import CONNECTION_POOL
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import gateway
from sqlgateway.run.admission import ADMISSION
from sqlgateway.run.outcomes import FAILURES
from sqlgateway.run.parameters import canonical
from sqlgateway.run.requests import ARRAYS, Isolation, SqlRequest, SqlText
from sqlgateway.transactions import owner
from sqlgateway.transactions.machine import Message, OwnerUnavailable
from sqlgateway.transactions.open_transactions import OPEN_TRANSACTIONS
from sqlgateway.transactions.owner import SOCKET

State = InteractiveTransaction.State
# A client whose commit was not answered can ask for the outcome during this time. A rollback, or
# the end of the owner, has changed nothing, so its outcome is kept for a shorter time.
KEEP_COMMITTED: Final = timedelta(hours=1)
KEEP_ROLLED_BACK: Final = timedelta(minutes=5)
# The number of ended transactions that are kept of an environment.
KEEP_PER_ENVIRONMENT: Final = 2000
# Rows that are deleted together: more than one, so that the number decreases to the limit.
TRIMMED_AT_ONCE: Final = 10
# A transaction whose time is over may still be ending.
MARGIN: Final = timedelta(seconds=2)
# The server ends a session itself this long after the platform should have done so.
LIMIT_MARGIN_MS: Final = 2000
# The time limit of BEGIN.
OPEN_S: Final = 5.0
XACT_STATUS: Final = "SELECT pg_catalog.pg_xact_status($1::pg_catalog.xid8) AS status"


def begin(
    principal: Principal, *, isolation: Isolation | None, read_only: bool
) -> InteractiveTransaction:
    """Open a transaction that this process owns.

    Raises TooManyTransactions, and the errors of a connection.
    """
    role: Role = "reader" if read_only else database_role(principal)
    row = _reserve(principal, role)
    try:
        connection = _connect(principal.scope, role, isolation)
    except BaseException:
        row.delete()
        raise
    OPEN_TRANSACTIONS.add(str(row.pk), connection, principal)
    return row


def find(principal: Principal, transaction_id: UUID) -> InteractiveTransaction:
    """Return a transaction of the same user, session, role and environment.

    Raises TransactionNotFound.
    """
    row: InteractiveTransaction | None = InteractiveTransaction.objects.filter(
        pk=transaction_id,
        user_id=principal.actor_id,
        session_id=principal.session_id,
        caller_role=database_role(principal),
    ).first()
    if row is None:
        raise errors.TransactionNotFound
    return row


def run(
    principal: Principal,
    transaction_id: UUID,
    number: int,
    body: dict[str, Any],
    *,
    limits: Quota,
    request_id: str,
) -> tuple[bytes, bool]:
    """Run a numbered statement; return the JSON of its answer, and whether it is a repetition.

    Raises TransactionElsewhere, TransactionOver, TransactionBusy, StatementOutOfOrder and the
    errors of ``POST /v1/sql``.
    """
    row = find(principal, transaction_id)
    if row.state != State.OPEN:
        raise errors.TransactionOver(extra={"outcome": row.outcome})
    owner.check_machine(row)
    # Raises InvalidRequest for a body that cannot be forwarded.
    canonical(body)
    question = {
        "call": "run",
        "number": number,
        "body": body,
        "limits": asdict(limits),
        "request_id": request_id,
    }
    with ADMISSION.slot(principal.scope):
        # It counts as open while the statement may run, and then for the idle time.
        _count(row, running_s=settings.SQL.timeout_ms / 1000)
        try:
            answer = _ask(principal, row, question)
        finally:
            _count(row)
    return answer["json"].encode(), answer["is_repeated"]


def commit(principal: Principal, transaction_id: UUID) -> InteractiveTransaction:
    """Commit. Safe to repeat after a lost answer.

    Raises TransactionOver if the transaction was rolled back; TransactionElsewhere and the errors
    of admission, after which it is still open; and the error of PostgreSQL's commit.
    """
    row = find(principal, transaction_id)
    if row.state in {State.OPEN, State.COMMITTING}:
        _finish(principal, row)
    if row.state != State.COMMITTED:
        raise errors.TransactionOver(extra={"outcome": row.outcome})
    return row


def roll_back(principal: Principal, transaction_id: UUID) -> None:
    """Roll back. Safe to repeat.

    Raises TransactionOver if the transaction was committed; TransactionElsewhere.
    """
    row = find(principal, transaction_id)
    was_open = row.state == State.OPEN
    if was_open:
        owner.check_machine(row)
        # Another request may be committing it: then this one waits for the outcome.
        _move(row, State.OPEN, State.ROLLED_BACK)
    if row.state == State.COMMITTING:
        _finish(principal, row)
    if row.state == State.COMMITTED:
        raise errors.TransactionOver(extra={"outcome": row.outcome})
    if was_open:
        with suppress(OwnerUnavailable, errors.TransactionOver):
            owner.ask(principal, row, {"call": "end", "commit": False})


def forget_ended(*, now: datetime) -> None:
    """Delete the rows of transactions that ended long enough ago."""
    is_rolled_back = Q(state__in=(State.ROLLED_BACK, State.OPEN))
    InteractiveTransaction.objects.filter(
        Q(is_rolled_back, expires_at__lt=now - KEEP_ROLLED_BACK)
        | Q(expires_at__lt=now - KEEP_COMMITTED)
    ).delete()


def _trim(scope: Scope) -> None:
    """Delete the oldest ended rows of an environment above the limit, rolled back ones first."""
    own = InteractiveTransaction.objects.filter(environment_id=scope.environment_pk)
    ended = own.exclude(state=State.OPEN)
    # By the states' names: rows that may be committed are kept for the longest time.
    excess = ended.order_by("state", "-created_at").values_list("pk", flat=True)[
        KEEP_PER_ENVIRONMENT:
    ]
    oldest = list(excess[:TRIMMED_AT_ONCE])
    if oldest:
        InteractiveTransaction.objects.filter(pk__in=oldest).delete()


def _reserve(principal: Principal, role: Role) -> InteractiveTransaction:
    """Insert the row. Raises TooManyTransactions."""
    scope, now = principal.scope, timezone.now()
    # Before the lock: the first use opens the socket.
    transaction_id = SOCKET.new_id()
    with transaction.atomic():
        # The lock serializes the transactions of an organization, so that the count is right.
        Organization.objects.select_for_update().only("pk").get(pk=scope.organization_id)
        live = across_environments(InteractiveTransaction).filter(
            organization_id=scope.organization_id, state=State.OPEN, active_until__gt=now
        )
        if live.count() >= settings.SQL.transactions_per_organization:
            raise errors.TooManyTransactions
        _trim(scope)
        row: InteractiveTransaction = InteractiveTransaction.objects.create(
            id=transaction_id,
            organization_id=scope.organization_id,
            environment_id=scope.environment_pk,
            user_id=principal.actor_id,
            session_id=principal.session_id,
            caller_role=database_role(principal),
            role=role,
            owner=SOCKET.name,
            active_until=now + timedelta(seconds=settings.SQL.transaction_idle_s) + MARGIN,
            expires_at=now + timedelta(seconds=settings.SQL.transaction_life_s),
        )
    return row


def _connect(scope: Scope, role: Role, isolation: Isolation | None) -> TenantConnection:
    # After the organization's own limits, whose error tells the caller more.
    if not OPEN_TRANSACTIONS.has_room_for(scope):
        raise errors.SqlBusy
    with ADMISSION.slot(scope):
        connection = gateway.connect(scope, role)
        _open(connection, isolation)
    return connection


def _open(connection: TenantConnection, isolation: Isolation | None) -> None:
    request = SqlRequest((), isolation=isolation)
    texts = [request.begin]
    # Replace the server's limits, which are those of a single request.
    idle_ms = settings.SQL.transaction_idle_s * 1000 + LIMIT_MARGIN_MS
    texts.append(b"SET LOCAL idle_in_transaction_session_timeout = %d" % idle_ms)
    if connection.login.address.can("transaction_timeout"):
        life_ms = settings.SQL.transaction_life_s * 1000 + LIMIT_MARGIN_MS
        # At BEGIN PostgreSQL started the timer of the old value, which only 0 stops.
        texts.append(b"SET LOCAL transaction_timeout = 0")
        texts.append(b"SET LOCAL transaction_timeout = %d" % life_ms)
    connection.give_up_at = time.monotonic() + OPEN_S
    try:
        # One message, so that the rest does not run after a failure.
        failed = connection.run(b"; ".join(texts)).status in FAILURES
    except ConnectionLost:
        failed = True
    if failed:
        CONNECTION_POOL.discard(connection)
        raise errors.EngineUnavailable


def _count(row: InteractiveTransaction, *, running_s: float = 0.0) -> None:
    idle_s = settings.SQL.transaction_idle_s
    until = timezone.now() + timedelta(seconds=running_s + idle_s) + MARGIN
    InteractiveTransaction.objects.filter(pk=row.pk).update(active_until=until)


def _ask(principal: Principal, row: InteractiveTransaction, question: dict[str, Any]) -> Message:
    """Send a question about an open transaction to its owner.

    Raises TransactionOver if the owner does not have it. The row then has the final state: rolled
    back, unless another request has committed it.
    """
    try:
        return owner.ask(principal, row, question)
    except (OwnerUnavailable, errors.TransactionOver):
        _move(row, State.OPEN, State.ROLLED_BACK)
        raise errors.TransactionOver(extra={"outcome": row.outcome}) from None


def _finish(principal: Principal, row: InteractiveTransaction) -> None:
    """Commit a transaction that is OPEN or COMMITTING, or find out its outcome."""
    owner.check_machine(row)
    scope = principal.scope
    # Deferred triggers run code of the tenant, so a commit may take as long as a statement.
    with ADMISSION.slot_for_end(scope):
        if row.state == State.OPEN:
            with suppress(errors.TransactionOver):
                xid = _ask(principal, row, {"call": "xid"})["xid"] or ""
                _move(row, State.OPEN, State.COMMITTING, xid=xid)
        if row.state != State.COMMITTING:
            return
        limits = provisioning.limits_of(scope)
        ending = _commit(principal, row, timeout_ms=limits.timeout_ms)
    if ending == "unknown":
        ending = _look_up(scope, row)
    _move(row, State.COMMITTING, State(ending))


def _commit(principal: Principal, row: InteractiveTransaction, *, timeout_ms: int) -> str:
    question = {"call": "end", "commit": True, "timeout_ms": timeout_ms}
    try:
        ending: str = owner.ask(principal, row, question)["ending"]
    except (OwnerUnavailable, errors.TransactionOver):
        return "unknown"
    except (errors.TransactionBusy, errors.SqlBusy):
        raise
    except InternalError:
        return "unknown"
    except PlatformError:
        _move(row, State.COMMITTING, State.ROLLED_BACK)
        raise
    return ending


def _look_up(scope: Scope, row: InteractiveTransaction) -> str:
    """Ask PostgreSQL for the outcome of a transaction, because its owner does not know it.

    Raises OutcomeUnknown if PostgreSQL does not know it either.
    """
    if not row.xid:
        # It had not written anything, so both outcomes are the same.
        return State.COMMITTED.value
    if _has_moved(row):
        # The database was moved, and the new server does not know the id. The move has recorded the
        # outcome in the row.
        row.refresh_from_db()
        if row.state == State.COMMITTING:
            raise errors.OutcomeUnknown(extra={"retryable": False})
        return row.state
    request = SqlRequest((SqlText(XACT_STATUS, [row.xid.encode()], ARRAYS),))
    status = gateway.rows(scope, cast(Role, row.role), request)[0][0]
    endings = {"committed": State.COMMITTED.value, "aborted": State.ROLLED_BACK.value}
    if status not in endings:
        raise errors.OutcomeUnknown(extra={"retryable": True})
    return endings[status]


def _has_moved(row: InteractiveTransaction) -> bool:
    left = RetiredDatabase.objects.filter(
        environment_id=row.environment_id, retired_at__gte=row.created_at
    )
    return left.exists()


def _move(row: InteractiveTransaction, before: str, after: str, *, xid: str | None = None) -> None:
    """Change the state unless another request has changed it; update ``row`` in both cases."""
    rows = InteractiveTransaction.objects.filter(pk=row.pk, state=before)
    if rows.update(state=after, xid=xid or row.xid):
        row.state, row.xid = State(after), xid or row.xid
    else:
        row.refresh_from_db()
