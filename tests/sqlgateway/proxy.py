"""A TCP proxy before a server, which can be silent (bytes vanish, nothing is closed) or cut."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import parse_qs, urlsplit

ANY_PORT: Final = ("127.0.0.1", 0)
PIECE_BYTES: Final = 65_536


class Proxy:
    """Forwards each connection to a server of PostgreSQL until it is told otherwise.

    url: of the server, through the proxy.
    is_silent: what arrives from now on is dropped, also that of new connections.
    cut_at: all connections are cut, once, instead of forwarding a piece with these bytes.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self._folder = query.get("host", [""])[0]
        port = int(query.get("port", [parts.port or 5432])[0])
        self._target: str | tuple[str, int] = (
            f"{self._folder}/.s.PGSQL.{port}" if self._folder else (str(parts.hostname), port)
        )
        self._listening = socket.create_server(ANY_PORT)
        own = self._listening.getsockname()[1]
        user = parts.netloc.rpartition("@")[0]
        self.url = f"postgresql://{user}@127.0.0.1:{own}/postgres?sslmode=disable"
        self.is_silent = False
        self.cut_at = b""
        self.accepted = 0
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection without a word, as a server that is killed does."""
        ends, self._ends = self._ends, []
        for end in ends:
            _end(end)

    def close(self) -> None:
        """Stop."""
        self._listening.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                # As PostgreSQL does: small pieces wait for nothing.
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.accepted += 1
                server = self._connect()
                self._ends += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _connect(self) -> socket.socket:
        if isinstance(self._target, str):
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            return server
        return socket.create_connection(self._target)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                if self.cut_at and self.cut_at in piece:
                    self.cut_at = b""
                    self.cut()
                elif not self.is_silent:
                    target.sendall(piece)
        if not self.is_silent:
            _end(target)


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def proxy_before(url: str) -> Iterator[Proxy]:
    """Yield a proxy before a server."""
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
