"""IP addresses of clients and servers."""

import ipaddress
from functools import lru_cache
from typing import Final

# Called for each request.
NETWORKS_KEPT: Final = 4096
# What one customer of a provider has, or can rent cheaply.
PREFIX_BITS: Final = {4: 24, 6: 56}

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str) -> IpAddress | None:
    """Return an address, None for any other text.

    An IPv4 address mapped into IPv6 becomes IPv4; a scope (``%eth0``) is removed.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_public(address: IpAddress) -> bool:
    """True if it is one of the Internet's, of one host."""
    return address.is_global and not address.is_multicast


@lru_cache(NETWORKS_KEPT)
def network_of(text: str) -> str:
    """Return what one client may choose its addresses from: of IPv6 it is a /64."""
    address = parse_address(text.strip("[]"))
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return text if address is None else str(address)


@lru_cache(NETWORKS_KEPT)
def prefix_of(text: str) -> str:
    """Return the /24 or /56 that an address or a narrower network belongs to, '' for neither."""
    address = parse_address(text.partition("/")[0])
    if address is None:
        return ""
    return str(ipaddress.ip_network((address, PREFIX_BITS[address.version]), strict=False))
