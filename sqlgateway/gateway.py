"""``POST /v1/sql`` without HTTP: a request of a principal's becomes the bytes of an answer."""

import time
from typing import Final

import orjson
import psycopg
import structlog

from platform_site.lib.errors import PlatformError
from platform_site.lib.permissions import Role
from platform_site.lib.principals import Scope
from sqlgateway import connections, healing
from sqlgateway.connections import LoginRefused
from sqlgateway.errors import EngineAway
from sqlgateway.execution import Execution, Outcome
from sqlgateway.gate import GATE
from sqlgateway.placements import CACHE, Login
from sqlgateway.provisioning import database_for
from sqlgateway.requests import SqlRequest
from sqlgateway.results import Statement
from sqlgateway.sessions import Session

NOTHING: Final = Statement()

log = structlog.get_logger(__name__)


def answer(scope: Scope, role: Role, request: SqlRequest, *, request_id: str) -> bytes:
    """Run a request in the scope's database and give the JSON of its answer.

    Raises the errors of sqlgateway.errors, and NotFound for a deleted environment.
    """
    started = time.perf_counter()
    with GATE.slot(scope.environment_pk):
        outcome = _run(scope, "reader" if request.read_only else role, request)
    if outcome.error is not None:
        raise outcome.error
    elapsed_ms = round((time.perf_counter() - started) * 1000, 1)
    return _render(outcome, elapsed_ms=elapsed_ms, request_id=request_id)


def _run(scope: Scope, role: Role, request: SqlRequest) -> Outcome:
    session = _log_in(scope, role)
    try:
        outcome = Execution(session, request).run()
    except BaseException:
        connections.CACHE.discard(session)
        raise
    if outcome.is_clean:
        connections.CACHE.release(session)
    else:
        connections.CACHE.discard(session)
    _look_after_role(session.login, outcome)
    return outcome


def _log_in(scope: Scope, role: Role) -> Session:
    """Give a session, after healing the role or reading the placement anew where it is refused."""
    login = database_for(scope).login(role)
    try:
        return connections.CACHE.checkout(login)
    except LoginRefused:
        healing.heal(login)
    CACHE.forget(scope.environment_pk)
    try:
        return connections.CACHE.checkout(database_for(scope).login(role))
    except LoginRefused:
        log.warning("sql_role_refused_again", database=login.database_id, role=role)
        raise EngineAway from None


def _look_after_role(login: Login, outcome: Outcome) -> None:
    """Undo what a statement did to its own role; the statement's answer does not change."""
    if not outcome.self_harm:
        return
    try:
        healing.heal(login, with_grants="DROP OWNED" in outcome.self_harm)
    except (PlatformError, psycopg.Error) as exc:
        # The next login finds out, and tries again.
        log.warning("sql_healing_put_off", database=login.database_id, kind=type(exc).__name__)


def _render(outcome: Outcome, *, elapsed_ms: float, request_id: str) -> bytes:
    """Give the last statement's members at the top, and all of several in ``results``."""
    statements = outcome.statements or [NOTHING]
    last = statements[-1]
    members = [last.members()]
    if outcome.truncated and not last.truncated:
        # Something was cut: whoever looks at the top alone must see it.
        members = [last.members().removesuffix(b"false") + b"true"]
    if len(statements) > 1:
        each = (b"{%b}" % statement.members() for statement in statements)
        members.append(b'"results":[%b]' % b",".join(each))
    stats = {"elapsed_ms": elapsed_ms, "bytes": sum(one.size_bytes for one in statements)}
    tail = {"notices": outcome.notices, "stats": stats, "request_id": request_id}
    members.append(orjson.dumps(tail)[1:-1])
    return b"{%b}" % b",".join(members)
