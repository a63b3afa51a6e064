"""Is a child ready? Questions that a supervisor asks until the answer is yes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

Probe = Callable[[], Awaitable[bool]]

TIMEOUT_S: Final = 5.0
OK_LINE: Final = b" 200 "


def call_probe(question: Callable[[], bool]) -> Probe:
    """Make a probe that calls a blocking function, off the event loop."""

    async def ask() -> bool:
        return await asyncio.to_thread(question)

    return ask


def http_probe(port: int, path: str) -> Probe:
    """Make a probe that wants 200 from a GET on the loopback address."""

    async def ask() -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return OK_LINE in await _status_line(port, path)
        except (OSError, TimeoutError):
            return False

    return ask


async def _status_line(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        await writer.drain()
        return await reader.readline()
    finally:
        writer.close()
        # The answer's first line is all that was wanted; how the rest ends does not matter.
        with contextlib.suppress(OSError):
            await writer.wait_closed()
