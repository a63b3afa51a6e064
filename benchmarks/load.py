"""A load generator with little overhead: raw keep-alive sockets in one loop."""

import itertools
import selectors
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BUFFER_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Load:
    """The result of one round; failures are responses other than 200."""

    per_second: float
    p50_ms: float
    p95_ms: float
    failures: int
    p99_ms: float


@dataclass
class _Connection:
    """One client. left: missing bytes of the body, None before the head is complete."""

    sock: socket.socket
    sent_at: float
    head: bytes = b""
    left: int | None = None


def request(method: str, path: str, body: bytes = b"", token: str = "") -> bytes:
    """Return the bytes of one HTTP/1.1 request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def run(port: int, payload: bytes | Sequence[bytes], *, connections: int, seconds: float) -> Load:
    """Send requests repeatedly on several connections; each waits for its response.

    payload: the one request, or several that take turns.
    """
    payloads = itertools.cycle([payload] if isinstance(payload, bytes) else payload)
    selector = selectors.DefaultSelector()
    buffer = bytearray(BUFFER_BYTES)
    for _ in range(connections):
        _open(selector, port, payloads)
    times: list[float] = []
    failures = 0
    ends = time.perf_counter() + seconds
    while (now := time.perf_counter()) < ends:
        for key, _ in selector.select(timeout=ends - now):
            connection: _Connection = key.data
            if not _take(connection, buffer):
                continue
            times.append(time.perf_counter() - connection.sent_at)
            failures += not connection.head.startswith(b"HTTP/1.1 200")
            if b"onnection: close" in connection.head:
                selector.unregister(connection.sock)
                connection.sock.close()
                _open(selector, port, payloads)
                continue
            connection.head, connection.left = b"", None
            connection.sent_at = time.perf_counter()
            connection.sock.sendall(next(payloads))
    for key in list(selector.get_map().values()):
        key.data.sock.close()
    quantiles = statistics.quantiles(times, n=100)
    slow = [quantiles[at] * 1000 for at in (49, 94, 98)]
    return Load(len(times) / seconds, slow[0], slow[1], failures, slow[2])


def _open(selector: selectors.DefaultSelector, port: int, payloads: Iterator[bytes]) -> None:
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    selector.register(sock, selectors.EVENT_READ, _Connection(sock, time.perf_counter()))
    sock.sendall(next(payloads))


def _take(connection: _Connection, buffer: bytearray) -> bool:
    """Read; return True if the response is complete. Bodies are counted, not stored."""
    received = connection.sock.recv_into(buffer)
    if not received:
        raise ConnectionError("the server closed the connection")
    if connection.left is not None:
        connection.left -= received
        return connection.left <= 0
    connection.head += buffer[:received]
    head, separator, body = connection.head.partition(b"\r\n\r\n")
    if not separator:
        return False
    connection.head = head
    connection.left = _length(head) - len(body)
    return connection.left <= 0


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    raise ValueError("an answer without Content-Length")
