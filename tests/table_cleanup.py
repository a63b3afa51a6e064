"""Table cleanup between tests.

A TRUNCATE makes new files for a table, its indexes and, with CASCADE, those of every table that
refers to it: some 60 ms where a test left rows in a few tables. To delete those takes a few.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.test.testcases import TransactionTestCase
from psycopg import sql

from tests.database_client import DatabaseClient

# Made by migrations, from the code: no test whose changes are committed changes them.
KEPT = frozenset({"django_content_type", "auth_permission", "billing_rate"})
# Rates that tests have added; a trigger keeps those that have begun.
ADDED_RATES = "FROM billing_rate WHERE begins_at > (SELECT min(begins_at) FROM billing_rate)"
# A table that grew beyond this starts from nothing: what is deleted from it stays in its pages.
LARGE_BYTES = 2**18

# Tables whose rows a trigger watches as they are deleted (8 in pg_trigger.tgtype).
GUARDED = """
    SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger
    WHERE NOT tgisinternal AND tgtype & 8 = 8
"""
REFERRING = """
    WITH RECURSIVE wanted AS (
        SELECT unnest(%s::regclass[]) AS name
        UNION SELECT conrelid FROM pg_constraint JOIN wanted ON confrelid = name
        WHERE contype = 'f')
    SELECT name::text FROM wanted ORDER BY name
"""


def install() -> None:
    """Replace Django's flush by this cleanup."""
    TransactionTestCase._fixture_teardown = _empty_what_is_filled  # type: ignore[attr-defined]  # Django's own seam


def empty(database: DatabaseClient, names: Sequence[str]) -> None:
    """Delete all rows of tables and of the tables that refer to them."""
    found = database.execute(REFERRING, [list(names)]).fetchall()
    database.execute(_deletion([name for (name,) in found]))


def _empty_what_is_filled(case: TransactionTestCase) -> None:
    for alias in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]  # as above
        with connections[alias].cursor() as cursor:
            cursor.execute(_question(alias))
            filled = cursor.fetchall()
            truncated = [name for name, is_truncated in filled if is_truncated]
            if truncated:
                tables = sql.SQL(", ").join(map(sql.Identifier, truncated))
                with _unguarded(cursor):
                    cursor.execute(sql.SQL("TRUNCATE {} CASCADE").format(tables))
            deleted = [name for name, is_truncated in filled if not is_truncated]
            if deleted:
                cursor.execute(_deletion(deleted))
            if alias == DEFAULT_DB_ALIAS:
                _delete_added_rates(cursor)


def _delete_added_rates(cursor: Any) -> None:
    cursor.execute(f"SELECT 1 {ADDED_RATES} LIMIT 1")
    if cursor.fetchone():
        cursor.execute("ALTER TABLE billing_rate DISABLE TRIGGER USER")
        cursor.execute(f"DELETE {ADDED_RATES}")
        cursor.execute("ALTER TABLE billing_rate ENABLE TRIGGER USER")


@contextmanager
def _unguarded(cursor: Any) -> Iterator[None]:
    """Switch off the triggers that refuse TRUNCATE (32 in pg_trigger.tgtype)."""
    cursor.execute(
        "SELECT tgrelid::regclass::text, tgname FROM pg_trigger"
        " WHERE NOT tgisinternal AND tgtype & 32 = 32"
    )
    found = cursor.fetchall()
    for word in ("DISABLE", "ENABLE"):
        for table, name in found:
            names = map(sql.Identifier, (table, name))
            cursor.execute(
                sql.SQL("ALTER TABLE {} {} TRIGGER {}").format(
                    next(names), sql.SQL(word), next(names)
                )
            )
        if word == "DISABLE":
            yield


def _deletion(names: Sequence[str]) -> sql.Composed:
    """Return one statement for all: what refers to what is only looked at when they are empty."""
    one = sql.SQL("{} AS (DELETE FROM {})")
    parts = [one.format(sql.Identifier(f"_{name}"), sql.Identifier(name)) for name in names]
    return sql.SQL("WITH {} SELECT").format(sql.SQL(", ").join(parts))


@cache
def _question(alias: str) -> sql.Composed:
    """Return the query for tables with rows, and whether they need TRUNCATE."""
    with connections[alias].cursor() as cursor:
        cursor.execute(GUARDED)
        guarded = {name for (name,) in cursor.fetchall()}
    found = connections[alias].introspection.django_table_names(only_existing=True)
    one = "SELECT {0}, {1} OR pg_relation_size({0}) > {2} WHERE EXISTS (SELECT FROM {3})"
    return sql.SQL(" UNION ALL ").join(
        sql.SQL(one).format(name, name in guarded, LARGE_BYTES, sql.Identifier(name))
        for name in sorted(set(found) - KEPT)
    )
