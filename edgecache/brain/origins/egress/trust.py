"""Trusted certificate authorities for outgoing TLS."""

import ssl
from functools import cache


@cache
def trusting(pem: str = "") -> ssl.SSLContext:
    """Return a client's context that trusts the machine's authorities, and those of the PEM text.

    Made once: reading the machine's takes tens of milliseconds, which block the event loop.
    """
    context = ssl.create_default_context()
    if pem:
        context.load_verify_locations(cadata=pem)
    return context
