"""An HTTP origin that sends chosen bytes, and clients that see the bytes of the cache's answers."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from tests.edgecache.brain.cdn.conftest import PublicBucket, create_bucket
from tests.edgecache.cluster import Cluster

WAIT_S = 20.0


class RawOrigin:
    """Answers every request with the same pieces; each but the first waits for ``go_on``.

    closes, resets: how a connection ends after its answer. reads_until: what ends a request.
    """

    reads_until = b"\r\n\r\n"

    def __init__(self, *pieces: bytes, closes: bool = False, resets: bool = False) -> None:
        self.requests: list[bytes] = []
        self._pieces = pieces
        self._closes = closes
        self._resets = resets
        self._turns = threading.Semaphore(0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._is_over = False

    @property
    def url(self) -> str:
        """Return its URL."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def __enter__(self) -> Self:
        """Start."""
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self._is_over = True
        self._turns.release(1000)
        self._listener.close()

    def go_on(self) -> None:
        """Let the next piece be sent."""
        self._turns.release()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while not self._is_over:
                request = b""
                while self.reads_until not in request:
                    data = connection.recv(65536)
                    if not data:
                        return
                    request += data
                self.requests.append(request)
                for number, piece in enumerate(self._pieces):
                    if number:
                        self._turns.acquire(timeout=WAIT_S)
                    connection.sendall(piece)
                if self._resets:
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                if self._closes or self._resets:
                    return


class RawClient:
    """A client's connection after its request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._read = b""

    def until(self, end: bytes) -> bytes:
        """Return what comes up to an end."""
        while end not in self._read:
            data = self._connection.recv(65536)
            assert data, f"the connection ended after {self._read!r}"
            self._read += data
        found, mark, self._read = self._read.partition(end)
        return found + mark

    def rest(self) -> bytes:
        """Return all that comes, also before a broken connection."""
        with contextlib.suppress(ConnectionError):
            while data := self._connection.recv(65536):
                self._read += data
        return self._read


class RawBucket(PublicBucket):
    """A bucket; its responses are read as bytes."""

    @contextlib.contextmanager
    def opened(self, path: str, *fields: str) -> Iterator[RawClient]:
        """Send a GET."""
        with socket.create_connection(("127.0.0.1", self.cluster.port), WAIT_S) as connection:
            lines = [f"GET /p/{self.public_name}{path} HTTP/1.1", "Host: x", *fields]
            connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
            yield RawClient(connection)

    def raw(self, path: str, *fields: str) -> bytes:
        """Return the whole answer to a GET."""
        with self.opened(path, *fields) as client:
            return client.rest()


def raw_bucket(cluster: Cluster, origin: RawOrigin) -> RawBucket:
    """Return a public bucket with the origin."""
    scope, row = create_bucket(cluster, origin.url)
    return RawBucket(cluster, row["public_name"], scope, row["id"])
