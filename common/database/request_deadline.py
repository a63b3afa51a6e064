"""A limit on how long requests wait for a control database that does not respond.

When a server stops, its connections close, and all waits end. If a server is frozen, or the network
drops all packets, connections stay open: libpq would block the thread forever.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import structlog
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from common.every import Every

# With a frozen database requests answer 503 within ten seconds: this wait, one check, and the two
# seconds for establishing the next connection.
LIMIT_S: Final = 7.0
CHECK_EVERY_S: Final = 0.5

log = structlog.get_logger(__name__)


class RequestDeadline:
    """One thread per process that checks the database connections of requests in progress.

    A connection that waits for a response at every check during LIMIT_S is shut down: its statement
    fails as if the server had stopped, and the request answers 503. No statement of a request takes
    that long; uninterrupted statements for LIMIT_S look the same, and are ended as well.

    _waiting_since: when a check first saw a thread's connection waiting; reset by a check that sees
    it idle.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: dict[int, BaseDatabaseWrapper] = {}
        self._waiting_since: dict[int, float] = {}
        self.checks = Every(CHECK_EVERY_S, self._check_all, name="request-deadline")

    @contextlib.contextmanager
    def enforced(self) -> Iterator[None]:
        """Limit how long this thread's connection waits inside the block."""
        me = threading.get_ident()
        database = connections[DEFAULT_DB_ALIAS]
        with self._lock:
            self._connections[me] = database
        self.checks.start()
        try:
            yield
        finally:
            with self._lock:
                self._connections.pop(me, None)
                self._waiting_since.pop(me, None)

    def _check_all(self) -> None:
        with self._lock:
            for thread, database in self._connections.items():
                self._check(thread, database)

    def _check(self, thread: int, database: BaseDatabaseWrapper) -> None:
        connection = database.connection
        if connection is None or not _is_waiting(connection):
            self._waiting_since.pop(thread, None)
            return
        since = self._waiting_since.setdefault(thread, time.monotonic())
        if time.monotonic() - since >= LIMIT_S:
            log.warning("control_database_silent", waited_s=LIMIT_S)
            _shut_down(connection)
            # The request may continue on another connection, which has the whole time.
            self._waiting_since.pop(thread)


def _is_waiting(connection: psycopg.Connection[Any]) -> bool:
    return connection.pgconn.transaction_status == TransactionStatus.ACTIVE


def _shut_down(connection: psycopg.Connection[Any]) -> None:
    """End the wait of the connection's thread, which then closes the connection itself."""
    with contextlib.suppress(OSError, psycopg.Error):
        number = os.dup(connection.pgconn.socket)
        with socket.socket(fileno=number) as duplicate:
            # While it waits, the socket cannot have changed.
            if _is_waiting(connection):
                duplicate.shutdown(socket.SHUT_RDWR)


REQUEST_DEADLINE: Final = RequestDeadline()
