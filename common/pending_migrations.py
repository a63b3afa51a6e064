"""Whether a control database has all migrations of this code."""

from collections.abc import Collection, Mapping
from typing import Final

from django.db import DEFAULT_DB_ALIAS, DatabaseError, ProgrammingError, connections
from django.db.migrations.executor import MigrationExecutor
from procrastinate.exceptions import ConnectorException

# PostgreSQL, appendix A: undefined_table, undefined_column, undefined_function, undefined_object,
# invalid_schema_name.
UNDEFINED: Final = frozenset({"42P01", "42703", "42883", "42704", "3F000"})
# An app's label and a migration's name.
Key = tuple[str, str]
NOT_MIGRATED: Final = "The control database is not migrated: run `manage.py migrate`."


def pending_migrations(alias: str) -> int:
    """Return how many migrations Django would apply to a control database."""
    executor = MigrationExecutor(connections[alias])
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def compare(applied: set[Key], known: Mapping[Key, Collection[Key]]) -> tuple[set[Key], bool]:
    """Return the applied migrations that the code does not know, and whether it misses none.

    known: the code's, each with those that it replaces. Django takes one for applied whose replaced
    ones are, and records it at the next `migrate`.
    """
    done = applied | {key for key, old in known.items() if old and applied.issuperset(old)}
    return applied - known.keys() - set().union(*known.values()), known.keys() <= done


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
