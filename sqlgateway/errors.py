"""Errors of ``POST /v1/sql``.

::

    PlatformError
    ├── InvalidRequest    400
    │   ├── SqlRefused
    │   ├── QueryTimeout
    │   ├── QueryCancelled
    │   ├── TransactionNotCommitted
    │   ├── TransactionEnded
    │   ├── IdempotencyNotSupported
    │   ├── CopyNotSupported
    │   ├── UploadInterrupted
    │   └── ResultNotText
    ├── Forbidden         403
    │   └── SqlForbidden
    ├── NotFound          404
    │   ├── ExtensionNotFound
    │   ├── TransactionNotFound
    │   ├── RequestNotRunning
    │   └── SavedQueryNotFound
    ├── Conflict          409
    │   ├── SqlConflict
    │   ├── ExtensionInUse
    │   ├── IdempotencyKeyInUse
    │   ├── TransactionBusy
    │   ├── TransactionElsewhere
    │   ├── StatementOutOfOrder
    │   ├── SavedQueryTaken
    │   ├── SavedQueryChanged
    │   ├── TooManySavedQueries
    │   └── CloneFailed
    ├── Gone              410
    │   └── TransactionOver
    ├── PayloadTooLarge   413
    │   ├── SqlTooLarge
    │   └── ResultTooWide
    ├── Unprocessable     422
    │   └── IdempotencyKeyReused
    ├── TooManyRequests   429
    │   ├── TooManyQueries
    │   └── TooManyTransactions
    ├── EngineError       502
    │   ├── EngineFault
    │   └── OutcomeUnknown
    └── Unavailable       503
        ├── SqlUnavailable
        ├── EngineUnavailable
        ├── DatabaseNotReady
        └── SqlBusy

The four with the code ``sql_error`` carry PostgreSQL's own message; sqlstates.py chooses the class.
"""

from typing import Any, Final

from common import errors
from common.openapi import shapes

OUTCOME: Final[shapes.Shape] = {
    "type": "string",
    "enum": ["committed", "rolled_back", "unknown"],
    "description": "What happened to the transaction.",
}
# The server's messages until the error, as beside a result.
NOTICES: Final[shapes.Shape] = {
    "type": "array",
    "items": {"$ref": "#/components/schemas/Notice"},
}
# Members that describe PostgreSQL's error and the object it is about.
STATEMENT_MEMBERS: Final[dict[str, shapes.Shape]] = {
    "sqlstate": shapes.TEXT,
    "message": shapes.TEXT,
    "statement": shapes.COUNT,
    "retryable": shapes.BOOLEAN,
    "position": shapes.COUNT,
    "line": shapes.COUNT,
    "column": shapes.COUNT,
    "hint": shapes.TEXT,
    "schema": shapes.TEXT,
    "table": shapes.TEXT,
    "column_name": shapes.TEXT,
    "constraint": shapes.TEXT,
    "data_type": shapes.TEXT,
    # After a COMMIT of the text.
    "outcome": OUTCOME,
    "notices": NOTICES,
}


class SqlRefused(errors.InvalidRequest):
    """PostgreSQL refused the statement; ``sqlstate`` says why."""

    code = "sql_error"
    title = "The statement failed."
    members = STATEMENT_MEMBERS


class SqlForbidden(errors.Forbidden):
    """PostgreSQL refused the statement: the role lacks the privilege, or may only read."""

    code = "sql_error"
    title = "The statement is not permitted."
    members = STATEMENT_MEMBERS


class SqlConflict(errors.Conflict):
    """A unique, foreign or exclusion constraint, a serialization failure, a lock or a deadlock."""

    code = "sql_error"
    title = "The statement conflicts with other data."
    members = STATEMENT_MEMBERS


class ExtensionNotFound(errors.NotFound):
    """The extension is not in the list, or this server does not have it."""

    code = "extension_not_found"
    title = "There is no such extension here."


class ExtensionInUse(errors.Conflict):
    """Tables or indexes depend on the extension."""

    code = "extension_in_use"
    title = "Objects of the database depend on this extension."


class SqlTooLarge(errors.PayloadTooLarge):
    """The statement exceeds a limit of PostgreSQL."""

    code = "sql_error"
    title = "The statement exceeds a limit."
    members = STATEMENT_MEMBERS


class SqlUnavailable(errors.Unavailable):
    """PostgreSQL lacked resources for the statement; the same request may work later."""

    code = "sql_error"
    title = "The database is out of resources for the moment."
    members = STATEMENT_MEMBERS


class QueryTimeout(errors.InvalidRequest):
    """The request exceeded its deadline; its transaction was rolled back.

    What a COMMIT of the text or of a procedure kept before stays: then ``outcome`` is unknown.
    """

    code = "query_timeout"
    title = "The query exceeded its deadline."
    members = {"hint": shapes.TEXT, "outcome": OUTCOME, "notices": NOTICES}


class QueryCancelled(errors.InvalidRequest):
    """The query was cancelled, not by its deadline; its transaction was rolled back."""

    code = "query_cancelled"
    title = "The query was cancelled."
    members = {"outcome": OUTCOME, "notices": NOTICES}


class TransactionNotCommitted(errors.InvalidRequest):
    """The text opened a transaction and did not end it; it was rolled back."""

    code = "transaction_not_committed"
    title = "The transaction was not committed, so it was rolled back."
    members = {"outcome": OUTCOME, "notices": NOTICES}


class TransactionEnded(errors.InvalidRequest):
    """A statement ends the transaction that ``queries`` or ``isolation`` opens.

    Most are refused before anything runs. ``outcome`` is there if one was found only afterwards.
    """

    code = "transaction_ended"
    title = "A statement ends the request's transaction."
    members = {"statement": shapes.COUNT, "outcome": OUTCOME}


