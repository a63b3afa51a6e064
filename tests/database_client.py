"""A connection to a database under test that reconnects after failures."""

import weakref
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.sql import Composed


class DatabaseClient:
    """Runs statements over one connection, which is cheaper than one per statement."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection: psycopg.Connection | None = None

    def execute(self, statement: str | Composed, values: Sequence[Any] = ()) -> psycopg.Cursor:
        """Run one statement; reconnect if the connection was ended."""
        query = statement.encode() if isinstance(statement, str) else statement
        if self._connection is not None:
            try:
                return self._connection.execute(query, values)
            except psycopg.OperationalError:
                if not self._connection.broken:
                    raise
        self._connection = psycopg.connect(self.url, autocommit=True)
        weakref.finalize(self, self._connection.close)
        return self._connection.execute(query, values)
