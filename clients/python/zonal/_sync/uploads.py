"""Request bodies from files."""

from collections.abc import Callable, Iterator
from typing import Optional

from zonal.files import Source, pieces_of


def streamed(source: Source, on_sent: Optional[Callable[[int], None]] = None) -> Iterator[bytes]:
    """Yield a body as httpx takes it. Reading a piece of a local file takes microseconds."""
    count = 0
    for piece in pieces_of(source):
        yield piece
        count += len(piece)
        if on_sent is not None:
            on_sent(count)
