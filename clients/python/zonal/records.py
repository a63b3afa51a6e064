"""NDJSON: lines out of pieces, records out of lines, in memory of one line."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zonal.types import Notice, Stats


@dataclass(frozen=True)
class StreamEnd:
    """What a complete stream of rows ends with."""

    row_count: int
    command: str
    notices: list[Notice]
    stats: Stats
    request_id: str


class Records:
    """The records of a body that comes in pieces.

    Lines end with LF only: JSON may hold U+2028 and others that text readers break lines at.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._rest: list[bytes] = []

    def add(self, piece: bytes) -> Iterator[Any]:
        """Return the records that a piece completes."""
        lines = piece.split(b"\n")
        self._rest.append(lines[0])
        if len(lines) == 1:
            return
        lines[0] = b"".join(self._rest)
        self._rest = [lines.pop()]
        for line in lines:
            if line:
                yield json.loads(line)
