"""HTTP/1.1 for strangers: bounded in connections, time and memory.

Granian's RSGI has no back-pressure on streamed answers (what a slow client does not take stays in
memory), and gives neither the raw path nor header values beyond ASCII, which signatures cover. So
the object API has this server, of the same shape: ``async def app(scope, protocol)``.
"""

import asyncio
import contextlib
import resource
import socket
from pathlib import Path
from typing import Final

import structlog

from edgecache.http import unix_socket
from edgecache.http.connection import Connection
from edgecache.http.exchange import App

log = structlog.get_logger(__name__)

# Each may hold half a MiB of an answer that its client is slow to take.
CONNECTION_LIMIT: Final = 4096
FILES_WANTED: Final = 65_536
# Of the files a process may have open: for the database, the disk and everything else.
FILES_RESERVED: Final = 256
BACKLOG: Final = 2048
SWEEP_S: Final = 1.0
STOP_PATIENCE_S: Final = 10.0


class Server:
    """A listener. ``serve`` runs until ``stop``."""

    def __init__(
        self,
        app: App,
        *,
        address: str,
        port: int,
        path: Path | None = None,
        connection_limit: int = CONNECTION_LIMIT,
    ) -> None:
        """Bind nothing yet.

        path: of a Unix socket beside the port. connection_limit: the most clients at once; fewer
        where the system allows less.
        """
        self.app = app
        self.port = port
        self._address = address
        self._path = path
        self._limit = connection_limit
        self._connections: set[Connection] = set()
        self._stopping = asyncio.Event()
        self._emptied = asyncio.Event()

    async def serve(self) -> None:
        """Listen, and answer until ``stop``; then let what runs finish, for a while.

        Raises OSError, StartError when it cannot listen.
        """
        loop = asyncio.get_running_loop()
        # A client, and a worker or a file for it.
        self._limit = min(self._limit, (_files_allowed() - FILES_RESERVED) // 2)
        listeners = await self._listen(loop)
        sweep = asyncio.create_task(self._sweep())
        try:
            await self._stopping.wait()
        finally:
            for listener in listeners:
                listener.close()
            await self._finish()
            sweep.cancel()

    def stop(self) -> None:
        """Accept nothing more and end ``serve``."""
        self._stopping.set()

    def opened(self, connection: Connection) -> bool:
        """Take a connection in, at the cost of an idle one when there are too many.

        False: all of them are at work, and this one has to go.
        """
        self._connections.add(connection)
        if len(self._connections) <= self._limit:
            return True
        idle = next((each for each in self._connections if each.is_idle), None)
        if idle is None:
            log.warning("connections_exhausted", limit=self._limit)
            return False
        idle.close()
        return True

    def closed(self, connection: Connection) -> None:
        """Let a connection go."""
        self._connections.discard(connection)
        if not self._connections:
            self._emptied.set()

    async def _listen(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Server]:
        listeners = []
        # First, so that whoever finds the port open finds this open, too.
        if self._path is not None:
            beside = unix_socket.bind(self._path)
            listeners.append(
                await loop.create_unix_server(
                    lambda: Connection(self, loop), sock=beside, backlog=BACKLOG
                )
            )
        listeners.append(
            await loop.create_server(
                lambda: Connection(self, loop),
                self._address,
                self.port,
                backlog=BACKLOG,
                family=socket.AF_INET6 if ":" in self._address else socket.AF_INET,
            )
        )
        return listeners

    async def _sweep(self) -> None:
        """Cut who is over the time."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            now = loop.time()
            for connection in [each for each in self._connections if each.deadline < now]:
                connection.expire()

    async def _finish(self) -> None:
        for connection in list(self._connections):
            connection.close()
        if self._connections:
            self._emptied.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_PATIENCE_S):
                    await self._emptied.wait()
        for connection in list(self._connections):
            connection.cut()


def _files_allowed() -> int:
    """Give the files that this process may have open, after asking for as many as it may ask."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return FILES_WANTED if soft == resource.RLIM_INFINITY else soft
