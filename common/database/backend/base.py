"""Django's PostgreSQL, without connections that ended or that refused a write.

Django notices such a connection by a failed request on it: one for each thread after a restart, and
each one after a failover that left a connection at the former leader.
"""

from typing import Any

import psycopg
from django.db import OperationalError
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property

from common.server_states import READ_ONLY, CommitLost, is_ended


class DatabaseWrapper(base.DatabaseWrapper):
    """A thread's connection. has_refused: its server takes no writes."""

    pool: Any
    has_refused = False

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return _Errors(self)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a connection; those of the pool that ended are replaced."""
        self.has_refused = False
        connection = super().get_new_connection(conn_params)
        while self.pool and is_ended(connection):
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def is_usable(self) -> bool:
        return not self.has_refused and super().is_usable()

    def close_if_unusable_or_obsolete(self) -> None:
        """Close a connection that cannot be used, at the begin and end of requests and jobs."""
        if self.connection is not None and not self.in_atomic_block and is_ended(self.connection):
            self.close()
        super().close_if_unusable_or_obsolete()

    def _close(self) -> None:
        if self.pool and self.has_refused and self.connection is not None:
            # The pool replaces it.
            self.connection.close()
        super()._close()  # type: ignore[misc]  # not in the stubs

    def _commit(self) -> None:
        try:
            super()._commit()  # type: ignore[misc]  # not in the stubs
        except OperationalError as exc:
            state = getattr(exc.__cause__, "sqlstate", None)
            # Of other states the server says that it has rolled back.
            if state is not None and not state.startswith(("08", "57P")):
                raise
            raise CommitLost(*exc.args) from exc.__cause__


class _Errors(DatabaseErrorWrapper):
    wrapper: Any

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if isinstance(exc_value, psycopg.Error) and exc_value.sqlstate == READ_ONLY:
            self.wrapper.has_refused = True
        super().__exit__(exc_type, exc_value, traceback)
