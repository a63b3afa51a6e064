"""Locks for work that one process at a time may do; a crash releases them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from django.db import connection


class AlreadyLocked(Exception):
    """Another process holds the lock."""


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Hold the lock with this name during the block, which may take hours.

    It belongs to a separate connection, so it is independent of transactions and ends with the
    process.
    Raises AlreadyLocked, and Django's OperationalError while the control database is unreachable.
    """
    with connection.wrap_database_errors:
        own = psycopg.connect(**connection.get_connection_params(), autocommit=True)
    with own:
        key = [name]
        row = own.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", key).fetchone()
        if row is None or not row[0]:
            raise AlreadyLocked
        try:
            yield
        finally:
            # Released explicitly: the server closes the connection a moment later, and the caller
            # may try again sooner.
            with suppress(psycopg.OperationalError):
                own.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", key)
