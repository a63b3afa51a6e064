"""Limits of one client's resources in a web server process, by its address."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from common.fair_limiter import FairLimiter
from common.web.addresses import address_behind, subscriber_network
from platform_site.web_server.connection import RECEIVE_BYTES, Connection
from platform_site.web_server.framing import forwarded_for

# Memory for incomplete requests, in addition to RECEIVE_BYTES of each.
RECEIVING_LIMIT_BYTES: Final = 64 * 2**20
# An undeclared proxy on this machine may have many clients behind it.
LOCAL: Final = frozenset({"127.0.0.1", "::1", "unknown"})


class ClientShares:
    """Shares of connections, of slots for large bodies, and of memory for incomplete requests.

    A client is an IPv4 address or an IPv6 /64. Behind declared proxies each connection is a
    proxy's, so only the resources of requests are shared, by the address in the proxy's header.
    """

    def __init__(self, *, connections: int, streams: int, trusted_proxies: int) -> None:
        self._trusted_proxies = trusted_proxies
        self._connections = FairLimiter(connections)
        self._streams = FairLimiter(streams)
        self._memory = FairLimiter(RECEIVING_LIMIT_BYTES)
        self._of_address: dict[str, OrderedDict[Connection, None]] = {}

    # --- connections ----------------------------------------------------------------------------

    def try_open(self, conn: Connection) -> bool:
        """Count a new connection; False if its address has reached its share."""
        key = self._key_of_connection(conn)
        if key is None:
            return True
        if not self._connections.try_take(key):
            return False
        self._count(conn, key)
        return True

    def replace(self, conn: Connection) -> None:
        """Count a new connection that replaces a closed one of the same address."""
        key = self._key_of_connection(conn)
        if key is not None:
            self._connections.take(key)
            self._count(conn, key)

    def _count(self, conn: Connection, key: str) -> None:
        self._of_address.setdefault(key, OrderedDict())[conn] = None
        conn.counted_as = key

    def opened_beside(self, conn: Connection) -> Iterator[Connection]:
        """Yield the connections of the same address, the oldest first."""
        return iter(tuple(self._of_address.get(subscriber_network(_peer(conn)), ())))

    def closed(self, conn: Connection) -> None:
        """Remove a closed connection and its resources; safe to repeat."""
        self.end_stream(conn)
        self.release_memory(conn)
        key, conn.counted_as = conn.counted_as, None
        if key is None:
            return
        self._connections.give_back(key)
        del self._of_address[key][conn]
        if not self._of_address[key]:
            del self._of_address[key]

    # --- requests -------------------------------------------------------------------------------

    def try_stream(self, conn: Connection) -> bool:
        """Take a slot for a body that a thread reads; False if it is reserved for others."""
        key = self.key_of_request(conn)
        if not self._streams.try_take(key):
            return False
        conn.is_stream, conn.stream_key = True, key
        return True

    def end_stream(self, conn: Connection) -> None:
        """Release the slot of a large body, if the request had one."""
        if conn.is_stream:
            conn.is_stream = False
            self._streams.give_back(conn.stream_key)

    def try_receive(self, conn: Connection) -> bool:
        """Take memory for received bytes; False if it is reserved for others."""
        size = len(conn.received)
        if size <= RECEIVE_BYTES:
            return True
        if not conn.held_bytes:
            conn.memory_key = self.key_of_request(conn)
        if not self._memory.try_take(conn.memory_key, size - conn.held_bytes):
            return False
        conn.held_bytes = size
        return True

    def release_memory(self, conn: Connection) -> None:
        """Release the memory of a request that a thread now processes."""
        size, conn.held_bytes = conn.held_bytes, 0
        if size:
            self._memory.give_back(conn.memory_key, size)

    def key_of_request(self, conn: Connection) -> str | None:
        """Return the share key of a request, once its head was received; None for no share."""
        claimed = forwarded_for(conn.received) if self._trusted_proxies else ""
        return self._key(
            address_behind(_peer(conn), claimed, trusted_proxies=self._trusted_proxies)
        )

    # --- addresses ------------------------------------------------------------------------------

    def _key_of_connection(self, conn: Connection) -> str | None:
        return None if self._trusted_proxies else self._key(_peer(conn))

    def _key(self, address: str) -> str | None:
        """Return the share key of an address; None for a client without a share."""
        network = subscriber_network(address)
        return None if network in LOCAL else network


def _peer(conn: Connection) -> str:
    """Return the address of a connection; '' for a Unix socket's."""
    return str(conn.client[0]) if isinstance(conn.client, tuple) else ""
