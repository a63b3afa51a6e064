"""TXT records, from the system's resolvers or those of ``settings.SERVER.dns_resolvers``."""

from typing import Final

import dns.exception
import dns.nameserver
import dns.resolver
from django.conf import settings

# For one resolver, and for the lookup as a whole.
TIMEOUT_S: Final = 1.5
TOTAL_S: Final = 3.0


class LookupFailed(Exception):
    """No resolver answered, so the record may or may not exist."""


def txt_records(name: str) -> list[str]:
    """Return the texts at a name; [] if the domain's name servers state that there are none.

    Raises LookupFailed.
    """
    resolver = dns.resolver.Resolver(configure=not settings.SERVER.dns_resolvers)
    if settings.SERVER.dns_resolvers:
        resolver.nameservers = [
            dns.nameserver.Do53Nameserver(address, port)
            for address, port in settings.SERVER.dns_resolvers
        ]
    resolver.timeout = TIMEOUT_S
    try:
        # With a final dot, so that no search domain of this machine is tried.
        answer = resolver.resolve(f"{name}.", "TXT", lifetime=TOTAL_S, search=False)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return []
    except (dns.exception.DNSException, OSError) as exc:
        raise LookupFailed from exc
    return [b"".join(row.strings).decode("ascii", "replace") for row in answer]
