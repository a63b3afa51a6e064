"""Whether a control database has all migrations of this code."""

from typing import Final

from django.db import DEFAULT_DB_ALIAS, DatabaseError, ProgrammingError, connections
from django.db.migrations.executor import MigrationExecutor
from procrastinate.exceptions import ConnectorException

# PostgreSQL, appendix A: undefined_table, undefined_column, undefined_function, undefined_object,
# invalid_schema_name.
UNDEFINED: Final = frozenset({"42P01", "42703", "42883", "42704", "3F000"})
NOT_MIGRATED: Final = "The control database is not migrated: run `manage.py migrate`."


def pending_migrations(alias: str) -> int:
    """Return how many migrations Django would apply to a control database."""
    executor = MigrationExecutor(connections[alias])
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def is_not_migrated(exc: BaseException) -> bool:
    """True if an error of a statement is due to migrations that are not applied."""
    if not isinstance(exc, ProgrammingError | ConnectorException):
        return False
    if getattr(exc.__cause__, "sqlstate", None) not in UNDEFINED:
        return False
    try:
        return pending_migrations(DEFAULT_DB_ALIAS) > 0
    except DatabaseError:
        # In a transaction that the error has ended.
        return False
