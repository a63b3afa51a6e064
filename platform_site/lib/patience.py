"""How long a request waits for a control database that says nothing.

A server that is gone ends its connections, and every wait with them. One that is frozen, or behind
a network that swallows everything, keeps them: libpq would wait for ever, with a thread of ours.
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

LIMIT_S: Final = 10.0
LOOK_EVERY_S: Final = 1.0

log = structlog.get_logger(__name__)


class Patience:
    """One thread per process, which looks at the connections of the requests under way.

    A connection that waits for an answer in every look for LIMIT_S is cut off: its statement ends
    as if the server had gone, and the request with a 503. No statement of a request takes so long;
    ten seconds of statements without a pause between them look the same, and end the same.

    _since: when a thread's connection was first seen to wait, without a look since then that found
    it not waiting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[int, BaseDatabaseWrapper] = {}
        self._since: dict[int, float] = {}
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread's connection inside the block."""
        me = threading.get_ident()
        database = connections[DEFAULT_DB_ALIAS]
        with self._lock:
            self._under_way[me] = database
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="db-patience", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._under_way.pop(me, None)
                self._since.pop(me, None)

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_EVERY_S)
            try:
                with self._lock:
                    for thread, database in self._under_way.items():
                        self._look(thread, database)
            except Exception:
                # Nobody would start another thread.
                log.exception("control_database_unwatched")

    def _look(self, thread: int, database: BaseDatabaseWrapper) -> None:
        connection = database.connection
        if connection is None or not _is_waiting(connection):
            self._since.pop(thread, None)
            return
        since = self._since.setdefault(thread, time.monotonic())
        if time.monotonic() - since >= LIMIT_S:
            log.warning("control_database_silent", waited_s=LIMIT_S)
            _cut_off(connection)


def _is_waiting(connection: psycopg.Connection[Any]) -> bool:
    return connection.pgconn.transaction_status == TransactionStatus.ACTIVE


def _cut_off(connection: psycopg.Connection[Any]) -> None:
    """End the wait of the thread that uses it; closing is that thread's own."""
    with contextlib.suppress(OSError, psycopg.Error):
        number = os.dup(connection.pgconn.socket)
        with socket.socket(fileno=number) as ours:
            # While it waits its socket is still the one that was looked up.
            if _is_waiting(connection):
                ours.shutdown(socket.SHUT_RDWR)


PATIENCE: Final = Patience()


def _after_fork() -> None:
    PATIENCE.__init__()  # type: ignore[misc]  # the thread and its lock stay with the parent


os.register_at_fork(after_in_child=_after_fork)
