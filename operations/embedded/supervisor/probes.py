"""Readiness probes of supervised children."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

Probe = Callable[[], Awaitable[bool]]

TIMEOUT_S: Final = 5.0
OK_LINE: Final = b" 200 "


def call_probe(question: Callable[[], bool]) -> Probe:
    """Return a probe that calls a blocking function in a thread."""

    async def ask() -> bool:
        return await asyncio.to_thread(question)

    return ask


def http_probe(port: int, path: str) -> Probe:
    """Return a probe that is ready when a GET on the loopback address answers 200."""

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
        # Only the status line matters.
        with contextlib.suppress(OSError):
            await writer.wait_closed()
