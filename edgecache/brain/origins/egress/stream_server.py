"""A server over asyncio's streams that leaves no connection open: not one that comes as it stops.

``asyncio.start_server`` runs its own task for each connection, and one that is cancelled before it
began never reaches the ``finally`` that would have closed it.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class StreamServer:
    """Serves each connection with a handler, and closes it after. limit: of a line, in bytes."""

    def __init__(
        self, handler: Handler, *, limit: int = 2**16, tls: ssl.SSLContext | None = None
    ) -> None:
        self._handler = handler
        self._limit = limit
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
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
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_stopped:
            return writer.close()

        def finish(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            writer.close()

        task = asyncio.ensure_future(self._handler(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(finish)
        return None
