"""Rows as NDJSON: a record with the columns, one for each row, and one that marks the end."""

from collections.abc import Sequence
from typing import Any

import orjson

from sqlgateway.formats.encoders import Values
from sqlgateway.formats.results import Column, RowEncoder, RowFormat, described
from sqlgateway.formats.row_writer import ColumnTypes


class NdjsonWriter:
    """``{"columns": […]}``, then objects or arrays."""

    def __init__(self, row_format: RowFormat) -> None:
        self._format = row_format
        self._encoder: RowEncoder | None = None

    def start(self, columns: Sequence[Column], column_types: ColumnTypes) -> bytes:
        """Return the first record."""
        self._encoder = RowEncoder(columns, column_types, row_format=self._format)
        return record({"columns": described(columns, column_types)})

    def rows(self, values: Sequence[Values], count: int) -> bytes:
        """Return a record for each row. Raises ResultNotText."""
        if self._encoder is None:
            return b""
        return self._encoder.joined(values, count, b"\n") + b"\n"

    def end(self) -> bytes:
        """Return nothing: the export writes the last record."""
        return b""


def record(value: dict[str, Any]) -> bytes:
    """Return one record of the stream."""
    return orjson.dumps(value) + b"\n"
