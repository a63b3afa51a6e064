"""A server over asyncio's streams that leaves no connection open: not one that comes as it stops.

``asyncio.start_server`` runs its own task for each connection, and one that is cancelled before it
began never reaches the ``finally`` that would have closed it.
"""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

from edgecache.brain.core.background import BackgroundTasks

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class StreamServer:
    """Serves each connection with a handler, and closes it after. limit: of a line, in bytes."""

    def __init__(
        self, handler: Handler, *, limit: int = 2**16, tls: ssl.SSLContext | None = None
    ) -> None:
        self._handler = handler
        self._limit = limit
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks = BackgroundTasks()
        self._is_stopped = False

    @property
    def port(self) -> int:
        """Return the port. Raises RuntimeError before ``start``."""
        if self._server is None:
            raise RuntimeError("the server is not open")
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, host: str) -> None:
        """Listen on a free port. Raises OSError."""
        self._server = await asyncio.start_server(
            self._accept, host, 0, limit=self._limit, ssl=self._tls
        )

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        self._is_stopped = True
        if self._server is not None:
            self._server.close()
        await self._tasks.stop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_stopped:
            writer.close()
        else:
            task = self._tasks.add(self._handler(reader, writer))
            task.add_done_callback(lambda _: writer.close())
