"""HTTP/1.1 for untrusted clients: bounded in connections, time and memory.

Available servers keep what a slow client does not take in memory, and provide neither the raw path
nor header values beyond ASCII, which signatures cover. Applications have RSGI's shape: ``app(scope,
exchange)``.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from edgecache.http.addresses import network_of
from edgecache.http.exchange import App
from edgecache.http.response_head import response_head
from edgecache.http.scope import HttpScope
from edgecache.http.server.acceptor import Acceptor, PeerAddress, refuse
from edgecache.http.server.clients import Clients
from edgecache.http.server.connection import ClientConnection
from edgecache.http.server.contract import Client
from edgecache.http.server.limits import ServerLimits
from edgecache.runtime.fair_shares import ShareKey
from edgecache.runtime.resource_limits import files_allowed
from edgecache.runtime.turns import Leave, LoopTurns

log = logging.getLogger(__name__)

# Open files that are reserved for the database, the disk and everything else.
FILES_RESERVED: Final = 256
BACKLOG: Final = 2048
SWEEP_S: Final = 1.0
STOP_TIMEOUT_S: Final = 10.0
# How long idle connections stay open at a stop: for requests that clients are sending.
IDLE_S: Final = 2.0


def by_network(scope: HttpScope) -> ShareKey:
    """Return the client's network as a request's queue key."""
    return ("clients", network_of(scope.client_address))


class HttpServer:
    """A listener. ``start`` listens; ``serve`` answers until ``stop``."""

    def __init__(
        self,
        app: App,
        *,
        address: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        limits: ServerLimits | None = None,
        stop_timeout_s: float = STOP_TIMEOUT_S,
        turns: LoopTurns | None = None,
        share_key: Callable[[HttpScope], ShareKey] = by_network,
    ) -> None:
        """stop_timeout_s: for running requests at ``stop``.

        turns: of all servers on this loop.
        share_key: returns a request's queue key from its head.
        """
        self.app = app
        self._turns = turns or LoopTurns()
        self._share_key = share_key
        self.limits = limits or ServerLimits()
        self._address = (address, port)
        self._tls = tls
        self._stop_timeout_s = stop_timeout_s
        # Files for a client, and for its worker connection or file.
        allowed = (files_allowed() - FILES_RESERVED) // 2
        self._clients = Clients(min(self.limits.connections, allowed))
        self.sockets: list[socket.socket] = []
        self._is_shared = False
        self._closes_idle = False
        self._acceptors: list[Acceptor] = []
        # A task that nothing refers to may be collected before it has ended.
        self._opening: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    @property
    def is_stopping(self) -> bool:
        """True if each connection closes after its next response."""
        return self._stopping.is_set()

    async def start(
        self, *, listening: socket.socket | None = None, is_shared: bool = False
    ) -> None:
        """Accept connections to the port.

        listening: its socket; without it one is bound. is_shared: other processes accept from it as
        well, and after this one. Raises OSError.
        """
        self.sockets = [listening or listening_socket(*self._address, self.limits)]
        self._is_shared = is_shared
        self._acceptors.append(Acceptor(self.sockets[0], partial(self._connect, self._tls)))

    async def serve(self) -> None:
        """Serve until ``stop``; then let running requests finish, for a while."""
        sweep = asyncio.create_task(self._sweep())
        try:
            await self._stopping.wait()
        finally:
            self._stop_accepting()
            await self._finish()
            sweep.cancel()

    def _stop_accepting(self) -> None:
        for acceptor in self._acceptors:
            acceptor.close(takes_queued=not self._is_shared)
        for listening in self.sockets:
            listening.close()

    def stop(self, *, timeout_s: float | None = None) -> None:
        """Accept nothing more and end ``serve``.

        timeout_s: for running requests, instead of the server's own timeout.
        """
        if timeout_s is not None:
            self._stop_timeout_s = timeout_s
        self._stopping.set()

    def opened(self, client: Client) -> None:
        """Count a connection in, which was admitted when it was accepted."""
        self._clients.opened(client)
        if self._closes_idle:
            # It was accepted during the stop, and must not begin a request.
            asyncio.get_running_loop().call_soon(client.close)

    def closed(self, client: Client) -> None:
        """Count a connection out."""
        self._clients.closed(client)

    def take_turn(self, scope: HttpScope, begin: Callable[[], None]) -> Leave | None:
        """Begin a request, immediately or when those before it in turn have begun.

        Returns how to leave the queue, None if it has begun.
        """
        return self._turns.take(partial(self._share_key_of, scope), begin)

    def _share_key_of(self, scope: HttpScope) -> ShareKey:
        """Return a request's queue key; an error here must not leave it unanswered."""
        try:
            return self._share_key(scope)
        except Exception:
            log.exception("payer_unknown")
            return by_network(scope)

    def _connect(
        self, tls: ssl.SSLContext | None, accepted: socket.socket, address: PeerAddress
    ) -> None:
        """Make a connection of an accepted socket, or refuse it."""
        self._clients.accepted()
        task = asyncio.create_task(self._open(tls, accepted, (address[0], address[1])))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(
        self, tls: ssl.SSLContext | None, accepted: socket.socket, address: tuple[str, int]
    ) -> None:
        loop = asyncio.get_running_loop()
        network = network_of(address[0])
        if not await self._clients.admit(network):
            limit = self._clients.limit
            log.warning("connections_exhausted", extra={"client": network, "limit": limit})
            # In TLS nothing can be said before the handshake.
            refuse(accepted, b"" if tls else response_head(503, [], 0, keeps_alive=False))
            return
        scheme = "https" if tls else "http"
        client = ClientConnection(self, loop, address=address, scheme=scheme)
        try:
            await loop.connect_accepted_socket(
                lambda: client,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=self.limits.head_timeout_s if tls else None,
            )
        except OSError:
            # The client broke off, such as within its TLS handshake.
            accepted.close()
        finally:
            if not client.is_made:
                self._clients.broke_off(network)

    async def _sweep(self) -> None:
        """Act on the deadlines that have passed."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            now = loop.time()
            for client in [each for each in self._clients if each.deadline < now]:
                client.expire()

    async def _finish(self) -> None:
        await self._clients.wait_until_none(IDLE_S)
        self._closes_idle = True
        for client in self._clients:
            client.close()
        await self._clients.wait_until_none(self._stop_timeout_s)
        if len(self._clients):
            log.warning("requests_cut", extra={"clients": len(self._clients)})
        for client in self._clients:
            client.cut()


def listening_socket(address: str, port: int, limits: ServerLimits) -> socket.socket:
    """Return a socket that listens. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound = socket.create_server((address, port), family=family, backlog=BACKLOG)
    return bound_listener(bound, limits)


def bound_listener(bound: socket.socket, limits: ServerLimits) -> socket.socket:
    """Return a listening socket with the limits of its connections. Raises OSError."""
    # Connections inherit these: the kernel cuts clients that acknowledge nothing for this long.
    stalled_ms = int(limits.take_timeout_s * 1000)
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stalled_ms)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return bound


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS context of a server. Raises OSError, ssl.SSLError for unusable files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context
