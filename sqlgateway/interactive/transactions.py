"""Interactive transactions as a caller uses them, in whichever process the request arrives.

A commit cannot be lost or misreported. The owner first names the transaction's id in PostgreSQL;
the row takes it together with the state COMMITTING, which only one caller can set, and only from
OPEN; then the owner commits. If its answer is lost, PostgreSQL itself says by that id what
happened. A transaction that a caller knows to be over has left the state OPEN, so that no owner
that was merely out of reach can commit it later.
"""

import base64
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final, cast
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from environments.models import Organization
from platform_site.lib import ids
from platform_site.lib.errors import InternalError, PlatformError
from platform_site.lib.permissions import Role, database_role
from platform_site.lib.principals import Principal, Scope
from sqlgateway import errors
from sqlgateway.connection.cache import CACHE
from sqlgateway.connection.message_stream import ConnectionLost
from sqlgateway.connection.tenant_connection import TenantConnection
from sqlgateway.execution import gateway
from sqlgateway.execution.admission.slots import ADMISSION
from sqlgateway.execution.outcomes import FAILURES
from sqlgateway.execution.requests import ARRAYS, Caller, Isolation, SqlRequest, SqlText
from sqlgateway.interactive import owner, retention
from sqlgateway.interactive.channel import OwnerUnavailable
from sqlgateway.interactive.open_transactions import OPEN_TRANSACTIONS
from sqlgateway.interactive.owner import CHANNEL
from sqlgateway.models import InteractiveTransaction, RetiredDatabase
from sqlgateway.provisioning import provisioning
from sqlgateway.provisioning.limits.request_limits import RequestLimits

State = InteractiveTransaction.State

# A transaction that is past its limits may still be ending.
MARGIN: Final = timedelta(seconds=2)
# What the server waits longer than the platform before it ends a session itself.
LIMIT_MARGIN_MS: Final = 2000
# For BEGIN, on a connection that answered a moment ago.
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
        session = _connect(principal.scope, role, isolation)
    except BaseException:
        row.delete()
        raise
    OPEN_TRANSACTIONS.add(str(row.pk), session, Caller.of(principal))
    return row


def find(principal: Principal, transaction_id: UUID) -> InteractiveTransaction:
    """Return a transaction of the caller's own: same user, session, role and environment.

    Raises TransactionNotFound.
    """
    row: InteractiveTransaction | None = (
        InteractiveTransaction.scoped.within(principal.scope)
        .filter(
            pk=transaction_id,
            user_id=principal.actor_id,
            session_id=principal.session_id,
            caller_role=database_role(principal),
        )
        .first()
    )
    if row is None:
        raise errors.TransactionNotFound
    return row


def run(
    principal: Principal,
    transaction_id: UUID,
    number: int,
    body: dict[str, Any],
    *,
    limits: RequestLimits,
    request_id: str,
) -> tuple[bytes, bool]:
    """Run a numbered statement; return the JSON of its answer, and whether it is a repetition.

    Raises TransactionOver, TransactionBusy, StatementOutOfOrder and the errors of ``POST /v1/sql``.
    """
    row = _open_row(principal, transaction_id)
    question = {
        "call": "run",
        "number": number,
        "body": body,
        "limits": asdict(limits),
        "request_id": request_id,
    }
    with ADMISSION.slot(principal.scope):
        # It counts against the caps while the statement may run, and as idle again after it.
        _count(row, running_s=settings.SQL.timeout_ms / 1000)
        try:
            answer = _ask(row, question)
        finally:
            _count(row)
    return base64.b64decode(answer["json"]), answer["is_repeated"]


def commit(principal: Principal, transaction_id: UUID) -> InteractiveTransaction:
    """Commit; again after a lost answer it returns what happened.

    Raises TransactionOver if it was rolled back, the errors of admission, after which it is still
    open, and the error that PostgreSQL met.
    """
    row = find(principal, transaction_id)
    if row.state in {State.OPEN, State.COMMITTING}:
        _finish(principal.scope, row)
    if row.state != State.COMMITTED:
        raise errors.TransactionOver(extra={"outcome": row.outcome})
    return row


def roll_back(principal: Principal, transaction_id: UUID) -> None:
    """Roll back; again it changes nothing. Raises TransactionOver if it was committed."""
    row = find(principal, transaction_id)
    was_open = row.state == State.OPEN
    if was_open:
        # Another request may commit it at this moment: then this one waits for what happens.
        _move(row, State.OPEN, State.ROLLED_BACK)
    if row.state == State.COMMITTING:
        _finish(principal.scope, row)
    if row.state == State.COMMITTED:
        raise errors.TransactionOver(extra={"outcome": row.outcome})
    if was_open:
        with suppress(OwnerUnavailable, errors.TransactionOver):
            owner.ask(row, {"call": "end", "commit": False})


