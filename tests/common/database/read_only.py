"""A control database that takes no writes, as a former leader or a standby."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def read_only_database() -> Iterator[None]:
    """Let the test's database take no writes on new connections."""
    _set("ALTER DATABASE {} SET default_transaction_read_only = on")
    try:
        yield
    finally:
        connection.close()
        _set("ALTER DATABASE {} RESET default_transaction_read_only")


def _set(statement: str) -> None:
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = off")
        cursor.execute(statement.format(name))
    connection.close()
