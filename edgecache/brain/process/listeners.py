"""The brain's three ports, served in one event loop: open together, closed together."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from edgecache.brain.conf import Listener
from edgecache.brain.fair_share import PLATFORM
from edgecache.http.addresses import network_of
from edgecache.http.exchange import App
from edgecache.http.limits import Limits
from edgecache.http.machine import connections_allowed
from edgecache.http.scope import Scope
from edgecache.http.server import Server, by_network, tls_context
from edgecache.http.shares import Path as Payer
from edgecache.http.turns import LoopTurns
from platform_site.embedded.errors import PortTakenError, StartError
from platform_site.embedded.ports import check_port

log = structlog.get_logger(__name__)

BESIDE: Final = "-file"
# Of the time to stop: for clients that are cut off.
CUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class PortServer:
    """A server and where it listens. unix_socket: a path beside the port."""

    listener: Listener
    server: Server
    unix_socket: Path | None = None


class Listeners:
    """The servers of all ports."""

    def __init__(self, servers: Mapping[str, PortServer]) -> None:
        """servers: by name, for the log."""
        self._named = servers
        self._servers = tuple(servers.values())
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, inherited: Mapping[str, socket.socket]) -> None:
        """Listen on every port. inherited: sockets of a former brain, as ``sockets`` returned them.

        Raises PortTakenError with the setting that chooses another port; StartError for a path
        that cannot be a socket.
        """
        for name, row in self._named.items():
            if name not in inherited:
                where = row.listener
                check_port(where.port, where.port_setting, address=where.address)
        for name, row in self._named.items():
            unix_socket = inherited.get(f"{name}{BESIDE}")
            if unix_socket is None and row.unix_socket is not None:
                unix_socket = bind_unix_socket(row.unix_socket)
            await row.server.start(listening=inherited.get(name), unix_socket=unix_socket)
            self._tasks.append(asyncio.create_task(row.server.serve()))

    def sockets(self) -> dict[str, socket.socket]:
        """Return the listening sockets by name; BESIDE marks a Unix socket."""
        return {
            f"{name}{mark}": sock
            for name, row in self._named.items()
            for mark, sock in zip(("", BESIDE), row.server.sockets, strict=False)
        }

    def ports(self) -> dict[str, int]:
        """Return the port of each listener, by name."""
        return {name: row.listener.port for name, row in self._named.items()}

    async def wait_for_failure(self) -> None:
        """Return when a server ended without ``stop``."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def stop(self, *, timeout_s: float, idle_s: float = 0.0) -> None:
        """Accept nothing more and let the requests under way finish, for this long at most.

        idle_s: how long idle connections stay open before that.
        """
        if not self._tasks:
            return
        for row in self._servers:
            row.server.stop(idle_s=idle_s, timeout_s=timeout_s - CUT_S)
        _, late = await asyncio.wait(self._tasks, timeout=timeout_s + idle_s)
        if late:
            log.warning("brain_requests_cut", ports=len(late))
        for task in late:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def as_platform(_scope: Scope) -> Payer:
    """Return the platform as the one whose turn a request is in."""
    return PLATFORM


def as_node(scope: Scope) -> Payer:
    """Return the nodes, and of these the one at this address."""
    return "nodes", network_of(scope.client_address)


def port_server(
    app: App,
    listener: Listener,
    turns: LoopTurns,
    *,
    payer: Callable[[Scope], Payer] = by_network,
    tls: tuple[Path | None, Path | None] = (None, None),
    unix_socket: Path | None = None,
) -> PortServer:
    """Return the server of an application.

    turns: of all ports. payer: whose turn a request is in. tls: certificate and key, or neither.
    """
    certificate, key = tls
    context = tls_context(certificate, key) if certificate and key else None
    limits = Limits(connections=connections_allowed())
    server = Server(
        app,
        address=listener.address,
        port=listener.port,
        tls=context,
        limits=limits,
        turns=turns,
        payer=payer,
    )
    return PortServer(listener, server, unix_socket)


def bind_unix_socket(path: Path) -> socket.socket:
    """Return a socket bound to a path, in place of one whose server is gone.

    Every local user who can reach the path may connect, as with the port. To a proxy on the same
    machine a Unix socket costs less than TCP. Raises StartError.
    """
    if path.exists() and not path.is_socket():
        sentence = f"{path} exists and is no socket. Choose another path: ZBRAIN_S3_SOCKET."
        raise StartError(sentence)
    if _is_served(path):
        sentence = f"{path} is in use by another program. Choose another path: ZBRAIN_S3_SOCKET."
        raise PortTakenError(sentence)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(temporary))
        temporary.chmod(0o666)
        temporary.replace(path)
    except OSError as error:
        bound.close()
        with contextlib.suppress(OSError):
            temporary.unlink()
        sentence = f"{path} cannot be used ({error.strerror or error}). It is ZBRAIN_S3_SOCKET."
        raise StartError(sentence) from None
    return bound


def _is_served(path: Path) -> bool:
    """True if a server listens at this path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
