"""What every form of streamed rows needs: their columns, and their values column by column."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from sqlgateway.formats.column_types import BUILTIN, ColumnType
from sqlgateway.formats.encoders import Values
from sqlgateway.formats.results import Column

UNKNOWN: Final = ColumnType("unknown")
ColumnTypes = Mapping[int, ColumnType]


class RowWriter(Protocol):
    """Writes the rows of one result in one form.

    Every method returns bytes of the body; ``start`` comes first, even if there are no columns.
    """

    def start(self, columns: Sequence[Column], column_types: ColumnTypes) -> bytes:
        """Begin with the columns and their types."""

    def rows(self, values: Sequence[Values], count: int) -> bytes:
        """Write rows.

        values: by column, PostgreSQL's text or None.
        Raises ResultNotText for bytes that are not UTF-8.
        """

    def end(self) -> bytes:
        """Return what marks the end of the rows."""


def column_types_of(columns: Sequence[Column], known: ColumnTypes) -> dict[int, ColumnType]:
    """Return the columns' types by oid; ``known`` are those looked up in this database."""
    oids = {column.oid for column in columns}
    return {oid: BUILTIN.get(oid) or known.get(oid, UNKNOWN) for oid in oids}


def unknown_oids(columns: Sequence[Column], known: ColumnTypes) -> set[int]:
    """Return the types that have to be looked up."""
    return {column.oid for column in columns} - BUILTIN.keys() - known.keys()
