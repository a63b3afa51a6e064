"""Which certificates the brain believes when it calls somebody over TLS."""

import ssl
from functools import cache


@cache
def trusting(pem: str = "") -> ssl.SSLContext:
    """Return a client's context that trusts the machine's authorities, and those of the PEM text.

    Made once: to read the machine's takes tens of milliseconds, in which nobody is answered.
    """
    context = ssl.create_default_context()
    if pem:
        context.load_verify_locations(cadata=pem)
    return context
