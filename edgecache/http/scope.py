"""What a request says before its body."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

from edgecache.http.addresses import (
    FORWARDED_FOR,
    IpNetwork,
    client_behind,
    is_within,
    parse_address,
)
from edgecache.http.headers import Headers

FORWARDED_PROTO: Final = "x-forwarded-proto"
SCHEMES: Final = ("http", "https")
FORWARDED: Final = ("forwarded", "x-forwarded-for", "via", "x-real-ip")


class HttpScope(NamedTuple):
    """RSGI's scope, with what signatures and keys need beside it.

    raw_path: as in the request line, without the query. client: ``address:port``.
    """

    method: str
    raw_path: str
    query_string: str
    http_version: str
    headers: Headers
    client: str
    scheme: str = "http"

    @property
    def path(self) -> str:
        """Return the path decoded; bytes that are not UTF-8 become U+FFFD."""
        return unquote(self.raw_path)

    @property
    def has_body(self) -> bool:
        headers = self.headers
        return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers

    @property
    def authority(self) -> str:
        """Return the host that was asked for, with its port if it was named."""
        return self.headers.get("host")

    @property
    def client_address(self) -> str:
        """Return the peer's IP address."""
        return address_of(self.client)

    @property
    def is_local(self) -> bool:
        """True if the request comes from this machine itself, not through a proxy on it."""
        if any(name in self.headers for name in FORWARDED):
            return False
        address = parse_address(self.client_address)
        return address is not None and address.is_loopback


def address_of(client: str) -> str:
    """Return the IP address of ``address:port``."""
    return client.rpartition(":")[0].strip("[]")


class TrustedProxies:
    """Proxies whose X-Forwarded-For and X-Forwarded-Proto count."""

    def __init__(self, networks: Sequence[IpNetwork] = ()) -> None:
        self._networks = networks

    def client_of(self, scope: HttpScope) -> str:
        """Return the address of a request's client, behind these proxies."""
        return self.client_behind(scope.client_address, scope.headers)

    def client_behind(self, peer: str, headers: Headers) -> str:
        """Return the client of a connection's address, and of a request's headers."""
        forwarded = headers.get_all(FORWARDED_FOR) if self._networks else ()
        return client_behind(peer, forwarded, self._networks)

    def scheme_of(self, scope: HttpScope) -> str:
        """Return http or https, as the client asked one of these proxies, or this server."""
        if self._networks and self.include(scope.client_address):
            # Of several proxies the first one has the client's connection.
            said = scope.headers.get(FORWARDED_PROTO).partition(",")[0].strip().lower()
            if said in SCHEMES:
                return said
        return scope.scheme

    def include(self, peer: str) -> bool:
        """True if a connection's address is one of these."""
        address = parse_address(peer)
        return address is not None and is_within(address, self._networks)
