"""``POST /v1/sql`` without HTTP: run a request and return the bytes of its answer."""

import time
from contextlib import suppress
from typing import Any, Final

import orjson
import structlog
from django.db import connection as control_connection

from common.permissions import Role
from common.principals import Scope
from sqlgateway.clusters.placements import PLACEMENT_CACHE, Placement
from sqlgateway.databases.provisioning import database_for
from sqlgateway.errors import (
    DatabaseNotReady,
    EngineUnavailable,
    IdempotencyNotSupported,
    OutcomeUnknown,
)
from sqlgateway.pg import changed_roles, pool
from sqlgateway.pg.pool import LoginRefused
from sqlgateway.pg.session_settings import CLUSTER_SETTINGS
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import outcomes
from sqlgateway.run.admission import ADMISSION
from sqlgateway.run.boundaries import first_control
from sqlgateway.run.execution import Execution
from sqlgateway.run.history import recorded_request
from sqlgateway.run.idempotency import Key, KeyedBoundary
from sqlgateway.run.outcomes import RequestOutcome
from sqlgateway.run.requests import Caller, SqlRequest
from sqlgateway.run.results import JsonSink, render
from sqlgateway.run.running_requests import REGISTRY, Cancellation, RunningRequest
from sqlgateway.run.usage import METER

# Longest wait of a request for a database that is being moved.
MOVE_WAIT_MS: Final = 3_000
MOVE_POLL_S: Final = 0.1

log = structlog.get_logger(__name__)


def answer(caller: Caller, request: SqlRequest, *, request_id: str) -> bytes:
    """Run a request in the database of the caller's scope and return the JSON of its answer.

    Raises the errors of sqlgateway.errors, and NotFound for a deleted environment.
    """
    started = time.perf_counter()
    running = RunningRequest(caller, request_id, request)
    with (
        ADMISSION.slot(caller.scope),
        REGISTRY.track(running),
        recorded_request(caller, request, request_id=request_id) as record,
    ):
        sink, outcome = _collect(caller.scope, caller.role, request, running.cancellation)
        record.row_count, record.size_bytes = sink.row_count, sink.size_bytes
    body = _render(sink, outcome, started, request_id)
    METER.add(caller.scope, bytes_out=len(body))
    return body


def answer_once(
    caller: Caller, request: SqlRequest, key: Key, *, request_id: str
) -> tuple[bytes, bool]:
    """Run a request at most once for its key; return its answer, and True if it is a stored one.

    Raises the errors of ``answer`` and of idempotency.
    """
    started = time.perf_counter()
    running, sink = RunningRequest(caller, request_id, request), JsonSink(request)

    def rendered(connection: TenantConnection) -> bytes:
        sink.complete(connection)
        outcomes.take_notices(connection, execution.outcome)
        return _render(sink, execution.outcome, started, request_id)

    boundary = KeyedBoundary(request, key, render=rendered)
    with (
        ADMISSION.slot(caller.scope),
        REGISTRY.track(running),
        recorded_request(caller, request, request_id=request_id) as record,
    ):
        # In a slot: a long text takes a second.
        if any(first_control(sql_text.text) for sql_text in request.texts):
            raise IdempotencyNotSupported("The key's record is part of the request's transaction.")
        connection = connect(caller.scope, caller.role)
        execution = Execution(
            connection, request, sink, boundary=boundary, cancellation=running.cancellation
        )
        outcome = _run(connection, execution)
        if outcome.error is not None:
            raise outcome.error
        record.row_count, record.size_bytes = sink.row_count, sink.size_bytes
        record.outcome = "replayed" if boundary.is_replayed else record.outcome
    METER.add(caller.scope, bytes_out=len(boundary.answer))
    return boundary.answer, boundary.is_replayed


def ask(scope: Scope, role: Role, request: SqlRequest, *, request_id: str) -> bytes:
    """Answer a request with the platform's own text, which the history does not show."""
    started = time.perf_counter()
    with ADMISSION.slot(scope):
        sink, outcome = _collect(scope, role, request, Cancellation())
    return _render(sink, outcome, started, request_id)


def look(scope: Scope, role: Role, request: SqlRequest, *, request_id: str) -> bytes:
    """Answer a request with the platform's own text that changes nothing.

    Raises as ``ask`` does, but EngineUnavailable where the connection is lost: it can be repeated.
    """
    try:
        return ask(scope, role, request, request_id=request_id)
    except OutcomeUnknown as error:
        raise EngineUnavailable("The connection was lost; nothing was to be changed.") from error


