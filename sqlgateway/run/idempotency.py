"""Requests with an ``Idempotency-Key``: their transaction, and records in the tenant's database.

The key is inserted first and its record is written last, both in the request's own transaction, so
that after a crash both exist or neither. A second request with the same key waits for the end of
the first one's transaction.

The tenant's roles can read and write the table. So a record is encrypted, authenticated, and bound
to its organization, environment, user and key: only the gateway can create or read records, and a
record that was moved or altered is ignored. A tenant that deletes a row can repeat a request, but
it could also send the request without a key.

The administrator creates the table at its first use. Its schema belongs to the platform, so that
the tenant cannot change or drop the table. Admins and operators may write rows. Readers may not,
because they could fill the disk.
"""

import hashlib
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson
import psycopg
import structlog
from psycopg import pq, sql
from psycopg.pq.abc import PGresult

from common import crypto
from common.errors import InvalidRequest
from sqlgateway import errors
from sqlgateway.clusters import servers
from sqlgateway.clusters.placements import Login
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Database
from sqlgateway.pg.message_stream import ConnectionLost
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import sqlstates
from sqlgateway.run.outcomes import FAILURES, AlreadyAnswered, StatementFailed
from sqlgateway.run.parameters import canonical
from sqlgateway.run.requests import Caller, SqlRequest
from sqlgateway.run.sqlstates import ErrorPosition

log = structlog.get_logger(__name__)

