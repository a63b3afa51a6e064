"""Bodies that are files: read piece by piece, and again if a request is repeated."""

from collections.abc import Iterator
from pathlib import Path
from typing import Union

# A body in memory, or a regular file.
Source = Union[bytes, Path]
PIECE_BYTES = 2**16


def length_of(source: Source) -> int:
    """Return its bytes; raises ValueError for a pipe, which could not be sent a second time."""
    if isinstance(source, bytes):
        return len(source)
    if not source.is_file():
        raise ValueError(f"{source} is no regular file.")
    return source.stat().st_size


def pieces_of(source: Source) -> Iterator[bytes]:
    """Yield it piece by piece."""
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
