"""Connections to the brain and to other workers: plain ``http.client``, which is the leanest.

A redirect is never followed, and environment variables for proxies mean nothing here.
"""

import http.client
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

# For connecting, and between any two pieces of a response.
TIMEOUT_S: Final = 10.0

Failures: Final = (OSError, http.client.HTTPException)


def connect(base_url: str, ca: Path | None = None) -> http.client.HTTPConnection:
    """Return a connection that opens with its first request. ca: trust these certificates alone."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        return _secure(host, parts.port, ca)
    return http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S)


def _secure(host: str, port: int | None, ca: Path | None) -> http.client.HTTPConnection:
    import ssl  # noqa: PLC0415 - megabytes that a worker without https does not need

    context = ssl.create_default_context(cafile=str(ca) if ca else None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
