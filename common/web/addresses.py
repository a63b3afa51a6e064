"""The client address of a request, as far as it can be trusted."""

import ipaddress
import re
from typing import Final

from django.conf import settings
from django.http import HttpRequest

# More proxies than there are in a row.
MAX_HOPS: Final = 16
# An address with a port, or in brackets: both are taken off.
_HOP: Final = re.compile(r"^(?:\[([^\]]*)\]|([0-9.]+))(?::[0-9]{1,5})?$")
LOCAL: Final = frozenset({"127.0.0.1", "::/64", "unknown"})


def client_address(request: HttpRequest) -> str:
    """Return the client's IP address, or ``unknown`` on a socket without addresses.

    Behind ZTRUSTED_PROXIES it is the rightmost address of ``X-Forwarded-For`` that is none of
    theirs: what a client has sent itself is to the left of what the proxies have added.
    """
    address = _canonical(str(request.META.get("REMOTE_ADDR") or ""))
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    for hop in reversed(forwarded.rsplit(",", MAX_HOPS)[-MAX_HOPS:]):
        found = _canonical(_HOP.sub(r"\1\2", hop.strip()))
        if not found or not _is_trusted(address):
            break
        address = found
    return address or "unknown"


def is_behind_proxy(request: HttpRequest) -> bool:
    """True if one of ZTRUSTED_PROXIES sent the request, for whichever client."""
    return _is_trusted(_canonical(str(request.META.get("REMOTE_ADDR") or "")))


def is_from_this_machine(request: HttpRequest) -> bool:
    """True if the client itself is on loopback, and not only a proxy."""
    address = client_address(request)
    # Behind an undeclared proxy, all requests seem to come from loopback.
    forwarded = "X-Forwarded-For" in request.headers and not is_behind_proxy(request)
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


def _is_trusted(text: str) -> bool:
    if not settings.TRUSTED_PROXIES or not text:
        return False
    address = ipaddress.ip_address(text)
    return any(
        address in network
        for network in settings.TRUSTED_PROXIES
        if network.version == address.version
    )


def _canonical(text: str) -> str:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
