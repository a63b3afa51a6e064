"""One connection as one tenant role, used for one request after another."""

import random
import time
from typing import Final

import psycopg
from django.conf import settings
from psycopg import pq

from sqlgateway.connection.message_stream import ConnectionLost, MessageStream, ResultOverflow
from sqlgateway.connection.session_settings import (
    LIBPQS_OWN,
    settings_statement,
    startup_options,
)
from sqlgateway.formats.column_types import ColumnType
from sqlgateway.hardening.scram import scram_of
from sqlgateway.provisioning.placements import Login

# libpq's buffer never shrinks: a connection that once held this much is not kept.
KEEP_LIMIT_BYTES: Final = 2**20
MAX_LIFE_S: Final = 600.0
RESET_TIMEOUT_S: Final = 2.0
# DISCARD ALL in its parts (no tenant's role gets an advisory lock), which can come before another
# statement: it leaves the seed of random(), so that the next request's values would be known.
RESET: Final = (
    b"CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; DEALLOCATE ALL; UNLISTEN *;"
    b"DISCARD PLANS; DISCARD TEMP; DISCARD SEQUENCES; SET seed = %.17f"
)
# The server ends by itself what takes longer.
LIMITS: Final = ("statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout")
RANDOM: Final = random.SystemRandom()
BACKEND_PID: Final = b"; SELECT pg_catalog.pg_backend_pid()"
# PgBouncer says so for a second or more after a login that the server refused.
POOLER_PAUSES: Final = "server_login_retry"
DONE: Final = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})


class SessionRefused(psycopg.OperationalError):
    """Behind a pooler, the server refused what a session begins with."""


class NoServerConnection(psycopg.OperationalError):
    """The pooler gave no server connection: all are taken, or the server refuses it or is away.

    is_pausing: it said so immediately, and will for a while after the server has let it in again.
    """

    is_pausing = False