def _collect(
    scope: Scope, role: Role, request: SqlRequest, cancellation: Cancellation
) -> tuple[JsonSink, RequestOutcome]:
    sink = JsonSink(request)
    connection = connect(scope, "reader" if request.read_only else role)
    execution = Execution(connection, request, sink, cancellation=cancellation)
    outcome = _run(connection, execution)
    if outcome.error is not None:
        raise outcome.error
    return sink, outcome


def _render(sink: JsonSink, outcome: RequestOutcome, started: float, request_id: str) -> bytes:
    elapsed_ms = round((time.perf_counter() - started) * 1000, 1)
    return render(sink, outcome.notices, elapsed_ms=elapsed_ms, request_id=request_id)


def rows(scope: Scope, role: Role, request: SqlRequest, *, request_id: str = "") -> list[list[Any]]:
    """Run a statement that changes nothing, and return its rows; the request must ask for arrays.

    Raises the errors of ``answer``.
    """
    found: list[list[Any]] = orjson.loads(look(scope, role, request, request_id=request_id))["rows"]
    return found


def _run(connection: TenantConnection, execution: Execution) -> RequestOutcome:
    try:
        outcome = execution.run()
    except BaseException:
        pool.CONNECTION_POOL.discard(connection)
        raise
    finish(connection, outcome)
    return outcome


def finish(connection: TenantConnection, outcome: RequestOutcome) -> None:
    """Put a connection back into the pool if its request left it clean."""
    if outcome.is_clean:
        pool.CONNECTION_POOL.release(connection)
    else:
        pool.CONNECTION_POOL.discard(connection)


def _return_control_connection() -> None:
    """Return this thread's connection to the pool of the control database (ZDB_POOL_SIZE).

    Requests that wait for their statements would otherwise use up the pool.
    """
    control = control_connection
    if control.settings_dict["OPTIONS"].get("pool") and not control.in_atomic_block:
        control.close()


def connect(scope: Scope, role: Role) -> TenantConnection:
    """Return a connection to the scope's database, checked out of the pool.

    While the database is being moved, this waits for up to MOVE_WAIT_MS. The wait uses a slot
    of this environment, so that it does not delay other tenants.
    Raises EngineUnavailable, SqlBusy, DatabaseNotReady, and NotFound for a deleted environment.
    """
    deadline = time.monotonic() + MOVE_WAIT_MS / 1000
    while True:
        try:
            connection = _checkout(scope, role)
        except DatabaseNotReady:
            if time.monotonic() >= deadline:
                raise
        else:
            break
        PLACEMENT_CACHE.forget(scope.environment_pk)
        time.sleep(MOVE_POLL_S)
    _return_control_connection()
    return connection


def _checkout(scope: Scope, role: Role) -> TenantConnection:
    """Return a connection; if the login is refused, read the placement again and retry.

    The role is repaired if the placement has not changed, or the second login is refused as well.
    """
    placement = database_for(scope)
    refused = placement.login(role)
    # Also while this waits for a cluster that does not answer.
    _return_control_connection()
    try:
        return _with_own_limits(pool.CONNECTION_POOL.checkout(refused), placement)
    except LoginRefused:
        PLACEMENT_CACHE.forget(scope.environment_pk)
    placement = database_for(scope)
    if placement.login(role) != refused:
        # The passwords were rotated, or the database was moved.
        with suppress(LoginRefused):
            return _with_own_limits(pool.CONNECTION_POOL.checkout(placement.login(role)), placement)
    return _connect_repaired(placement, role)


def _connect_repaired(placement: Placement, role: Role) -> TenantConnection:
    """Repair the role if its tenant changed it, and return a connection.

    The database's row is locked until the login has succeeded: a running rotation of passwords ends
    first, and no other begins. So this is the last attempt, whatever other processes do.
    """
    with changed_roles.intact(placement.login(role)) as current:
        PLACEMENT_CACHE.put(placement.environment_pk or 0, current)
        login = current.login(role)
        try:
            return _with_own_limits(pool.CONNECTION_POOL.checkout(login), current)
        except LoginRefused:
            # After an upgrade the server may refuse settings that it knew before, so they are read
            # again. Only here: otherwise a tenant that locks itself out in a loop could cause a
            # read each time.
            CLUSTER_SETTINGS.forget(login.address)
            log.warning("sql_role_refused_again", database=login.database_id, role=role)
            raise EngineUnavailable from None


def _with_own_limits(connection: TenantConnection, placement: Placement) -> TenantConnection:
    """Set the organization's own limit, which may have changed since the connection was opened."""
    connection.timeout_ms = placement.quota.own.get("timeout_ms")
    return connection
