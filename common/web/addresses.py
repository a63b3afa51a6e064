"""The client address of a request, as far as it can be trusted."""

import ipaddress
from typing import Final

from django.conf import settings
from django.http import HttpRequest

LOCAL: Final = frozenset({"127.0.0.1", "::/64", "unknown"})


def client_address(request: HttpRequest) -> str:
    """Return the client's IP address, or ``unknown`` on a socket without addresses.

    ``X-Forwarded-For`` is trusted only as far as the platform's own proxies have written it: with N
    trusted proxies (ZTRUSTED_PROXY_COUNT) the address is the Nth from the right. The client can set
    the entries further left.
    """
    peer = str(request.META.get("REMOTE_ADDR") or "")
    proxies = settings.TRUSTED_PROXY_COUNT
    hops = [hop.strip() for hop in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    claimed = hops[-proxies] if 0 < proxies <= len(hops) else peer
    return _canonical(claimed) or _canonical(peer) or "unknown"


def is_from_this_machine(request: HttpRequest) -> bool:
    """True if the client itself is on loopback, and not only a proxy."""
    address = client_address(request)
    # Behind an undeclared proxy, all requests seem to come from loopback.
    forwarded = "X-Forwarded-For" in request.headers and not settings.TRUSTED_PROXY_COUNT
    return address != "unknown" and ipaddress.ip_address(address).is_loopback and not forwarded


def subscriber_network(address: str) -> str:
    """Return the subscriber's network, the unit of rate limits: an IPv4 address or an IPv6 /64."""
    canonical = _canonical(address)
    if ":" not in canonical:
        return canonical or "unknown"
    return str(ipaddress.IPv6Network((canonical, 64), strict=False))


def share_network(request: HttpRequest) -> str | None:
    """Return the client's network as the key of a share; None for an address of this machine.

    A proxy that was not declared may be on this machine, with many clients behind it.
    """
    network = subscriber_network(client_address(request))
    return None if network in LOCAL else network


def _canonical(text: str) -> str:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