class TenantConnection(MessageStream):
    """A connection, its role, and the known types of its database.

    timeout_ms: its organization's own limit of one statement, None without one.
    """

    def __init__(self, connection: psycopg.Connection, login: Login) -> None:
        self.opened_at = self.used_at = time.monotonic()
        super().__init__(connection.pgconn, opened_at=self.opened_at)
        self.connection = connection
        self.login = login
        self.pid = self.pgconn.backend_pid
        self.column_types: dict[int, ColumnType] = {}
        self.timeout_ms: int | None = None
        # When its last request was cancelled (time.monotonic); it is closed then.
        self.cancelled_at: float | None = None
        # What a start-up packet would have said, and RESET ALL undoes.
        self._settings = b""

    def begin_pooled(self) -> None:
        """Do what the start-up packet does where no pooler is between.

        Raises SessionRefused, EngineUnavailable, ConnectionLost: also if the pooler has no server
        connection within the time to connect.
        """
        self._settings = settings_statement(self.login.address, self.login.role)
        self.give_up_at = time.monotonic() + settings.SQL.connect_timeout_s
        self._send_short(self._settings + BACKEND_PID)
        result = self.last_result()
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise SessionRefused(result.error_message)
        # The server's own: the pooler reports a random number, by which to cancel.
        self.pid = int(result.get_value(0, 0) or 0)
        self.is_pooled = True

    @property
    def status(self) -> pq.TransactionStatus:
        """The transaction's status as the server last reported it."""
        return pq.TransactionStatus(self.pgconn.transaction_status)

    @property
    def starts_read_only(self) -> bool:
        """True if a transaction that begins now is READ ONLY.

        As the server reported it before the text; what the text changes is reported after it. A
        pooler reports what another session had, but each session is given its own at first.
        """
        if self.is_pooled:
            return self.login.role == "reader"
        return self.pgconn.parameter_status(b"default_transaction_read_only") == b"on"

    def extend_limits(self, timeout_ms: int) -> None:
        """Let the server's own limits of time follow a later deadline, until the connection parks.

        The watchdog enforces it from outside. Raises ConnectionLost.
        """
        if timeout_ms <= settings.SQL.timeout_ms:
            return
        names = [*LIMITS]
        if self.login.address.can("transaction_timeout"):
            names.append("transaction_timeout")
        limit_ms = timeout_ms + settings.SQL.grace_ms
        self.give_up_at = max(self.give_up_at, time.monotonic() + RESET_TIMEOUT_S)
        self.run("; ".join(f"SET {name} = {limit_ms}" for name in names).encode())

    def start_reset(self) -> bool:
        """Clean up; True if the connection may be used again.

        This does not wait for its answer: the server works while the caller's
        answer is written, and ``finish_reset`` reads it before the next request.
        """
        self.notices = []
        if self._max_bytes > KEEP_LIMIT_BYTES:
            return False
        if time.monotonic() - self.opened_at > MAX_LIFE_S:
            return False
        try:
            if self.status != pq.TransactionStatus.IDLE:
                self.run(b"ROLLBACK")
            if self.status != pq.TransactionStatus.IDLE:
                return False
            if self._wire.is_piped:
                self._drop_notifications()
            if not self._wire.unpipe():
                return False
            text = RESET % RANDOM.uniform(-1, 1)
            if self.is_pooled:
                text += b"; " + self._settings
            self._send_short(text)
            self._is_resetting = True
        except (ConnectionLost, psycopg.Error):
            return False
        self.used_at = time.monotonic()
        return True

    def finish_reset(self) -> bool:
        """Read the answer that ``start_reset`` did not wait for.

        Returns False if the connection is unusable.
        """
        self.give_up_at = time.monotonic() + RESET_TIMEOUT_S
        try:
            if self._is_resetting and not self._is_reset():
                return False
            # No answer is due: anything readable now is the end of the connection or its reason.
            if not self._has_arrived and self._wire.has_more():
                return False
        except (ConnectionLost, ResultOverflow, psycopg.Error):
            return False
        self.notices = []
        self._max_bytes = 0
        return self.status == pq.TransactionStatus.IDLE

    def _send_short(self, text: bytes) -> None:
        """Send a text of the gateway whose answer is short.

        It fits into the socket's buffer, as nothing else is being sent, so it needs no pipe.
        Raises ConnectionLost.
        """
        self._send(lambda: self.pgconn.send_query(text), 0, is_chunked=False)

    def _is_reset(self) -> bool:
        """Read the answer to RESET; True if each of its statements has run."""
        result = self.next_result()
        # Of an answer that has arrived, libpq needs no help to read the rest.
        read = self.pgconn.get_result if self._has_arrived else self.next_result
        while result is not None:
            if result.status not in DONE:
                return False
            result = read()
        self._is_resetting = False
        return True

    def close(self) -> None:
        """Close the connection; safe to repeat."""
        self.connection.close()
        self._wire.close()


def open_connection(login: Login) -> TenantConnection:
    """Log in as a tenant's role.

    Raises psycopg.OperationalError (behind a pooler SessionRefused or NoServerConnection), and
    EngineUnavailable.
    """
    try:
        return _open(login)
    except psycopg.OperationalError as exc:
        if POOLER_PAUSES not in str(exc):
            raise
    pausing = NoServerConnection()
    pausing.is_pausing = True
    raise pausing


def _open(login: Login) -> TenantConnection:
    scram = scram_of(login.user, login.password)
    address = login.address
    options = {"options": startup_options(address, login.role)} if address.takes_options else {}
    connection = psycopg.connect(
        **{**dict(address.network), **LIBPQS_OWN, **options},  # type: ignore[arg-type]  # libpq's words, all text
        user=login.user,
        scram_client_key=scram.client_key,
        scram_server_key=scram.server_key,
        dbname=login.dbname,
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=settings.SQL.connect_timeout_s,
    )
    session = TenantConnection(connection, login)
    if not address.takes_options:
        _begin_pooled(session)
    return session


def _begin_pooled(session: TenantConnection) -> None:
    try:
        session.begin_pooled()
    except (ConnectionLost, ResultOverflow):
        session.close()
        raise NoServerConnection from None
    except BaseException:
        session.close()
        raise
