"""The brain's three ports, served in one event loop.

Two are Granian's; the object API has a server of its own (``http.server``, which says why).
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import structlog
from granian.constants import HTTPModes
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from edgecache.brain.conf import Listener
from platform_site.embedded.ports import check_port

log = structlog.get_logger(__name__)

HEADER_TIMEOUT_MS: Final = 15_000
HEADERS_LIMIT_BYTES: Final = 65_536
BACKLOG: Final = 2048
# Requests at work at once on one port; further ones wait to be accepted.
RUNNING_LIMIT: Final = 512
READY_TIMEOUT_S: Final = 5.0
READY_POLL_S: Final = 0.01
# What Granian has to say goes the way of all other lines.
LOGGING: Final[dict[str, Any]] = {"formatters": {}, "handlers": {}, "loggers": {}}


class ServerLike(Protocol):
    """Something that serves a port until it is told to stop, and then finishes what runs."""

    async def serve(self) -> None:
        """Listen, and answer until ``stop``."""

    def stop(self) -> None:
        """Accept nothing more."""


@dataclass(frozen=True, slots=True)
class Served:
    """A server and where it listens."""

    listener: Listener
    server: ServerLike


class Listeners:
    """All of them: up together, down together."""

    def __init__(self, served: Mapping[str, Served]) -> None:
        """served: by name, for the log."""
        self._named = served
        self._served = tuple(served.values())
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Listen on every port.

        Raises PortTakenError, with the setting that chooses another one.
        """
        for row in self._served:
            # Granian shares a port with whoever else listens on it that way; a second brain on
            # the same port must be told instead.
            check_port(row.listener.port, row.listener.port_setting, address=row.listener.address)
        self._tasks = [asyncio.create_task(row.server.serve()) for row in self._served]
        async with asyncio.timeout(READY_TIMEOUT_S):
            for row in self._served:
                await self._wait_until_open(row.listener)

    def ports(self) -> dict[str, int]:
        """Return the port of each listener, by name."""
        return {name: row.listener.port for name, row in self._named.items()}

    async def wait_for_failure(self) -> None:
        """Return when a server ended that was not told to."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def stop(self, *, timeout_s: float) -> None:
        """Accept nothing more, let what runs finish; after the patience it is cut."""
        if not self._tasks:
            return
        for row in self._served:
            row.server.stop()
        _, late = await asyncio.wait(self._tasks, timeout=timeout_s)
        if late:
            log.warning("brain_requests_cut", ports=len(late))
        for task in late:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait_until_open(self, listener: Listener) -> None:
        while True:
            for task in self._tasks:
                if task.done():
                    await task
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(listener.address, listener.port)
                writer.close()
                return
            await asyncio.sleep(READY_POLL_S)


def granian(
    app: Any, listener: Listener, *, tls: tuple[Path | None, Path | None] = (None, None)
) -> Served:
    """Serve an RSGI application. tls: certificate and key."""
    certificate, key = tls
    server = Server(
        app,
        address=listener.address,
        port=listener.port,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=RUNNING_LIMIT,
        http1_settings=HTTP1Settings(
            header_read_timeout=HEADER_TIMEOUT_MS, max_buffer_size=HEADERS_LIMIT_BYTES
        ),
        log_dictconfig=LOGGING,
        log_level=LogLevels.error,
        ssl_cert=certificate,
        ssl_key=key,
    )
    return Served(listener, server)