HEADER: Final = "Idempotency-Key"
PURPOSE: Final = "sql idempotency"
# Visible ASCII: a key is compared byte by byte.
KEY_PATTERN: Final = re.compile(r"[\x21-\x7e]{1,255}")
# Long enough for usual statements. For longer ones the client should retry, not hold a slot.
WAIT_MS: Final = 2_000
LOCK_TIMEOUT: Final = "55P03"
KEPT_HOURS: Final = 24
MAX_ANSWER_BYTES: Final = 2**20
HOUR_S: Final = 3600
# A request deletes old records if the first byte of its key's digest is below this: one in 16.
CLEANED_BELOW: Final = 16
CREATE_TABLE: Final = sql.SQL(
    """
    CREATE SCHEMA IF NOT EXISTS zonal;
    CREATE TABLE IF NOT EXISTS zonal.idempotency (
        key pg_catalog.bytea PRIMARY KEY,
        made_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now(),
        record pg_catalog.bytea
    );
    CREATE INDEX IF NOT EXISTS idempotency_made_at ON zonal.idempotency (made_at);
    GRANT USAGE ON SCHEMA zonal TO {admin}, {operator};
    GRANT SELECT, INSERT, UPDATE, DELETE ON zonal.idempotency TO {admin}, {operator};
    """
)
# Serializes requests that create the table concurrently.
CREATION_LOCK: Final = "SELECT pg_catalog.pg_advisory_xact_lock(7305808869229538)"
# SQLSTATEs of a missing table or schema, and of missing privileges after a restore.
NO_TABLE: Final = frozenset({"42P01", "3F000", "42501"})


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a caller. body_hash: the hash of the request's body."""

    caller: Caller
    text: str
    body_hash: str

    @classmethod
    def of(cls, caller: Caller, text: str, body: dict[str, Any]) -> Self:
        """Return the key of a request; whitespace and order in its body do not matter.

        Raises InvalidRequest if the key has invalid characters, or the parameters are too deep.
        """
        if KEY_PATTERN.fullmatch(text) is None:
            message = "1 to 255 visible ASCII characters."
            raise InvalidRequest.for_field(HEADER, message)
        return cls(caller, text, hashlib.sha256(canonical(body)).hexdigest())

    @property
    def bound_to(self) -> bytes:
        """Bytes that identify organization, environment, user and key."""
        scope, user = self.caller.scope, str(self.caller.user_id or "development token")
        return orjson.dumps([scope.organization_id, scope.environment_pk, user, self.text])

    @property
    def digest(self) -> bytes:
        """The key in the table: 32 bytes."""
        return hashlib.sha256(self.bound_to).digest()

    def seal(self, answer: bytes, *, now: float) -> bytes:
        """Return the record of an answer."""
        head = orjson.dumps({"at": now, "role": self.caller.role, "body": self.body_hash})
        data = head + b"\n" + answer
        return crypto.seal(data, purpose=PURPOSE, associated=self.bound_to)

    def unseal(self, record: bytes) -> "StoredAnswer | None":
        """Return the content of a record, None if it is not authentic."""
        try:
            data = crypto.unseal(record, purpose=PURPOSE, associated=self.bound_to)
        except crypto.NotAuthentic:
            return None
        head, _, answer = data.partition(b"\n")
        given = orjson.loads(head)
        is_same = given["body"] == self.body_hash and given["role"] == self.caller.role
        return StoredAnswer(answer, given["at"], is_same_request=is_same)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The content of a record.

    at: when it was written, in Unix seconds.
    is_same_request: True if role and body are those of the present request.
    """

    answer: bytes
    at: float
    is_same_request: bool


class KeyedBoundary:
    """A transaction that commits with the record of its answer.

    render: returns the answer after all statements have run.
    answer: set after the commit, or when a stored answer was found.
    is_replayed: a stored answer was found, and no statement ran.
    """

    def __init__(
        self, request: SqlRequest, key: Key, *, render: Callable[[TenantConnection], bytes]
    ) -> None:
        self._request = request
        self._key = key
        self._digest = key.digest
        self._render = render
        self.answer = b""
        self.is_replayed = False

    def open(self, connection: TenantConnection) -> None:
        """Begin and claim the key.

        Raises AlreadyAnswered if it has a record, IdempotencyKeyReused, IdempotencyKeyInUse.
        """
        failure, is_new = self._claim(connection)
        if failure is not None and sqlstates.sqlstate_of(failure) in NO_TABLE:
            connection.run(b"ROLLBACK")
            _create_table(connection.login)
            failure, is_new = self._claim(connection)
        if failure is not None:
            if sqlstates.sqlstate_of(failure) == LOCK_TIMEOUT:
                raise errors.IdempotencyKeyInUse
            raise self._failed(failure)
        if not is_new:
            self._look_up(connection)

    def _claim(self, connection: TenantConnection) -> tuple[PGresult | None, bool]:
        connection.send_text(_claim_statement(self._digest, self._request.begin, wait_ms=WAIT_MS))
        failure: PGresult | None = None
        is_new = False
        while (result := connection.next_result()) is not None:
            if result.status in FAILURES:
                failure = result
            is_new = is_new or result.command_status == b"INSERT 0 1"
        return failure, is_new

    def _look_up(self, connection: TenantConnection) -> None:
        """Look for a stored answer; return if the record is missing, too old or not authentic.

        Raises AlreadyAnswered, IdempotencyKeyReused, IdempotencyKeyInUse.
        """
        result = connection.run(_record_query(self._digest))
        if result.status in FAILURES:
            raise self._failed(result)
        if result.ntuples != 1:
            # It was deleted between the two statements.
            raise errors.IdempotencyKeyInUse
        kept = self._key.unseal(_bytes(result.get_value(0, 0)))
        if kept is None or kept.at < time.time() - KEPT_HOURS * HOUR_S:
            return
        if not kept.is_same_request:
            raise errors.IdempotencyKeyReused
        self.answer, self.is_replayed = kept.answer, True
        raise AlreadyAnswered

    def check(self, connection: TenantConnection, number: int) -> None:
        """Raise TransactionEnded if a statement ended the transaction with the key."""
        if connection.status == pq.TransactionStatus.IDLE:
            raise errors.TransactionEnded(
                "It committed or rolled back what ran before it, without a record of its key.",
                extra={"statement": number},
            )

    def close(self, connection: TenantConnection, *, was_cancelled_early: bool) -> None:
        """Write the record and commit.

        Raises ResultTooWide, after a rollback, if the answer is too long to be stored.
        """
        if was_cancelled_early or connection.status == pq.TransactionStatus.INERROR:
            connection.run(b"ROLLBACK")
            raise errors.TransactionNotCommitted("One of its statements failed.")
        answer = self._render(connection)
        if len(answer) > MAX_ANSWER_BYTES:
            connection.run(b"ROLLBACK")
            raise errors.ResultTooWide(
                f"An answer of at most {MAX_ANSWER_BYTES} bytes can be kept for an "
                "Idempotency-Key: return fewer rows.",
                extra={"outcome": "rolled_back"},
            )
        self._write(connection, answer)
        result = connection.run(b"COMMIT")
        if result.status in FAILURES:
            raise self._failed(result)
        self.answer = answer
        if self._digest[0] < CLEANED_BELOW:
            # The request is committed, and its answer known, whatever becomes of the connection.
            with suppress(ConnectionLost):
                connection.run(_old_records_removal(KEPT_HOURS))

    def _write(self, connection: TenantConnection, answer: bytes) -> None:
        record = self._key.seal(answer, now=time.time())
        text = b"\\x" + record.hex().encode()
        connection.send_statement(_record_update(self._digest), [text])
        result = connection.last_result()
        if result.status in FAILURES:
            raise self._failed(result)
        if result.command_status != b"UPDATE 1":
            connection.run(b"ROLLBACK")
            raise errors.IdempotencyNotSupported("The request removed the record of its own key.")

    def _failed(self, result: PGresult) -> StatementFailed:
        return StatementFailed(result, ErrorPosition("", len(self._request.texts)))


def _create_table(login: Login) -> None:
    """Create the schema, the table and their privileges, if they are missing.

    Raises EngineUnavailable.
    """
    database = Database.objects.get(pk=login.database_id)
    roles = {role: sql.Identifier(name) for role, name in database.roles.items()}
    try:
        with (
            servers.administer(login.address, login.dbname) as connection,
            connection.transaction(),
        ):
            connection.execute(CREATION_LOCK)
            connection.execute(CREATE_TABLE.format(**roles))
    except psycopg.Error as exc:
        log.warning("sql_idempotency_table_failed", database=database.pk, sqlstate=exc.sqlstate)
        raise EngineUnavailable from None


def _literal(digest: bytes) -> bytes:
    """Return a key as a constant that does not depend on settings of the session."""
    return b"pg_catalog.decode('%b', 'hex')" % digest.hex().encode()


def _claim_statement(digest: bytes, begin: bytes, *, wait_ms: int) -> bytes:
    """Return the text that begins the transaction and inserts the key without a record.

    A second request of the same key waits for the end of the first one's transaction.
    """
    return (
        b"%b; SET LOCAL lock_timeout = %d;"
        b" INSERT INTO zonal.idempotency (key) VALUES (%b) ON CONFLICT (key) DO NOTHING;"
        b" SET LOCAL lock_timeout TO DEFAULT" % (begin, wait_ms, _literal(digest))
    )


def _record_query(digest: bytes) -> bytes:
    """Return the query that reads and locks a key's record."""
    return (
        b"SELECT record FROM zonal.idempotency WHERE key OPERATOR(pg_catalog.=) %b FOR UPDATE"
        % _literal(digest)
    )


def _record_update(digest: bytes) -> bytes:
    """Return the statement that sets a key's record to $1."""
    return (
        b"UPDATE zonal.idempotency SET record = $1, made_at = pg_catalog.now()"
        b" WHERE key OPERATOR(pg_catalog.=) %b" % _literal(digest)
    )


def _old_records_removal(hours: int) -> bytes:
    """Return the statement that deletes some old records."""
    # ANY(ARRAY(…)) is computed once; IN (…) perhaps for each row, with a limit each time.
    return (
        b"DELETE FROM zonal.idempotency WHERE key OPERATOR(pg_catalog.=)"
        b" ANY (ARRAY(SELECT key FROM zonal.idempotency WHERE made_at OPERATOR(pg_catalog.<)"
        b" (pg_catalog.now() OPERATOR(pg_catalog.-) '%d hours'::pg_catalog.interval)"
        b" LIMIT 100 FOR UPDATE SKIP LOCKED))" % hours
    )


def _bytes(value: bytes | None) -> bytes:
    """Return the bytes of a bytea in hexadecimal format; no bytes if it has another format."""
    try:
        return bytes.fromhex((value or b"").decode().removeprefix("\\x"))
    except ValueError:
        return b""
