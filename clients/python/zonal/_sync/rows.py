"""The rows of a stream."""

from collections.abc import Iterator
from typing import Any, Optional

import httpx

from zonal.decoding import decode
from zonal.errors import StreamCutError, problem
from zonal.records import Records, StreamEnd
from zonal.types import Column


class Rows:
    """Iterate over it once for dicts, or over ``arrays()`` for lists.

    columns: known from the beginning. end: known after the last row.
    """

    def __init__(self, columns: list[Column], records: Iterator[Any]) -> None:
        """Take the columns and what follows them."""
        self.columns = columns
        self.end: Optional[StreamEnd] = None
        self._records = records

    @classmethod
    def opened(cls, response: httpx.Response) -> "Rows":
        """Read the first record of a response."""
        records = _records(response)
        for first in records:
            _raise_error(first)
            return cls([decode(Column, each) for each in first["columns"]], records)
        raise StreamCutError("The stream was cut before its first record.")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Return the rows as dicts; a second column of one name is ``name_2``."""
        names = [column.key or column.name for column in self.columns]
        for row in self.arrays():
            yield dict(zip(names, row))

    def arrays(self) -> Iterator[list[Any]]:
        """Return the rows as lists, in the order of the columns.

        Raises ProblemError if the statement failed after its first rows, StreamCutError if the
        connection did.
        """
        for record in self._records:
            if isinstance(record, list):
                yield record
                continue
            _raise_error(record)
            if "end" in record:
                self.end = decode(StreamEnd, record["end"])
                return
        raise StreamCutError("The stream was cut: rows are missing.")


def _records(response: httpx.Response) -> Iterator[Any]:
    records = Records()
    for piece in pieces(response):
        yield from records.add(piece)


def pieces(response: httpx.Response) -> Iterator[bytes]:
    """Return a body as it comes."""
    try:
        yield from response.iter_bytes()
    except httpx.TransportError as exc:
        raise StreamCutError(f"The stream was cut: {exc or type(exc).__name__}") from exc


def raw_pieces(response: httpx.Response) -> Iterator[bytes]:
    """Return a body as it comes, packed if it is."""
    try:
        yield from response.iter_raw()
    except httpx.TransportError as exc:
        raise StreamCutError(f"The object was cut: {exc or type(exc).__name__}") from exc


def _raise_error(record: Any) -> None:
    if isinstance(record, dict) and "error" in record:
        error = record["error"]
        raise problem(int(error.get("status", 500)), error)
