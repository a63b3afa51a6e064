"""One connection as one tenant role, used for one request after another."""

import random
import time
from typing import Final

import psycopg
from django.conf import settings
from psycopg import pq

from sqlgateway.clusters import silence
from sqlgateway.clusters.placements import Login
from sqlgateway.formats.column_types import ColumnType
from sqlgateway.hardening.scram import scram_of
from sqlgateway.pg import session_settings
from sqlgateway.pg.message_stream import ConnectionLost, MessageStream, ResultOverflow
from sqlgateway.pg.session_settings import LIBPQS_OWN, settings_statement, startup_options

# libpq's buffer never shrinks: a connection that has buffered more than this is closed.
KEEP_LIMIT_BYTES: Final = 2**20
MAX_LIFE_S: Final = 600.0
RESET_TIMEOUT_S: Final = 2.0
# The parts of DISCARD ALL, which cannot be sent together with other statements. There are no
# advisory locks: tenants' roles cannot take them. The seed of random() is set as well, or a tenant
# could predict the values of the next request.
RESET: Final = (
    b"CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; DEALLOCATE ALL; UNLISTEN *;"
    b"DISCARD PLANS; DISCARD TEMP; DISCARD SEQUENCES; SET seed = %.17f"
)
# The server's own limits.
LIMITS: Final = ("statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout")
RANDOM: Final = random.SystemRandom()
BACKEND_PID: Final = b"; SELECT pg_catalog.pg_backend_pid()"
# PgBouncer's message for a second or more after a login that the server refused.
POOLER_PAUSES: Final = "server_login_retry"
DONE: Final = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})


class SettingsRefused(psycopg.OperationalError):
    """Behind a pooler, the server refused the settings that a session begins with."""


class NoServerConnection(psycopg.OperationalError):
    """The pooler has no connection to give: all are in use, or the server cannot be reached.

    is_pausing: the pooler refuses immediately, and continues for a while after the server accepts
    logins again.
    """

    is_pausing = False


class TenantConnection(MessageStream):
    """A connection, its role, and the known types of its database.

    timeout_ms: the organization's own limit of a request's duration; None if it has none.
    """

    def __init__(self, connection: psycopg.Connection, login: Login) -> None:
        self.opened_at = self.used_at = time.monotonic()
        super().__init__(connection.pgconn, opened_at=self.opened_at)
        self.psycopg_connection = connection
        self.login = login
        self.pid = self.pgconn.backend_pid
        self.column_types: dict[int, ColumnType] = {}
        self.timeout_ms: int | None = None
        # When its last request was cancelled (time.monotonic()); it is closed afterwards.
        self.cancelled_at: float | None = None
        # Behind a pooler: sets what the start-up packet cannot, and RESET ALL resets.
        self._settings = b""

    def begin_pooled(self) -> None:
        """Set up a session behind a pooler, as the start-up packet does without a pooler.

        Raises SettingsRefused, EngineUnavailable, and ConnectionLost, also if the pooler has no
        server connection within CONNECT_TIMEOUT_S.
        """
        self._settings = settings_statement(self.login.address, self.login.role)
        self.give_up_at = time.monotonic() + silence.CONNECT_TIMEOUT_S
        self._send_short(self._settings + BACKEND_PID)
        result = self.last_result()
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise SettingsRefused(result.error_message)
        # The server's process id. The pooler reports a random number, which is only for cancels.
        self.pid = int(result.get_value(0, 0) or 0)
        self.is_pooled = True

    @property
    def status(self) -> pq.TransactionStatus:
        """The transaction's status as the server last reported it."""
        return pq.TransactionStatus(self.pgconn.transaction_status)

    @property
    def starts_read_only(self) -> bool:
        """True if a transaction that begins now is READ ONLY.

        This is what the server reported before the text; changes are reported after it. A pooler
        reports values of other sessions, but a session behind it begins with the role's own value.
        """
        if self.is_pooled:
            return self.login.role == "reader"
        return self.pgconn.parameter_status(b"default_transaction_read_only") == b"on"

    def extend_limits(self, timeout_ms: int) -> None:
        """Raise the server's own limits of time for a later deadline, until the next reset.

        The watchdog enforces the deadline itself. Raises ConnectionLost.
        """
        if timeout_ms <= settings.SQL.timeout_ms:
            return
        names = [*LIMITS]
        if self.login.address.can("transaction_timeout"):
            names.append("transaction_timeout")
        limit_ms = timeout_ms + session_settings.GRACE_MS
        self.give_up_at = max(self.give_up_at, time.monotonic() + RESET_TIMEOUT_S)
        self.run("; ".join(f"SET {name} = {limit_ms}" for name in names).encode())

    def start_reset(self) -> bool:
        """Reset the session; False if the connection cannot be used again.

        This does not wait for the server, which works while the caller's answer is written.
        ``finish_reset`` reads the server's answer before the next request.
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
        """Read the answer to ``start_reset``; False if the connection cannot be used again."""
        self.give_up_at = time.monotonic() + RESET_TIMEOUT_S
        try:
            if self._is_resetting and not self._is_reset():
                return False
            # No answer is expected: readable data are the end of the connection, or its reason,
            # which may have arrived together with the answer to the reset.
            if self._wire.has_more():
                return False
        except (ConnectionLost, ResultOverflow, psycopg.Error):
            return False
        self.notices = []
        self._max_bytes = 0
        return self.status == pq.TransactionStatus.IDLE

    def _send_short(self, text: bytes) -> None:
        """Send a text of the gateway that has a short answer.

        The text fits into the socket's buffer, which is empty, so it needs no pipe.
        Raises ConnectionLost.
        """
        self._send(lambda: self.pgconn.send_query(text), 0, is_chunked=False)

    def _is_reset(self) -> bool:
        """Read the answer to RESET; True if all of its statements have succeeded."""
        result = self.next_result()
        # If the answer has arrived, libpq can read the rest without waiting.
        read = self.pgconn.get_result if self._has_arrived else self.next_result
        while result is not None:
            if result.status not in DONE:
                return False
            result = read()
        self._is_resetting = False
        return True

    def close(self) -> None:
        """Close the connection; safe to repeat."""
        self.psycopg_connection.close()
        self._wire.close()


def open_connection(login: Login) -> TenantConnection:
    """Log in as a tenant's role.

    Raises psycopg.Error (behind a pooler SettingsRefused or NoServerConnection), and
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
    with silence.attempt(address.cluster_id):
        opened = psycopg.connect(
            **{**dict(address.network), **LIBPQS_OWN, **options},  # type: ignore[arg-type]  # libpq's words, all text
            user=login.user,
            scram_client_key=scram.client_key,
            scram_server_key=scram.server_key,
            dbname=login.dbname,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=silence.CONNECT_TIMEOUT_S,
        )
    connection = TenantConnection(opened, login)
    if not address.takes_options:
        _begin_pooled(connection)
    return connection


def _begin_pooled(connection: TenantConnection) -> None:
    try:
        connection.begin_pooled()
    except (ConnectionLost, ResultOverflow):
        connection.close()
        raise NoServerConnection from None
    except BaseException:
        connection.close()
        raise
