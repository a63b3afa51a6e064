"""Read the output of a child line by line."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import Final

from common.machine.terminal import printable

CHUNK_BYTES: Final = 65_536
# Longer lines are split, so that a child that writes no line breaks cannot fill the memory.
MAX_LINE_BYTES: Final = 16_384


async def lines_of(stream: asyncio.StreamReader | None) -> AsyncIterator[str]:
    """Yield the lines of a pipe until it closes, without control characters."""
    rest = b""
    while stream is not None and (chunk := await stream.read(CHUNK_BYTES)):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        for line in lines:
            yield printable(line.decode(errors="replace"))
    if rest:
        yield printable(rest.decode(errors="replace"))


@contextlib.asynccontextmanager
async def open_pipe() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
    """Open a pipe: yield its reading end, and the descriptor of its writing end for a child.

    With asyncio's own pipes, a child counts as running while a grandchild holds one of them open,
    so the end of a killed master would not be noticed. The caller closes the descriptor.
    """
    reading, writing = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
    )
    try:
        yield reader, writing
    finally:
        transport.close()
