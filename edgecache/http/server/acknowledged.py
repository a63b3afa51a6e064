"""How many bytes a client took: what its TCP has acknowledged, as the kernel counts it.

That is more honest than what was written to a socket. Without TLS it is exact; with TLS its few
records are counted as body, up to the body's length. Sockets are duplicated while watched, so that
the count can be read after the connection was closed.
The kernel also says what it took itself (``taken_by_kernel``).
Source: include/uapi/linux/tcp.h (struct tcp_info), RFC 4898 (tcpEStatsAppHCThruOctetsAcked).
"""

import asyncio
import fcntl
import os
import socket
import struct
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from edgecache.http.exchange import Exchange

INFO_BYTES: Final = 216
STATE_AT: Final = 0
ACKNOWLEDGED_AT: Final = 120
NOT_SENT_AT: Final = 144
SENT_AT: Final = 200
CLOSED: Final = 7
# A client that takes nothing for this long is given up.
STALLED_S: Final = 60.0
# A connection without answers stays watched for the next one.
IDLE_S: Final = 1.0


@dataclass(slots=True)
class Transfer:
    """A response in transit. first: the acknowledged bytes when all before it has arrived."""

    exchange: Exchange
    first: int
    length: int
    done: Callable[[int], None]

    def received_bytes(self, acknowledged: int) -> int:
        """Return how many bytes of the body the client has."""
        received = acknowledged - self.first - self.exchange.head_bytes
        return min(self.length, max(0, received)) if self.exchange.is_answered else 0


@dataclass(slots=True)
class WatchedConnection:
    """A client's connection with responses in transit."""

    sock: socket.socket
    acknowledged: int
    grew_at: float
    transfers: list[Transfer] = field(default_factory=list)


class AcknowledgementWatch:
    """Watches responses until the client has them or disconnects. Not thread-safe."""

    def __init__(self, tick: Callable[[], float] = time.monotonic) -> None:
        self._tick = tick
        self._watched: dict[asyncio.Transport, WatchedConnection] = {}

    def __len__(self) -> int:
        """Return the number of connections that are watched."""
        return len(self._watched)

    @property
    def transfers(self) -> int:
        """The number of responses in transit."""
        return sum(len(watched.transfers) for watched in self._watched.values())

    def watch(self, exchange: Exchange, length: int, done: Callable[[int], None]) -> None:
        """Call ``done`` with the bytes of the body that the client took, once that is known.

        Call it before the answer. length: of the body.
        """
        transport = exchange.transport
        if transport.is_closing():
            done(0)
            return
        watched = self._watched.get(transport)
        if watched is None:
            watched = WatchedConnection(_duplicate(transport), 0, 0.0)
            self._watched[transport] = watched
        watched.acknowledged, _ = _info(watched.sock)
        watched.grew_at = self._tick()
        first = watched.acknowledged + _queued(watched.sock) + transport.get_write_buffer_size()
        watched.transfers.append(Transfer(exchange, first, length, done))

    def poll(self) -> None:
        """Check every connection once; call it a few times a second."""
        for transport, watched in list(self._watched.items()):
            if self._poll_connection(transport, watched) or self._is_idle(watched):
                self._end(transport, watched)

    def finish_all(self) -> None:
        """Count what was taken up to now, and watch no longer."""
        for transport, watched in list(self._watched.items()):
            watched.acknowledged, _ = _info(watched.sock)
            self._end(transport, watched)

    def _is_idle(self, watched: WatchedConnection) -> bool:
        return not watched.transfers and self._tick() - watched.grew_at > IDLE_S

    def _poll_connection(self, transport: asyncio.Transport, watched: WatchedConnection) -> bool:
        """Count what was taken; True if the connection is over."""
        acknowledged, state = _info(watched.sock)
        now = self._tick()
        if acknowledged != watched.acknowledged:
            watched.acknowledged, watched.grew_at = acknowledged, now
        for transfer in list(watched.transfers):
            if (
                transfer.received_bytes(acknowledged) == transfer.length
                and transfer.exchange.is_answered
            ):
                watched.transfers.remove(transfer)
                transfer.done(transfer.length)
        if transport.is_closing() and not transport.get_write_buffer_size():
            # The duplicate keeps the connection open: its client must not wait for its end.
            with suppress(OSError):
                watched.sock.shutdown(socket.SHUT_WR)
            if not watched.transfers:
                return True
        return state == CLOSED or now - watched.grew_at > STALLED_S

    def _end(self, transport: asyncio.Transport, watched: WatchedConnection) -> None:
        del self._watched[transport]
        watched.sock.close()
        for transfer in watched.transfers:
            transfer.done(transfer.received_bytes(watched.acknowledged))


def taken_by_kernel(sock: socket.socket) -> int | None:
    """Return the total bytes that a connection's kernel has taken; None if it is not TCP.

    That is known even after a reset, when the transport's buffer is not.
    """
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
        (not_sent,) = struct.unpack_from("=I", raw, NOT_SENT_AT)
        sent, again = struct.unpack_from("=QQ", raw, SENT_AT)
    except (OSError, struct.error):
        # A Unix socket, or a kernel before Linux 4.19.
        return None
    return int(sent - again + not_sent)


def _duplicate(transport: asyncio.Transport) -> socket.socket:
    client = transport.get_extra_info("socket")
    return socket.socket(client.family, client.type, client.proto, fileno=os.dup(client.fileno()))


def _info(sock: socket.socket) -> tuple[int, int]:
    """Return the acknowledged bytes and the state of a connection."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
    (acknowledged,) = struct.unpack_from("=Q", raw, ACKNOWLEDGED_AT)
    return acknowledged, raw[STATE_AT]


def _queued(sock: socket.socket) -> int:
    """Return the bytes that were written and are not acknowledged yet (SIOCOUTQ)."""
    raw = fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0\0\0\0")
    return int.from_bytes(raw, "little")
