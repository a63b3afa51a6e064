"""A crowd of small requests at one server, and one request that comes after them."""

import select
import socket
from contextlib import ExitStack
from typing import Final

CROWD: Final = 400
TRIES: Final = 3
# With turns some 30 are answered before another organization's request; as they come, all.
FEW: Final = CROWD // 2


def answered_before(port: int, request: bytes, *, crowd: bytes, source: str = "127.0.0.1") -> int:
    """Return how many of a crowd's requests are answered before a later request.

    crowd: what each of its connections sends.
    source: its address.

    The minimum of some tries, because a test process that was paused counts later answers, too.
    """
    with ExitStack() as stack:
        last = _connect(port, request, "127.0.0.1", stack)
        clients = [_connect(port, crowd, source, stack) for _ in range(CROWD)]
        found = CROWD
        for _ in range(TRIES):
            found = min(found, _before(clients, crowd, last, request))
            if found < FEW:
                break
        return found


def _connect(port: int, request: bytes, source: str, stack: ExitStack) -> socket.socket:
    """Return a connection that has been served: the server knows what it has to learn for it."""
    address = ("127.0.0.1", port)
    client = stack.enter_context(socket.create_connection(address, 20, (source, 0)))
    client.sendall(request)
    assert client.recv(2**16).startswith(b"HTTP/1.1 ")
    return client


def _before(clients: list[socket.socket], crowd: bytes, last: socket.socket, request: bytes) -> int:
    for client in clients:
        client.sendall(crowd)
    last.sendall(request)
    assert last.recv(2**16).startswith(b"HTTP/1.1 200 ")
    readable, _, _ = select.select(clients, [], [], 0)
    for client in clients:
        assert client.recv(2**16).startswith(b"HTTP/1.1 ")
    return len(readable)
