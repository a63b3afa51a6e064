"""How many bytes a client really took: what its TCP has acknowledged, as the kernel counts it.

Granian moves a file's bytes by itself and does not say how many went out. The kernel knows: a
connection's ``TCP_INFO`` has the bytes that the peer acknowledged, which is more honest than what
was written to a socket. Without TLS it is exact; with TLS its few records are counted as body, up
to the body's length.

The sockets are Granian's; they are found by the client's address, and duplicated while watched, so
that the count can be read after Granian closed its own.
Source: include/uapi/linux/tcp.h (struct tcp_info), RFC 4898 (tcpEStatsAppHCThruOctetsAcked).
"""

import os
import socket
import stat
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

INFO_BYTES: Final = 128
STATE_AT: Final = 0
ACKNOWLEDGED_AT: Final = 120
CLOSED: Final = 7
# A client that takes nothing for so long is given up.
STALLED_S: Final = 60.0
# A connection without answers stays known for the next one.
IDLE_S: Final = 1.0
DESCRIPTORS: Final = Path("/proc/self/fd")
# The shortest status line, Date and the empty line, beside the headers that are known: what is
# counted as head must not be more than there is, or an answer would never be whole.
FRAMING_BYTES: Final = 56


@dataclass(slots=True)
class Transfer:
    """One answer on its way. first: the acknowledged bytes when it began."""

    first: int
    head_bytes: int
    length: int
    done: Callable[[int], None]


@dataclass(slots=True)
class Connection:
    """A client's connection with answers on their way. theirs: Granian's descriptor."""

    sock: socket.socket
    theirs: int
    inode: int
    acknowledged: int
    grew_at: float
    transfers: list[Transfer] = field(default_factory=list)


class Acknowledged:
    """Watches answers until their client has them, or is gone. For the event loop's thread."""

    def __init__(self, tick: Callable[[], float] = time.monotonic) -> None:
        """Watch nothing yet."""
        self._tick = tick
        self._connections: dict[str, Connection] = {}
        self._sockets: dict[int, tuple[int, str | None]] = {}

    def __len__(self) -> int:
        """Give the number of connections that are watched."""
        return len(self._connections)

    @property
    def transfers(self) -> int:
        """Give the number of answers that are on their way."""
        return sum(len(connection.transfers) for connection in self._connections.values())

    def watch(self, client: str, length: int, head_bytes: int, done: Callable[[int], None]) -> None:
        """Call ``done`` with the bytes of the body that the client took, once that is known.

        client: ``address:port``. Who has no connection any more takes nothing.
        """
        connection = self._connections.get(client)
        if connection is not None and not _is_same(connection.theirs, connection.inode):
            # The address is another connection's by now.
            self._end(client, connection)
            connection = None
        connection = connection or self._open(client)
        if connection is None:
            done(0)
            return
        acknowledged, _ = _info(connection.sock)
        connection.grew_at = self._tick()
        connection.transfers.append(
            Transfer(acknowledged, head_bytes + FRAMING_BYTES, length, done)
        )

    def look(self) -> None:
        """Look at every connection once; call it a few times a second."""
        for client, connection in list(self._connections.items()):
            if self._look_at(connection) or self._is_idle(connection):
                self._end(client, connection)

    def finish_all(self) -> None:
        """Count what was taken up to now, and watch no longer."""
        for client, connection in list(self._connections.items()):
            connection.acknowledged, _ = _info(connection.sock)
            self._end(client, connection)

    def _is_idle(self, connection: Connection) -> bool:
        return not connection.transfers and self._tick() - connection.grew_at > IDLE_S

    def _look_at(self, connection: Connection) -> bool:
        """Count what was taken; give whether the connection is over."""
        acknowledged, state = _info(connection.sock)
        now = self._tick()
        if acknowledged != connection.acknowledged:
            connection.acknowledged, connection.grew_at = acknowledged, now
        for transfer in [row for row in connection.transfers if _left(row, acknowledged) <= 0]:
            connection.transfers.remove(transfer)
            transfer.done(transfer.length)
        if not _is_same(connection.theirs, connection.inode):
            # Granian dropped it, perhaps in the middle: the client must not wait for our copy.
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_WR)
            if not connection.transfers:
                return True
        return state == CLOSED or now - connection.grew_at > STALLED_S

    def _end(self, client: str, connection: Connection) -> None:
        del self._connections[client]
        connection.sock.close()
        for transfer in connection.transfers:
            taken = transfer.length - _left(transfer, connection.acknowledged)
            transfer.done(min(transfer.length, max(0, taken)))

    def _open(self, client: str) -> Connection | None:
        self._sockets = _sockets(self._sockets)
        for theirs, (inode, known) in self._sockets.items():
            sock = _copy(theirs, client) if known == client else None
            if sock is not None:
                acknowledged, _ = _info(sock)
                found = Connection(sock, theirs, inode, acknowledged, self._tick())
                self._connections[client] = found
                return found
        return None


def _left(transfer: Transfer, acknowledged: int) -> int:
    return transfer.length + transfer.head_bytes - (acknowledged - transfer.first)


def _info(sock: socket.socket) -> tuple[int, int]:
    """Give the acknowledged bytes and the state of a connection."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
    (acknowledged,) = struct.unpack_from("=Q", raw, ACKNOWLEDGED_AT)
    return acknowledged, raw[STATE_AT]


def _sockets(known: dict[int, tuple[int, str | None]]) -> dict[int, tuple[int, str | None]]:
    """Find this process's sockets: descriptor to inode and client.

    known: what the last look found; a descriptor that still has its inode has its client.
    """
    found: dict[int, tuple[int, str | None]] = {}
    for name in os.listdir(DESCRIPTORS):  # noqa: PTH208 - numbers, not paths
        with suppress(OSError):
            descriptor = int(name)
            status = os.fstat(descriptor)
            if stat.S_ISSOCK(status.st_mode):
                inode, client = known.get(descriptor, (0, None))
                is_known = inode == status.st_ino
                found[descriptor] = (status.st_ino, client if is_known else _client(descriptor))
    return found


def _client(descriptor: int) -> str | None:
    sock = socket.socket(fileno=os.dup(descriptor))
    try:
        is_tcp = sock.family in {socket.AF_INET, socket.AF_INET6}
        return _address(sock) if is_tcp else None
    except OSError:
        return None
    finally:
        sock.close()


def _copy(descriptor: int, client: str) -> socket.socket | None:
    """Duplicate a socket, if it still is this client's."""
    try:
        sock = socket.socket(fileno=os.dup(descriptor))
    except OSError:
        return None
    with suppress(OSError):
        if _address(sock) == client:
            return sock
    sock.close()
    return None


def _address(sock: socket.socket) -> str:
    host, port, *_ = sock.getpeername()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_same(descriptor: int, inode: int) -> bool:
    try:
        return os.fstat(descriptor).st_ino == inode
    except OSError:
        return False
