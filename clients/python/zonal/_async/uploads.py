"""Request bodies from files."""

from collections.abc import AsyncIterator

from zonal.files import Source, pieces_of


async def streamed(source: Source) -> AsyncIterator[bytes]:
    """Yield a body as httpx takes it. Reading a piece of a local file takes microseconds."""
    for piece in pieces_of(source):
        yield piece