class IdempotencyNotSupported(errors.InvalidRequest):
    """The request cannot run within one transaction, or its answer cannot be kept."""

    code = "idempotency_not_supported"
    title = "This request cannot have an Idempotency-Key."


class IdempotencyKeyInUse(errors.Conflict):
    """Another request of the same key runs; nothing ran of this one."""

    code = "idempotency_key_in_use"
    title = "A request with this Idempotency-Key is running."
    retry_after_s = 1


class IdempotencyKeyReused(errors.Unprocessable):
    """The key was used with another body or by another role; nothing ran."""

    code = "idempotency_key_reused"
    title = "This Idempotency-Key belongs to another request."


class TransactionNotFound(errors.NotFound):
    """There is no such transaction of this user, session, role and environment."""

    code = "transaction_not_found"
    title = "There is no such transaction."


class TransactionOver(errors.Gone):
    """The transaction ended: by its caller, by a limit of time, or with its connection."""

    code = "transaction_over"
    title = "The transaction has ended."
    members = {"outcome": OUTCOME}


class TransactionBusy(errors.Conflict):
    """Another request uses the transaction at this moment; nothing ran."""

    code = "transaction_busy"
    title = "A statement of this transaction is running."


class TransactionElsewhere(errors.Conflict):
    """The transaction is open on another machine; nothing ran. Send the request again."""

    code = "transaction_elsewhere"
    title = "The transaction is open on another machine."


class StatementOutOfOrder(errors.Conflict):
    """The statement's number is not the next one; nothing ran."""

    code = "statement_out_of_order"
    title = "This is not the transaction's next statement."
    members = {"expected": shapes.COUNT}


class CopyNotSupported(errors.InvalidRequest):
    """COPY FROM STDIN and COPY TO STDOUT need a protocol that HTTP does not carry."""

    code = "copy_not_supported"
    title = "COPY is not supported here."
    members = {"hint": shapes.TEXT, "outcome": OUTCOME}


class UploadInterrupted(errors.InvalidRequest):
    """A body ended early or came too slowly; nothing of it was imported."""

    code = "upload_interrupted"
    title = "The body did not arrive completely, so nothing was imported."


class ResultNotText(errors.InvalidRequest):
    """A result is not UTF-8 text; ``outcome`` says what its transaction did."""

    code = "result_not_text"
    title = "The result is not UTF-8 text."
    members = {"hint": shapes.TEXT, "outcome": OUTCOME}

    def __init__(self, detail: str = "", **options: Any) -> None:
        hint = "Leave client_encoding as it is, and declare cursors without BINARY."
        super().__init__(detail, **{"extra": {"hint": hint}, **options})


class ResultTooWide(errors.PayloadTooLarge):
    """A single row or message is too long; ``outcome`` says what happened to the transaction."""

    code = "result_too_large"
    title = "The rows of the result are too long."
    members = {"outcome": OUTCOME}


class TooManyQueries(errors.TooManyRequests):
    """The organization or the environment has reached its limit of running and queued requests."""

    code = "too_many_queries"
    title = "This organization has reached its limit of concurrent queries."
    retry_after_s = 1


class TooManyTransactions(errors.TooManyRequests):
    """The organization or the environment has reached its limit of open transactions."""

    code = "too_many_transactions"
    title = "Too many transactions are open."
    retry_after_s = 5


class EngineFault(errors.EngineError):
    """PostgreSQL failed internally; logged with the request id."""

    title = "The database failed internally."
    members = {"sqlstate": shapes.TEXT}


class OutcomeUnknown(errors.EngineError):
    """The connection was lost while the statement ran: it may have been committed or not."""

    code = "outcome_unknown"
    title = "The connection was lost; whether the statement took effect is unknown."
    members = {"retryable": shapes.BOOLEAN, "outcome": OUTCOME}


class EngineUnavailable(errors.Unavailable):
    """The tenants' cluster cannot be reached or used, or takes no writes; nothing is kept."""

    code = "sql_unavailable"
    title = "The database is unavailable for the moment."
    # is_unfit: the server answers, but cannot be used; ``for_operators`` says why.
    is_unfit = False


class RequestNotRunning(errors.NotFound):
    """No running request that the caller may cancel has this id."""

    code = "request_not_running"
    title = "No such request is running."


class SavedQueryNotFound(errors.NotFound):
    """No saved query of the caller's organization has this id."""

    code = "saved_query_not_found"
    title = "There is no such saved query."


class SavedQueryTaken(errors.Conflict):
    """Another saved query of the organization has this name, in any case."""

    code = "saved_query_taken"
    title = "Another saved query has this name."


class SavedQueryChanged(errors.Conflict):
    """``version`` is not the present one: the saved query was changed by another request."""

    code = "saved_query_changed"
    title = "The saved query was changed by another request."
    members = {"version": shapes.COUNT, "updated_by": shapes.TEXT}


class TooManySavedQueries(errors.Conflict):
    """The organization has reached the limit of saved queries."""

    code = "too_many_saved_queries"
    title = "The organization has too many saved queries."


class DatabaseNotReady(errors.Unavailable):
    """The database is being moved to another server, or filled by a clone; nothing ran."""

    code = "database_not_ready"
    title = "The database is being moved or copied."
    retry_after_s = 2


class CloneFailed(errors.Conflict):
    """The environment's clone could not be made; delete the environment and clone again."""

    code = "clone_failed"
    title = "The data of this environment could not be copied."


class SqlBusy(errors.Unavailable):
    """The gateway has reached its limit of running requests or large results.

    Nothing ran, or it was rolled back.
    """

    code = "sql_busy"
    title = "The gateway is busy."
    retry_after_s = 1
