"""The interface of the writers of streamed rows, and the types of columns that they need."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from sqlgateway.formats.column_types import BUILTIN, ColumnType
from sqlgateway.formats.encoders import Values
from sqlgateway.formats.results import Column

UNKNOWN: Final = ColumnType("unknown")
ColumnTypes = Mapping[int, ColumnType]


class RowWriter(Protocol):
    """Writes the rows of one result in one format.

    Every method returns bytes of the body. ``start`` is called first, even without columns.
    """

    def start(self, columns: Sequence[Column], column_types: ColumnTypes) -> bytes:
        """Return the beginning, with the columns and their types."""

    def rows(self, values: Sequence[Values], count: int) -> bytes:
        """Return rows.

        values: by column, PostgreSQL's text or None.
        Raises ResultNotText for bytes that are not UTF-8.
        """

    def end(self) -> bytes:
        """Return the end of the body."""


def column_types_of(columns: Sequence[Column], known: ColumnTypes) -> dict[int, ColumnType]:
    """Return the columns' types by oid. known: types that were looked up in this database."""
    oids = {column.oid for column in columns}
    return {oid: BUILTIN.get(oid) or known.get(oid, UNKNOWN) for oid in oids}


def unknown_oids(columns: Sequence[Column], known: ColumnTypes) -> set[int]:
    """Return the oids of types that must be looked up."""
    return {column.oid for column in columns} - BUILTIN.keys() - known.keys()
