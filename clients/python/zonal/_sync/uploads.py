"""Request bodies from files."""

from collections.abc import Iterator

from zonal.files import Source, pieces_of


def streamed(source: Source) -> Iterator[bytes]:
    """Yield a body as httpx takes it. Reading a piece of a local file takes microseconds."""
    yield from pieces_of(source)
