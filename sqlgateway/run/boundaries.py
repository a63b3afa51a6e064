"""The transaction around the texts of a request, and the statements that begin or end one.

Such statements are found before anything runs. Only PostgreSQL parses statements; this module reads
the first words of each. If it misreads a text, the request is still refused afterwards, because its
transaction has changed (``Boundary.check``).
"""

import re
import secrets
from collections.abc import Iterator
from typing import Final, Protocol

from psycopg import pq

from sqlgateway import errors
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run.outcomes import FAILURES, StatementFailed
from sqlgateway.run.requests import SqlRequest
from sqlgateway.run.sql_text import tokens
from sqlgateway.run.sqlstates import ErrorPosition

# CREATE OR REPLACE FUNCTION and ROLLBACK TRANSACTION TO are the longest beginnings that matter.
MAX_WORDS: Final = 4
CONTROL: Final = frozenset({"ABORT", "BEGIN", "COMMIT", "END", "START"})
FILLERS: Final = frozenset({"TRANSACTION", "WORK"})
# One search shows that most texts have none of these words.
CONTROL_WORDS: Final = re.compile(
    r"\b(?:ABORT|BEGIN|COMMIT|END|PREPARE|ROLLBACK|START)\b", re.IGNORECASE
)
# A routine can commit, called by a text or by the block of a DO.
COMMITTING_WORDS: Final = re.compile(r"\b(?:CALL|COMMIT)\b", re.IGNORECASE)
ROUTINES: Final = frozenset({"FUNCTION", "PROCEDURE"})
Status = pq.TransactionStatus
# ROLLBACK TO or RELEASE of a savepoint that the transaction does not have.
NO_SAVEPOINT: Final = "3B001"


class Boundary(Protocol):
    """What happens before, between and after the texts of a request."""

    def open(self, connection: TenantConnection) -> None:
        """Begin, before the first text. Raises AlreadyAnswered if there is a stored answer."""

    def check(self, connection: TenantConnection, number: int) -> None:
        """Check the transaction after the text of this number, from 1."""

    def close(self, connection: TenantConnection, *, was_cancelled_early: bool) -> None:
        """Commit, or roll back, after the last text.

        was_cancelled_early: the query was cancelled; it had not written anything.
        """


class RequestBoundary:
    """The transaction of one request, which ends with the request.

    A savepoint marks the gateway's transaction. If a statement ends that transaction, the savepoint
    no longer exists, even if the statement began another transaction (COMMIT AND CHAIN). Also,
    a transaction with a savepoint cannot become READ WRITE.
    """

    _mark = ""

    def __init__(self, request: SqlRequest) -> None:
        self._request = request

    def open(self, connection: TenantConnection) -> None:
        """Begin a transaction if the request needs one around its texts.

        Raises TransactionEnded if a statement would end it.
        """
        if not self._request.opens_transaction:
            return
        for number, sql_text in enumerate(self._request.texts, start=1):
            found = first_control(sql_text.text)
            if found:
                raise errors.TransactionEnded(
                    "The request's transaction is the gateway's to begin and to end. Nothing ran.",
                    extra={"statement": number if self._request.is_batch else found},
                )
        # Random, so that a text cannot name the savepoint.
        self._mark = f"zonal_{secrets.token_hex(8)}"
        self._command(connection, b"%b; SAVEPOINT %b" % (self._request.begin, self._mark.encode()))

    def check(self, connection: TenantConnection, number: int) -> None:
        """Raise TransactionEnded if a statement of ``queries`` ended their transaction."""
        if self._request.is_batch and connection.status == Status.IDLE:
            raise _ended(number)

    def close(self, connection: TenantConnection, *, was_cancelled_early: bool) -> None:
        """Commit the gateway's transaction; roll back and report one that a text left open."""
        if not self._request.opens_transaction:
            self._close_own(connection, was_cancelled_early=was_cancelled_early)
        elif was_cancelled_early:
            connection.run(b"ROLLBACK")
        elif connection.status == Status.IDLE:
            raise _ended()
        elif connection.status == Status.INERROR:
            connection.run(b"ROLLBACK")
            raise errors.TransactionNotCommitted("One of its statements failed.")
        else:
            self._commit(connection)

    def _close_own(self, connection: TenantConnection, *, was_cancelled_early: bool) -> None:
        """Roll back a transaction that the text left open, and report it.

        It is not reported after an early cancel: the query had not written anything.
        """
        if connection.status == Status.IDLE:
            return
        connection.run(b"ROLLBACK")
        if not was_cancelled_early:
            raise errors.TransactionNotCommitted("End it with COMMIT in the same text.")

    def _commit(self, connection: TenantConnection) -> None:
        try:
            self._command(connection, b"RELEASE %b; COMMIT" % self._mark.encode())
        except StatementFailed as failed:
            if failed.sqlstate == NO_SAVEPOINT:
                raise _ended() from None
            raise

    def _command(self, connection: TenantConnection, text: bytes) -> None:
        result = connection.run(text)
        if result.status in FAILURES:
            # A COMMIT fails because of a deferred constraint or a serialization failure.
            raise StatementFailed(result, ErrorPosition("", len(self._request.texts)))


def first_control(text: str) -> int:
    """Return the number of the first statement that begins or ends a transaction, from 1.

    0 if there is none.
    """
    if CONTROL_WORDS.search(text) is None:
        return 0
    for number, words in enumerate(_beginnings(text), start=1):
        if _is_control(words):
            return number
    return 0


def may_commit(text: str) -> bool:
    """True if a text runs a routine, which may commit changes."""
    if COMMITTING_WORDS.search(text) is None:
        return False
    return any(words[0] in {"CALL", "DO"} for words in _beginnings(text))


def _is_control(words: list[str]) -> bool:
    """True if a statement that begins with these words begins or ends a transaction.

    Savepoints do neither.
    """
    if words[0] == "ROLLBACK":
        rest = [word for word in words[1:] if word not in FILLERS]
        return rest[:1] != ["TO"]
    return words[0] in CONTROL or words[:2] == ["PREPARE", "TRANSACTION"]


def _beginnings(text: str) -> Iterator[list[str]]:
    """Yield the first words of each statement, in capitals; other tokens as an empty string."""
    words: list[str] = []
    depth = 0
    last = ""
    for kind, token in tokens(text):
        if kind in {"blank", "comment"}:
            continue
        if kind == "end" and depth == 0:
            if words:
                yield words
            words, last = [], ""
            continue
        word = token.upper() if kind == "word" else ""
        if len(words) < MAX_WORDS:
            words.append(word)
        elif words[0] == "CREATE" and not ROUTINES.isdisjoint(words):
            depth = _depth(depth, last, word)
        last = word
    if words:
        yield words


def _depth(depth: int, last: str, word: str) -> int:
    """Return the depth of blocks in a function's body after a word, 0 outside of the body.

    A body in standard SQL is BEGIN ATOMIC ... END. It may contain semicolons and CASE ... END.
    """
    if depth == 0:
        return 1 if (last, word) == ("BEGIN", "ATOMIC") else 0
    return depth + (word == "CASE") - (word == "END")


def _ended(number: int = 0) -> errors.TransactionEnded:
    return errors.TransactionEnded(
        "It committed or rolled back the statements before it, which cannot be undone.",
        extra={"outcome": "unknown", **({"statement": number} if number else {})},
    )
