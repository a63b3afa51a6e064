"""HTTP/1.1 for untrusted clients: bounded in connections, time and memory.

A server of its own, because those at hand keep in memory what a slow client does not take, and
give neither the raw path nor header values beyond ASCII, which signatures cover. Applications have
RSGI's shape: ``app(scope, exchange)``.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from edgecache.http.addresses import network_of
from edgecache.http.connection import Connection
from edgecache.http.exchange import App
from edgecache.http.limits import Limits
from edgecache.http.machine import files_allowed
from edgecache.http.registry import Client
from edgecache.http.scope import Scope
from edgecache.http.shares import Path as Payer
from edgecache.http.shares import Shares
from edgecache.http.turns import Leave, LoopTurns

log = logging.getLogger(__name__)

# Of the files a process may have open: for the database, the disk and everything else.
FILES_RESERVED: Final = 256
BACKLOG: Final = 2048
SWEEP_S: Final = 1.0
STOP_TIMEOUT_S: Final = 10.0
LOCAL: Final = frozenset(("127.0.0.1", "::1"))


def by_network(scope: Scope) -> Payer:
    """Return the client's network as the one whose turn a request is in."""
    return ("clients", network_of(scope.client_address))


class Server:
    """A listener. ``start`` listens; ``serve`` answers until ``stop``."""

    def __init__(
        self,
        app: App,
        *,
        address: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        limits: Limits | None = None,
        stop_timeout_s: float = STOP_TIMEOUT_S,
        turns: LoopTurns | None = None,
        payer: Callable[[Scope], Payer] = by_network,
    ) -> None:
        """Bind nothing yet. stop_timeout_s: for the requests under way at ``stop``.

        turns: of all servers on this loop. payer: whose turn a request is in, from its head alone.
        """
        self.app = app
        self._turns = turns or LoopTurns()
        self._payer = payer
        self.limits = limits or Limits()
        self._address = (address, port)
        self._tls = tls
        self._stop_timeout_s = stop_timeout_s
        # A client, and a worker or a file for it.
        allowed = (files_allowed() - FILES_RESERVED) // 2
        self._limit = min(self.limits.connections, allowed)
        # The port's, and the Unix socket's beside it.
        self.sockets: list[socket.socket] = []
        self._idle_s = 0.0
        self._listeners: list[asyncio.Server] = []
        self._clients: set[Client] = set()
        # Those that count towards the share of their address.
        self._counted: set[Client] = set()
        self._shares = Shares(self._limit, refusal=ConnectionRefusedError)
        self._stopping = asyncio.Event()
        self._emptied = asyncio.Event()

    @property
    def is_stopping(self) -> bool:
        """True if each connection is to close after its next response."""
        return self._stopping.is_set()

    async def start(
        self,
        *,
        listening: socket.socket | None = None,
        unix_socket: socket.socket | None = None,
    ) -> None:
        """Listen on the port, and on a bound Unix socket beside it. Raises OSError.

        listening: the port's socket, of another server.
        """
        loop = asyncio.get_running_loop()
        self.sockets = [listening or self._bind()]
        # The Unix socket first: who finds the port open finds it open as well.
        if unix_socket is not None:
            self.sockets.append(unix_socket)
            self._listeners.append(
                await loop.create_unix_server(
                    lambda: Connection(self, loop), sock=unix_socket, backlog=BACKLOG
                )
            )
        self._listeners.append(
            await loop.create_server(
                lambda: Connection(self, loop, scheme="https" if self._tls else "http"),
                sock=self.sockets[0],
                backlog=BACKLOG,
                ssl=self._tls,
                # asyncio reports a client after its handshake, so this limit is all that bounds
                # unfinished ones; half of the open files are left for them.
                ssl_handshake_timeout=self.limits.head_timeout_s if self._tls else None,
            )
        )

    async def serve(self) -> None:
        """Answer until ``stop``; then let the requests under way finish, for a while."""
        sweep = asyncio.create_task(self._sweep())
        try:
            await self._stopping.wait()
        finally:
            for listener in self._listeners:
                listener.close()
            await self._finish()
            sweep.cancel()

    def stop(self, *, idle_s: float = 0.0, timeout_s: float | None = None) -> None:
        """Accept nothing more and end ``serve``.

        idle_s: how long idle connections stay open, for requests that clients send at this moment.
        timeout_s: for the requests under way, in place of the server's own.
        """
        self._idle_s = idle_s
        if timeout_s is not None:
            self._stop_timeout_s = timeout_s
        self._stopping.set()

    def opened(self, client: Client) -> bool:
        """Count a connection in; an idle one is closed for it when there are too many.

        False: all of them are at work, or all of its address, and this one has to go.
        """
        self._clients.add(client)
        if not self._is_fair(client):
            log.warning("connections_of_client_exhausted", extra={"client": client.network})
            return False
        if len(self._clients) <= self._limit:
            return True
        idle = next((each for each in self._clients if each.is_idle), None)
        if idle is None:
            log.warning("connections_exhausted", extra={"limit": self._limit})
            return False
        idle.close()
        return True

    def closed(self, client: Client) -> None:
        """Count a connection out."""
        self._uncount(client)
        self._clients.discard(client)
        if not self._clients:
            self._emptied.set()

    def take_turn(self, scope: Scope, begin: Callable[[], None]) -> Leave | None:
        """Begin a request, at once or when those before it in turn have begun.

        Returns how to leave the queue, None if it has begun.
        """
        return self._turns.take(partial(self._payer_of, scope), begin)

    def _payer_of(self, scope: Scope) -> Payer:
        """Return whose turn a request is in; an error here must not leave it unanswered."""
        try:
            return self._payer(scope)
        except Exception:
            log.exception("payer_unknown")
            return by_network(scope)

    def _is_fair(self, client: Client) -> bool:
        """True if a client's address holds no more connections than it leaves for others.

        An idle one of its own is closed for the new one. A proxy on this machine has many clients.
        """
        if client.network in LOCAL:
            return True
        path = (client.network,)
        if not self._shares.try_take(path):
            own = (each for each in self._counted if each.network == client.network)
            idle = next((each for each in own if each.is_idle), None)
            if idle is None:
                return False
            self._uncount(idle)
            idle.close()
            if not self._shares.try_take(path):
                return False
        self._counted.add(client)
        return True

    def _uncount(self, client: Client) -> None:
        if client in self._counted:
            self._counted.discard(client)
            self._shares.give_back((client.network,))

    def _bind(self) -> socket.socket:
        address = self._address
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        bound = socket.create_server(address, family=family, backlog=BACKLOG)
        # Connections inherit these: the kernel cuts clients that acknowledge nothing for so long.
        stalled_ms = int(self.limits.take_timeout_s * 1000)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stalled_ms)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return bound

    async def _sweep(self) -> None:
        """Act on the deadlines that have passed."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            now = loop.time()
            for client in [each for each in self._clients if each.deadline < now]:
                client.expire()

    async def _finish(self) -> None:
        await self._wait_until_empty(self._idle_s)
        for client in list(self._clients):
            client.close()
        await self._wait_until_empty(self._stop_timeout_s)
        if self._clients:
            log.warning("requests_cut", extra={"clients": len(self._clients)})
        for client in list(self._clients):
            client.cut()

    async def _wait_until_empty(self, timeout_s: float) -> None:
        if not self._clients or not timeout_s:
            return
        self._emptied.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._emptied.wait()


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS context of a server. Raises OSError, ssl.SSLError for unusable files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context
