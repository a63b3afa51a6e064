"""Emptying the database after a test that commits.

Django's ``flush`` truncates every table there is and then makes all content types and permissions
anew; a test leaves rows in a few.
"""

from functools import cache

from django.db import connections
from django.test.testcases import TransactionTestCase
from psycopg import sql

# Made by migrations, from the code: no test changes them.
KEPT = frozenset({"django_content_type", "auth_permission"})


def install() -> None:
    """Have it done this way wherever Django would flush."""
    TransactionTestCase._fixture_teardown = _empty  # type: ignore[attr-defined]  # Django's own seam


def _empty(case: TransactionTestCase) -> None:
    for alias in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]  # as above
        with connections[alias].cursor() as cursor:
            cursor.execute(_question(alias))
            names = [name for (name,) in cursor.fetchall()]
            if names:
                tables = sql.SQL(", ").join(map(sql.Identifier, names))
                cursor.execute(sql.SQL("TRUNCATE {} CASCADE").format(tables))


@cache
def _question(alias: str) -> sql.Composed:
    """Give the query for the tables that hold something."""
    found = connections[alias].introspection.django_table_names(only_existing=True)
    one = "SELECT {} WHERE EXISTS (SELECT FROM {})"
    return sql.SQL(" UNION ALL ").join(
        sql.SQL(one).format(sql.Literal(name), sql.Identifier(name))
        for name in sorted(set(found) - KEPT)
    )
