"""Rows of several models from one literal SQL statement.

The ORM takes several times as long to build a join as PostgreSQL takes to answer it. A join that
every sign-in needs is written as SQL, and this module converts its rows to instances.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import models


class ModelColumns:
    """The columns of one model in a statement, and their conversion to an instance.

    names: attributes to read, none for all; an attribute that was not read is deferred: it is
    read on first access, and ``save()`` never writes it.
    """

    def __init__(self, model: type[models.Model], alias: str, *names: str) -> None:
        every = model._meta.concrete_fields
        # In the model's field order, which ``from_db`` expects.
        self.fields = [field for field in every if not names or field.attname in names]
        self.model = model
        self.names = tuple(field.attname for field in self.fields)
        self.columns = ", ".join(f'{alias}."{field.column}"' for field in self.fields)
        key: Any = model._meta.pk
        self._key_at = self.names.index(key.attname)
        # JSON arrives as text and is parsed by its field.
        self._readers = {
            at: field.from_db_value
            for at, field in enumerate(self.fields)
            if hasattr(field, "from_db_value")
        }

    def read(self, values: Sequence[Any], connection: Any) -> Any:
        """Return the instance, None if an outer join found no row."""
        if values[self._key_at] is None:
            return None
        read = list(values)
        for at, reader in self._readers.items():
            read[at] = reader(read[at], None, connection)
        return self.model.from_db(connection.alias, self.names, read)


def columns(joined: Iterable[ModelColumns]) -> str:
    """Return the columns of the SELECT."""
    return ", ".join(one.columns for one in joined)


def split_row(row: Sequence[Any], joined: Iterable[ModelColumns], connection: Any) -> list[Any]:
    """Return the instances of a row, in the order of ``joined``, then the remaining values."""
    found, at = [], 0
    for one in joined:
        end = at + len(one.names)
        found.append(one.read(row[at:end], connection))
        at = end
    return [*found, *row[at:]]
