"""IP addresses of clients and servers."""

import ipaddress
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

FORWARDED_FOR: Final = "x-forwarded-for"
# More proxies than there are in a row.
MAX_HOPS: Final = 16
# An address with a port, or in brackets: both are taken off.
_HOP: Final = re.compile(r"^(?:\[([^\]]*)\]|([0-9.]+))(?::[0-9]{1,5})?$")
# Outside of it are NAT64's addresses (64:ff9b::/96), among others.
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
_SIX_TO_FOUR: Final = ipaddress.IPv6Network("2002::/16")
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


def client_behind(peer: str, forwarded: Sequence[str], trusted: Sequence[IpNetwork]) -> str:
    """Return a client's address: of trusted proxies the one that X-Forwarded-For gives.

    peer: the connection's address. forwarded: each X-Forwarded-For, in order. What a client has
    sent itself is to the left of what the proxies have added, so the rightmost address that is no
    trusted proxy's counts; text that is no address ends the search.
    """
    address = parse_address(peer)
    if not forwarded or address is None or not is_within(address, trusted):
        return peer
    for hop in reversed(",".join(forwarded).rsplit(",", MAX_HOPS)[-MAX_HOPS:]):
        found = parse_address(_HOP.sub(r"\1\2", hop.strip()))
        if found is None:
            break
        address = found
        if not is_within(address, trusted):
            break
    return str(address)


def is_within(address: IpAddress, networks: Sequence[IpNetwork]) -> bool:
    """True if an address belongs to one of these networks."""
    return any(address in network for network in networks if network.version == address.version)


def is_public(address: IpAddress) -> bool:
    """True if it is one of the Internet's, of one host; not of IPv6 if it may embed IPv4."""
    if isinstance(address, ipaddress.IPv6Address):
        is_plain = address in _GLOBAL_UNICAST and address not in _SIX_TO_FOUR
        return is_plain and address.is_global
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
