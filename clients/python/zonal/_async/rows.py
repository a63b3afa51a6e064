"""The rows of a stream."""

from collections.abc import AsyncIterator
from typing import Any, Optional

import httpx

from zonal.decoding import decode
from zonal.errors import StreamCutError, problem
from zonal.records import Records, StreamEnd
from zonal.types import Column


class AsyncRows:
    """Iterate over it once for dicts, or over ``arrays()`` for lists.

    columns: known from the beginning. end: known after the last row.
    """

    def __init__(self, columns: list[Column], records: AsyncIterator[Any]) -> None:
        """Take the columns and what follows them."""
        self.columns = columns
        self.end: Optional[StreamEnd] = None
        self._records = records

    @classmethod
    async def opened(cls, response: httpx.Response) -> "AsyncRows":
        """Read the first record of a response."""
        records = _records(response)
        async for first in records:
            _raise_error(first)
            return cls([decode(Column, each) for each in first["columns"]], records)
        raise StreamCutError("The stream was cut before its first record.")

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        """Return the rows as dicts; a second column of one name is ``name_2``."""
        names = [column.key or column.name for column in self.columns]
        async for row in self.arrays():
            yield dict(zip(names, row))

    async def arrays(self) -> AsyncIterator[list[Any]]:
        """Return the rows as lists, in the order of the columns.

        Raises ProblemError if the statement failed after its first rows, StreamCutError if the
        connection did.
        """
        async for record in self._records:
            if isinstance(record, list):
                yield record
                continue
            _raise_error(record)
            if "end" in record:
                self.end = decode(StreamEnd, record["end"])
                return
        raise StreamCutError("The stream was cut: rows are missing.")


async def _records(response: httpx.Response) -> AsyncIterator[Any]:
    records = Records()
    async for piece in pieces(response):
        for record in records.add(piece):
            yield record


async def pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """Return a body as it comes."""
    try:
        async for piece in response.aiter_bytes():
            yield piece
    except httpx.TransportError as exc:
        raise StreamCutError(f"The stream was cut: {exc or type(exc).__name__}") from exc


async def raw_pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """Return a body as it comes, packed if it is."""
    try:
        async for piece in response.aiter_raw():
            yield piece
    except httpx.TransportError as exc:
        raise StreamCutError(f"The object was cut: {exc or type(exc).__name__}") from exc


def _raise_error(record: Any) -> None:
    if isinstance(record, dict) and "error" in record:
        error = record["error"]
        raise problem(int(error.get("status", 500)), error)
