"""Rows as CSV, written as PostgreSQL's own COPY writes them.

The format is the same whether the server or this module writes the lines: PostgreSQL's text of each
value, nothing for NULL, ``""`` for an empty text, lines that end with LF (RFC 4180 without CR).
"""

import re
from collections.abc import Sequence
from typing import Final

from sqlgateway.errors import ResultNotText
from sqlgateway.formats.encoders import Values
from sqlgateway.formats.results import Column
from sqlgateway.formats.row_writer import ColumnTypes

SPECIAL: Final = re.compile(rb'[",\r\n]')
# A line with only this text ends the input of COPY.
END_OF_DATA: Final = b"\\."


class CsvWriter:
    """A header line, then a line for each row."""

    def start(self, columns: Sequence[Column], column_types: ColumnTypes) -> bytes:
        """Return the header line; nothing for a statement without rows."""
        if not columns:
            return b""
        return b",".join(_quoted(column.name.encode()) for column in columns) + b"\n"

    def rows(self, values: Sequence[Values], count: int) -> bytes:
        """Return the lines. Raises ResultNotText."""
        if not values:
            return b"\n" * count
        is_single = len(values) == 1
        fields = [_fields(column, is_single=is_single) for column in values]
        lines = b"\n".join(map(b",".join, zip(*fields, strict=True))) + b"\n"
        try:
            lines.decode()
        except UnicodeDecodeError as exc:
            raise ResultNotText("A value is not UTF-8.") from exc
        return lines

    def end(self) -> bytes:
        """Return nothing: the last chunk marks the end."""
        return b""


def _fields(values: Values, *, is_single: bool) -> Sequence[bytes]:
    # One search over all values shows that most columns need no quotes.
    if None not in values and b"" not in values and not is_single:
        texts: Sequence[bytes] = values  # type: ignore[assignment]  # no None among them
        if SPECIAL.search(b"".join(texts)) is None:
            return texts
    return [b"" if value is None else _quoted(value, is_single=is_single) for value in values]


def _quoted(value: bytes, *, is_single: bool = False) -> bytes:
    if value == b"" or SPECIAL.search(value) or (is_single and value == END_OF_DATA):
        return b'"%b"' % value.replace(b'"', b'""')
    return value
