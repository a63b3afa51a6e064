"""The rows of a stream."""

from collections.abc import AsyncIterator
from typing import Any, Optional

import httpx

from zonal.bodies import UNKNOWN, parsed
from zonal.decoding import decode
from zonal.errors import StreamCutError, UnexpectedAnswerError, problem
from zonal.numbers import restorer
from zonal.records import Records, StreamEnd, elements
from zonal.types import Column


class AsyncRows:
    """Iterate over it once: for dicts, or over ``arrays()`` for lists, or over ``texts()``.

    columns: known from the beginning. end: known after the last row.
    """

    def __init__(
        self, columns: list[Column], lines: AsyncIterator[bytes], *, has_decimals: bool = False
    ) -> None:
        """Take the columns and what follows them."""
        self.columns = columns
        self.end: Optional[StreamEnd] = None
        self._lines = lines
        self._has_decimals = has_decimals

    @classmethod
    async def opened(cls, response: httpx.Response, *, has_decimals: bool = False) -> "AsyncRows":
        """Read the first record of a response."""
        lines = _lines(response)
        async for line in lines:
            first = _record(line)
            _raise_error(first)
            columns = [decode(Column, each) for each in first["columns"]]
            return cls(columns, lines, has_decimals=has_decimals)
        raise StreamCutError("The stream was cut before its first record.")

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        """Return the rows as dicts; a second column of one name is ``name_2``."""
        names = [column.key or column.name for column in self.columns]
        async for row in self.arrays():
            yield dict(zip(names, row))

    async def arrays(self) -> AsyncIterator[list[Any]]:
        """Return the rows as lists, in the order of the columns.

        Raises ProblemError if the statement failed after its first rows, StreamCutError if the
        connection did, UnreadableAnswerError for a row that Python's values cannot hold.
        """
        restore = restorer(self.columns)
        async for line in self._rows():
            row = _record(line, has_decimals=self._has_decimals)
            restore(row)
            yield row

    async def texts(self) -> AsyncIterator[list[str]]:
        """Return the rows as lists of JSON, each value as it was sent. Raises as ``arrays``."""
        async for line in self._rows():
            yield elements(line)

    async def _rows(self) -> AsyncIterator[bytes]:
        async for line in self._lines:
            if line.startswith(b"["):
                yield line
                continue
            record = _record(line)
            _raise_error(record)
            if "end" in record:
                self.end = decode(StreamEnd, record["end"])
                return
        raise StreamCutError("The stream was cut: rows are missing.")


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    records = Records()
    async for piece in pieces(response):
        for line in records.add(piece):
            yield line


def _record(line: bytes, *, has_decimals: bool = False) -> Any:
    try:
        return parsed(line, outcome=UNKNOWN, has_decimals=has_decimals)
    except ValueError as exc:
        raise UnexpectedAnswerError("A record of the stream is no JSON.") from exc


async def pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """Return a body as it comes."""
    try:
        async for piece in response.aiter_bytes():
            yield piece
    except httpx.RequestError as exc:
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
