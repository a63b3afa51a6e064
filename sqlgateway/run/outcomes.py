"""How a request ended, and the error that answers a failure."""

from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from django.conf import settings
from psycopg import pq
from psycopg.pq.abc import PGresult

from common.errors import PlatformError
from common.server_states import READ_ONLY
from sqlgateway import errors
from sqlgateway.pg.administrator import ADMINISTRATOR
from sqlgateway.pg.message_stream import ConnectionLost, ResultOverflow
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import sqlstates
from sqlgateway.run.sqlstates import ErrorPosition

# A process of the server crashed, and the server ends all others: a commit may have been running.
CRASH: Final = "57P02"
# A write in a READ ONLY transaction, and an object in another state than a statement needs
# (object_not_in_prerequisite_state): the tenant's fault, unless its server is a standby or read
# only.
READ_ONLY_STATES: Final = frozenset({READ_ONLY, "55000"})
FAILURES: Final = frozenset({pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE})
CANCEL_S: Final = 3.0


@dataclass(slots=True)
class RequestOutcome:
    """How a request ended.

    error: if set, the rows in the sink are not an answer.
    is_clean: the connection may be used again.
    has_committed: a COMMIT in the text has succeeded.
    was_sent: a text of the request was sent to be run.
    """

    notices: list[dict[str, Any]] = field(default_factory=list)
    error: PlatformError | None = None
    is_clean: bool = True
    has_committed: bool = False
    was_sent: bool = False


class AlreadyAnswered(Exception):
    """The boundary has found a stored answer; no text runs."""


class StatementFailed(Exception):
    """A statement failed; ``result`` is the server's error."""

    def __init__(self, result: PGresult, spot: ErrorPosition) -> None:
        super().__init__()
        self.result = result
        self.spot = spot

    @property
    def sqlstate(self) -> str:
        """The error's SQLSTATE; empty when the server sent none."""
        return sqlstates.sqlstate_of(self.result)

    @property
    def is_fatal(self) -> bool:
        """True if the server closes the connection with this error."""
        return sqlstates.is_fatal(self.result)


def take_notices(
    connection: TenantConnection, outcome: RequestOutcome, spot: ErrorPosition = sqlstates.NOWHERE
) -> None:
    """Add the notices that have come since the last call. spot: of the statement that runs."""
    for notice in connection.notices[len(outcome.notices) :]:
        outcome.notices.append(sqlstates.notice(notice, connection.login, spot))


def refusal(
    connection: TenantConnection, failed: StatementFailed, *, was_sent: bool = True
) -> PlatformError:
    """Return the error that answers a statement's failure. was_sent: it may have been committed."""
    if failed.is_fatal and failed.sqlstate == CRASH:
        return connection_lost(connection, was_sent=was_sent)
    if failed.sqlstate in READ_ONLY_STATES and _refused_writes(connection):
        return errors.EngineUnavailable("The server takes no writes at the moment.")
    return sqlstates.refusal(failed.result, connection.login, failed.spot)


def _refused_writes(connection: TenantConnection) -> bool:
    # Readers may not write anywhere.
    return connection.login.role != "reader" and ADMINISTRATOR.refused_writes(connection)


def connection_lost(connection: TenantConnection, *, was_sent: bool) -> PlatformError:
    """Return the error that answers a broken connection. was_sent: texts of the request may run."""
    if not was_sent:
        return errors.EngineUnavailable("The connection was lost; nothing ran.")
    if connection.login.role == "reader":
        return errors.EngineUnavailable("The connection was lost; a reader changes nothing.")
    return errors.OutcomeUnknown(extra={"retryable": False})


def end_early(connection: TenantConnection, error: PlatformError) -> PlatformError:
    """Cancel the running statement after an error in the gateway.

    Returns the error with ``outcome``: how the transaction ended.
    """
    # The rest of the answer is discarded, so it needs no memory.
    connection.on_held = None
    try:
        connection.psycopg_connection.cancel_safe(timeout=CANCEL_S)
        has_failed = connection.skip_answer()
    except (ConnectionLost, psycopg.Error):
        outcome = "unknown"
    except ResultOverflow:
        outcome = end_overflow(connection).extra["outcome"]
    else:
        is_kept = not has_failed and connection.status == pq.TransactionStatus.IDLE
        outcome = "committed" if is_kept else "rolled_back"
    if isinstance(error, errors.SqlBusy):
        if outcome == "rolled_back" or connection.login.role == "reader":
            return error
        # The statement has run, but SqlBusy would say that it has not.
        error = errors.ResultTooWide("The gateway held too many large results.")
    error.extra.setdefault("outcome", outcome)
    return error


def after_commit(error: PlatformError) -> PlatformError:
    """Return the error of a text that may have committed changes before it failed.

    The answer must not suggest that nothing was changed: the caller would send the text again.
    """
    if isinstance(error, errors.SqlBusy):
        error = errors.ResultTooWide("The gateway held too many large results.")
    elif isinstance(error, errors.SqlUnavailable | errors.EngineUnavailable):
        error = errors.OutcomeUnknown(error.detail, extra={"retryable": False})
    if "retryable" in error.extra:
        error.extra["retryable"] = False
    if "outcome" in error.members:
        error.extra["outcome"] = "unknown"
    return error


def end_overflow(connection: TenantConnection) -> PlatformError:
    """Terminate the backend, usually while it still sends, so that it cannot commit."""
    was_open = ADMINISTRATOR.is_open(connection)
    was_terminated = ADMINISTRATOR.terminate(connection)
    outcome = connection.outcome_of_terminated()
    if outcome == "rolled_back" and not (was_open and was_terminated):
        outcome = "unknown"
    return errors.ResultTooWide(
        f"Single rows must stay well below {settings.SQL.row_bytes} bytes.",
        extra={"outcome": outcome},
    )
