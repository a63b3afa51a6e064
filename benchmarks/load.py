"""A load generator small enough not to be what is measured: raw keep-alive sockets, one loop."""

import selectors
import socket
import statistics
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """What one round gave; failures are answers other than 200."""

    per_second: float
    p50_ms: float
    p95_ms: float
    failures: int


@dataclass
class _Connection:
    sock: socket.socket
    sent_at: float
    received: bytes = b""


def request(method: str, path: str, body: bytes = b"", token: str = "") -> bytes:
    """Give the bytes of one HTTP/1.1 request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def run(port: int, payload: bytes, *, connections: int, seconds: float) -> Load:
    """Send the same request over and over on so many connections; each waits for its answer."""
    selector = selectors.DefaultSelector()
    for _ in range(connections):
        _open(selector, port, payload)
    times: list[float] = []
    failures = 0
    ends = time.perf_counter() + seconds
    while (now := time.perf_counter()) < ends:
        for key, _ in selector.select(timeout=ends - now):
            connection: _Connection = key.data
            connection.received += connection.sock.recv(1 << 18)
            if not _is_whole(connection.received):
                continue
            times.append(time.perf_counter() - connection.sent_at)
            failures += not connection.received.startswith(b"HTTP/1.1 200")
            if b"onnection: close" in connection.received[:500]:
                selector.unregister(connection.sock)
                connection.sock.close()
                _open(selector, port, payload)
                continue
            connection.received, connection.sent_at = b"", time.perf_counter()
            connection.sock.sendall(payload)
    for key in list(selector.get_map().values()):
        key.data.sock.close()
    quantiles = statistics.quantiles(times, n=100)
    return Load(len(times) / seconds, quantiles[49] * 1000, quantiles[94] * 1000, failures)


def _open(selector: selectors.DefaultSelector, port: int, payload: bytes) -> None:
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    selector.register(sock, selectors.EVENT_READ, _Connection(sock, time.perf_counter()))
    sock.sendall(payload)


def _is_whole(received: bytes) -> bool:
    head, separator, body = received.partition(b"\r\n\r\n")
    if not received:
        raise ConnectionError("the server closed the connection")
    if not separator:
        return False
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    raise ValueError("an answer without Content-Length")
