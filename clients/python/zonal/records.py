"""NDJSON: lines out of pieces, in memory of one line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from zonal.types import Notice, Stats


@dataclass(frozen=True)
class StreamEnd:
    """What a complete stream of rows ends with."""

    row_count: int
    command: str
    notices: list[Notice]
    stats: Stats
    request_id: str


# No pattern for a whole string: matching one of megabytes takes a hundred times its memory.
MARK = re.compile(r'\\.|["\[\]{},]')


class Records:
    """The lines of a body that comes in pieces, each a record.

    Lines end with LF only: JSON may hold U+2028 and others that text readers break lines at.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._rest: list[bytes] = []

    def add(self, piece: bytes) -> Iterator[bytes]:
        """Return the records that a piece completes."""
        lines = piece.split(b"\n")
        self._rest.append(lines[0])
        if len(lines) == 1:
            return
        lines[0] = b"".join(self._rest)
        self._rest = [lines.pop()]
        for line in lines:
            if line:
                yield line


def elements(record: bytes) -> list[str]:
    """Return the JSON of each element of an array, as it is."""
    text = record.decode()
    found: list[str] = []
    depth = begin = 0
    is_string = False
    for match in MARK.finditer(text):
        mark = match.group()
        is_string ^= mark == '"'
        if is_string:
            continue
        if mark in "[{":
            depth += 1
            begin = match.end() if depth == 1 else begin
        elif mark in "]}":
            depth -= 1
        if depth == 0 or (depth == 1 and mark == ","):
            found.append(text[begin : match.start()])
            begin = match.end()
    return [] if found == [""] else found
