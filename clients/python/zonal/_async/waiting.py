"""Pauses and locks of asyncio; zonal/_sync has the same of threads."""

import asyncio
from types import TracebackType
from typing import Optional

sleep = asyncio.sleep


class Lock:
    """asyncio's lock, of the loop that waits for it; before Python 3.10 made when first needed."""

    def __init__(self) -> None:
        """Begin without a loop."""
        self._lock: Optional[asyncio.Lock] = None

    async def __aenter__(self) -> None:
        """Wait for the lock."""
        self._lock = self._lock or asyncio.Lock()
        await self._lock.acquire()

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        exc: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Let the next one have it."""
        if self._lock is not None:
            self._lock.release()
