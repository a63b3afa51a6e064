"""A load generator with little overhead: raw keep-alive sockets in one loop."""

import itertools
import selectors
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

BUFFER_BYTES = 1 << 18
SUCCESSES = (b"HTTP/1.1 200", b"HTTP/1.1 204")


@dataclass(frozen=True, slots=True)
class Load:
    """The result of one round.

    count: the number of responses. failures: those other than 200 and 204.
    """

    per_second: float
    p50_ms: float
    p95_ms: float
    failures: int
    p99_ms: float
    count: int


@dataclass
class _Connection:
    """One client.

    left: missing bytes of the response's body; None before its head is complete.
    unsent: bytes of the request that were not sent yet.
    """

    sock: socket.socket
    sent_at: float
    unsent: memoryview
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


def run(
    port: int,
    payload: bytes | Sequence[bytes] | Iterator[bytes],
    *,
    connections: int,
    seconds: float,
) -> Load:
    """Send requests repeatedly on several connections; each waits for its response.

    payload: a request, several that alternate, or an iterator, which ends the round when it ends.
    """
    payloads = _repeated(payload)
    selector = selectors.DefaultSelector()
    buffer = bytearray(BUFFER_BYTES)
    for _ in range(connections):
        _open(selector, port, payloads)
    times: list[float] = []
    failures = 0
    began = time.perf_counter()
    ends = began + seconds
    while (now := time.perf_counter()) < ends and selector.get_map():
        for key, events in selector.select(timeout=ends - now):
            connection: _Connection = key.data
            if events & selectors.EVENT_WRITE:
                _send(selector, connection)
            if not events & selectors.EVENT_READ or not _take(connection, buffer):
                continue
            times.append(time.perf_counter() - connection.sent_at)
            failures += not connection.head.startswith(SUCCESSES)
            if b"onnection: close" in connection.head:
                selector.unregister(connection.sock)
                connection.sock.close()
                _open(selector, port, payloads)
                continue
            _ask(selector, connection, payloads)
    spent_s = min(seconds, now - began)
    for key in list(selector.get_map().values()):
        key.data.sock.close()
    quantiles = statistics.quantiles(times, n=100)
    slow = [quantiles[at] * 1000 for at in (49, 94, 98)]
    return Load(len(times) / spent_s, slow[0], slow[1], failures, slow[2], len(times))


def _repeated(payload: bytes | Sequence[bytes] | Iterator[bytes]) -> Iterator[bytes]:
    if isinstance(payload, Iterator):
        return payload
    return itertools.cycle([payload] if isinstance(payload, bytes) else payload)


def _open(selector: selectors.DefaultSelector, port: int, payloads: Iterator[bytes]) -> None:
    """Connect and send a request, if there is one."""
    payload = next(payloads, None)
    if payload is None:
        return
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    connection = _Connection(sock, time.perf_counter(), memoryview(payload))
    selector.register(sock, selectors.EVENT_READ, connection)
    _send(selector, connection)


def _ask(
    selector: selectors.BaseSelector, connection: _Connection, payloads: Iterator[bytes]
) -> None:
    """Send the next request on a connection after its response; close it if there is none."""
    payload = next(payloads, None)
    if payload is None:
        selector.unregister(connection.sock)
        connection.sock.close()
        return
    connection.head, connection.left = b"", None
    connection.sent_at = time.perf_counter()
    connection.unsent = memoryview(payload)
    _send(selector, connection)


def _send(selector: selectors.BaseSelector, connection: _Connection) -> None:
    """Send what the socket accepts, and wait until it accepts the rest."""
    with suppress(BlockingIOError):
        while connection.unsent:
            connection.unsent = connection.unsent[connection.sock.send(connection.unsent) :]
    events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
    if selector.get_key(connection.sock).events != events:
        selector.modify(connection.sock, events, connection)


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
    if head.startswith(b"HTTP/1.1 204"):
        return 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    raise ValueError("an answer without Content-Length")
