"""Connections to origins over HTTP, each to an address that the guard has checked."""

import ssl
from collections.abc import Iterable
from typing import Final

import httpcore

from edgecache.brain.origins.egress.bounded_heads import BoundedHeads
from edgecache.brain.origins.egress.guard import Resolve

# Each waits for an answer; how many requests an origin gets at once is decided before.
CONNECTIONS: Final = 1024
KEPT: Final = 16
KEPT_S: Final = 15.0


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects for httpcore. TLS still checks the certificate against the name."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._dialler = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that answers.

        Raises OriginForbidden, OriginFailed, OriginTimeout, and httpcore's errors.
        """
        failure: httpcore.ConnectError | httpcore.ConnectTimeout = httpcore.ConnectError()
        for address in await self._resolve(host, port):
            try:
                stream = await self._dialler.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
                return BoundedHeads(stream)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                failure = exc
        raise failure

    async def sleep(self, seconds: float) -> None:
        """Wait between httpcore's attempts."""
        await self._dialler.sleep(seconds)


def open_pool(resolve: Resolve, trust: ssl.SSLContext) -> httpcore.AsyncConnectionPool:
    """Return a pool of connections for one origin."""
    return httpcore.AsyncConnectionPool(
        ssl_context=trust,
        max_connections=CONNECTIONS,
        max_keepalive_connections=KEPT,
        keepalive_expiry=KEPT_S,
        network_backend=GuardedBackend(resolve),
    )
