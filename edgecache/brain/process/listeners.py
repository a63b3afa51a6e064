"""The brain's three ports, served in one event loop: open together, closed together."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import structlog

from edgecache.brain.conf.brain import Listener
from edgecache.brain.core.share_key import PLATFORM
from edgecache.brain.process.sockets import Sockets
from edgecache.http.addresses import network_of
from edgecache.http.exchange import App
from edgecache.http.scope import HttpScope
from edgecache.http.server.http_server import IDLE_S, HttpServer, by_network, tls_context
from edgecache.http.server.limits import ServerLimits
from edgecache.runtime.fair_shares import ShareKey
from edgecache.runtime.listening import refuse_connections
from edgecache.runtime.resource_limits import connections_allowed
from edgecache.runtime.turns import LoopTurns

log = structlog.get_logger(__name__)

# The part of the time to stop that remains to cut off clients.
CUT_S: Final = 2.0


class Listeners:
    """The servers of all ports."""

    def __init__(self, servers: Mapping[str, HttpServer]) -> None:
        self._servers = servers
        self._are_shared = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, sockets: Sockets) -> None:
        """Accept connections on every port."""
        self._are_shared = sockets.are_given
        for name, server in self._servers.items():
            await server.start(listening=sockets.by_name[name], is_shared=sockets.are_given)
            self._tasks.append(asyncio.create_task(server.serve()))

    def ports(self) -> dict[str, int]:
        """Return the port of each listener, by name."""
        return {name: server.sockets[0].getsockname()[1] for name, server in self._servers.items()}

    async def wait_for_failure(self) -> None:
        """Return when a server ended without ``stop``."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def stop(self, *, timeout_s: float) -> None:
        """Accept nothing more and let running requests finish, for this long at most."""
        if not self._tasks:
            return
        for server in self._servers.values():
            if not self._are_shared:
                refuse_connections(server.sockets[0])
            server.stop(timeout_s=timeout_s - IDLE_S - CUT_S)
        _, late = await asyncio.wait(self._tasks, timeout=timeout_s)
        if late:
            log.warning("brain_requests_cut", ports=len(late))
        for task in late:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def as_platform(_scope: HttpScope) -> ShareKey:
    """Return the share key of the platform for any request."""
    return PLATFORM


def as_node(scope: HttpScope) -> ShareKey:
    """Return the nodes, and of these the one at this address."""
    return "nodes", network_of(scope.client_address)


def port_server(
    app: App,
    listener: Listener,
    turns: LoopTurns,
    *,
    share_key: Callable[[HttpScope], ShareKey] = by_network,
    tls: tuple[Path | None, Path | None] = (None, None),
) -> HttpServer:
    """Return the server of an application.

    turns: shared by all ports.
    share_key: returns a request's queue key.
    tls: certificate and key, or neither.
    """
    certificate, key = tls
    context = tls_context(certificate, key) if certificate and key else None
    limits = ServerLimits(connections=connections_allowed())
    return HttpServer(
        app,
        address=listener.address,
        port=listener.port,
        tls=context,
        limits=limits,
        turns=turns,
        share_key=share_key,
    )
