"""One process at a time moves, clones or restores a database; a crash releases it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from django.db import connection

from sqlgateway.models import Database


class Busy(Exception):
    """Another process works on the database."""


@contextmanager
def exclusive(database: Database) -> Iterator[None]:
    """Hold the lock of a database while the block runs, which may take hours.

    It belongs to a connection of its own: it outlasts transactions and ends with the process.
    Raises Busy.
    """
    key = [f"sqlgateway database {database.pk}"]
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as own:
        row = own.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", key).fetchone()
        if row is None or not row[0]:
            raise Busy
        try:
            yield
        finally:
            # The server ends a closed connection a moment later, and a caller may try again sooner.
            with suppress(psycopg.OperationalError):
                own.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", key)