def _reserve(principal: Principal, role: Role) -> InteractiveTransaction:
    """Insert the row, if the organization and the environment may have one more."""
    scope, now = principal.scope, timezone.now()
    with transaction.atomic():
        # One at a time for an organization, so that the count is right.
        Organization.objects.select_for_update().only("pk").get(pk=scope.organization_id)
        live = InteractiveTransaction.scoped.within_organization(scope.organization_id).filter(
            state=State.OPEN, active_until__gt=now
        )
        of_organization = live.count()
        of_environment = live.filter(environment_id=scope.environment_pk).count()
        if (
            of_organization >= settings.SQL.transactions_per_organization
            or of_environment >= settings.SQL.transactions_per_environment
        ):
            raise errors.TooManyTransactions
        retention.trim(scope)
        row: InteractiveTransaction = InteractiveTransaction.unscoped.create(  # unscoped: its keys
            id=ids.uuid7(),
            organization_id=scope.organization_id,
            environment_id=scope.environment_pk,
            user_id=principal.actor_id,
            session_id=principal.session_id,
            caller_role=database_role(principal),
            role=role,
            owner=CHANNEL.address(),
            active_until=now + timedelta(seconds=settings.SQL.transaction_idle_s) + MARGIN,
            expires_at=now + timedelta(seconds=settings.SQL.transaction_life_s),
        )
    return row


def _connect(scope: Scope, role: Role, isolation: Isolation | None) -> TenantConnection:
    # After the organization's own caps, which are the better answer to it.
    if not OPEN_TRANSACTIONS.has_room_for(scope.organization_id):
        raise errors.SqlBusy
    with ADMISSION.slot(scope):
        session = gateway.connect(scope, role)
        _open(session, isolation)
    return session


def _open(session: TenantConnection, isolation: Isolation | None) -> None:
    request = SqlRequest((), isolation=isolation)
    texts = [request.begin]
    # The connection's own limits are those of a single request. The platform's come first.
    idle_ms = settings.SQL.transaction_idle_s * 1000 + LIMIT_MARGIN_MS
    texts.append(b"SET LOCAL idle_in_transaction_session_timeout = %d" % idle_ms)
    if session.login.address.can("transaction_timeout"):
        life_ms = settings.SQL.transaction_life_s * 1000 + LIMIT_MARGIN_MS
        # PostgreSQL started the timer of the former value at BEGIN, and keeps it unless it is 0.
        texts.append(b"SET LOCAL transaction_timeout = 0")
        texts.append(b"SET LOCAL transaction_timeout = %d" % life_ms)
    session.give_up_at = time.monotonic() + OPEN_S
    try:
        # One message: what follows a failure does not run.
        failed = session.run(b"; ".join(texts)).status in FAILURES
    except ConnectionLost:
        failed = True
    if failed:
        CACHE.discard(session)
        raise errors.EngineUnavailable


def _count(row: InteractiveTransaction, *, running_s: float = 0.0) -> None:
    idle_s = settings.SQL.transaction_idle_s
    until = timezone.now() + timedelta(seconds=running_s + idle_s) + MARGIN
    InteractiveTransaction.unscoped.filter(pk=row.pk).update(active_until=until)  # unscoped: by key


def _open_row(principal: Principal, transaction_id: UUID) -> InteractiveTransaction:
    row = find(principal, transaction_id)
    if row.state != State.OPEN:
        raise errors.TransactionOver(extra={"outcome": row.outcome})
    return row


def _ask(row: InteractiveTransaction, question: dict[str, Any]) -> dict[str, Any]:
    """Ask the owner about an open transaction; one that it lost is rolled back.

    Raises TransactionOver; the row then shows the state: another request may have committed it.
    """
    try:
        return owner.ask(row, question)
    except (OwnerUnavailable, errors.TransactionOver):
        _move(row, State.OPEN, State.ROLLED_BACK)
        raise errors.TransactionOver(extra={"outcome": row.outcome}) from None


def _finish(scope: Scope, row: InteractiveTransaction) -> None:
    """Commit a transaction that is OPEN or COMMITTING, or find out what became of it."""
    # Deferred triggers are the tenant's code: a commit may last as long as a statement.
    with ADMISSION.slot_to_end(scope):
        if row.state == State.OPEN:
            with suppress(errors.TransactionOver):
                xid = _ask(row, {"call": "xid"})["xid"] or ""
                _move(row, State.OPEN, State.COMMITTING, xid=xid)
        if row.state != State.COMMITTING:
            return
        limits = provisioning.limits_of(scope)
        ending = _commit(row, timeout_ms=limits.timeout_ms(settings.SQL.timeout_ms))
    if ending == "unknown":
        ending = _look_up(scope, row)
    _move(row, State.COMMITTING, State(ending))


def _commit(row: InteractiveTransaction, *, timeout_ms: int) -> str:
    question = {"call": "end", "commit": True, "timeout_ms": timeout_ms}
    try:
        ending: str = owner.ask(row, question)["ending"]
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
    """Ask PostgreSQL what became of a transaction whose owner cannot say.

    Raises OutcomeUnknown if it cannot say either.
    """
    if not row.xid:
        # It had written nothing: committed or not, the data is the same.
        return State.COMMITTED.value
    if _has_moved(row):
        # The server that knew the number has been left; what it said before is in the row.
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
    left = RetiredDatabase.unscoped.filter(  # unscoped: of the row's own environment
        environment_id=row.environment_id, retired_at__gte=row.created_at
    )
    return left.exists()


def _move(row: InteractiveTransaction, before: str, after: str, *, xid: str | None = None) -> None:
    """Change the state if no other request has; the row then shows the state that holds."""
    rows = InteractiveTransaction.unscoped.filter(pk=row.pk, state=before)  # unscoped: by own row
    if rows.update(state=after, xid=xid or row.xid):
        row.state, row.xid = State(after), xid or row.xid
    else:
        row.refresh_from_db()
