"""The addresses that the platform may connect to if a tenant chose the name."""

import ipaddress
from collections.abc import Sequence
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

WEB_PORTS: Final = frozenset({80, 443})
FIRST_FREE_PORT: Final = 1024

# Source: IANA's registries of special-purpose addresses, plus multicast and reserved ones.
REFUSED_V4: Final = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Only global unicast is allowed, so mapped, compatible, NAT64, local and multicast addresses need
# no entry; within it, networks that embed IPv4 addresses or are not routed are refused.
GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
REFUSED_V6: Final = tuple(
    ipaddress.IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
# Cloud metadata services: refused even if private addresses are allowed.
LINK_LOCAL: Final = (
    ipaddress.IPv4Network("169.254.0.0/16"),
    ipaddress.IPv6Network("fe80::/10"),
    ipaddress.IPv6Network("::ffff:169.254.0.0/112"),
)


def is_port_allowed(port: int, *, allows_private: bool) -> bool:
    """True for the ports of HTTP and HTTPS, and for ports above the system services."""
    return allows_private or port in WEB_PORTS or port >= FIRST_FREE_PORT


def is_allowed(address: Address, *, allows_private: bool, refused: Sequence[Network] = ()) -> bool:
    """True if a tenant's name may resolve to this address.

    allows_private: allow loopback and private addresses, for development and tests. refused:
    further networks that the installation refuses.
    """
    if _is_in(address, LINK_LOCAL) or _is_in(address, refused):
        return False
    if allows_private:
        return True
    if isinstance(address, ipaddress.IPv4Address):
        return not _is_in(address, REFUSED_V4)
    return address in GLOBAL_V6 and not _is_in(address, REFUSED_V6)


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
