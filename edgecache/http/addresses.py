"""IP addresses of clients and servers."""

import ipaddress

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str) -> IpAddress | None:
    """Read an address; None for anything else.

    One of IPv4 that is mapped into IPv6 is the IPv4 one; a scope (``%eth0``) is left out.
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
