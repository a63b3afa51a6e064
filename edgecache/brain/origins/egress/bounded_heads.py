"""A connection whose peer may send only a limited number of bytes before a response begins.

httpcore's parser takes all interim responses (1xx) that have arrived in one iteration of the event
loop, so a flood of them would block the brain.
"""

import ssl
from collections.abc import Mapping
from typing import Any, Final

import httpcore

# Maximum head of a response, interim ones included. Parsing takes up to a microsecond a byte.
HEAD_LIMIT_BYTES: Final = 64 * 1024
# Read in one step, so that other requests get their turn.
HEAD_READ_BYTES: Final = 8 * 1024


class BoundedHeads(httpcore.AsyncNetworkStream):
    """A stream to a server. The reader of a response calls ``head_came`` after its head."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._waits_for_head = True
        self._head_bytes = 0

    def head_came(self) -> None:
        """Let the body be as long as it likes, until the next request."""
        self._waits_for_head = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's own signature
        """Read some bytes. Raises httpcore.RemoteProtocolError for a head that is too long."""
        if not self._waits_for_head:
            return await self._stream.read(max_bytes, timeout)
        if self._head_bytes >= HEAD_LIMIT_BYTES:
            raise httpcore.RemoteProtocolError("The head of the response is too long.")
        data = await self._stream.read(min(max_bytes, HEAD_READ_BYTES), timeout)
        self._head_bytes += len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's own signature
        self._waits_for_head, self._head_bytes = True, 0
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own signature
    ) -> httpcore.AsyncNetworkStream:
        """Return the same over TLS."""
        return BoundedHeads(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore knows of the connection.

        is_readable: True as well for bytes that have left the socket, but were not read here.
        """
        if info == "is_readable" and (self._has_queued() or self._has_decrypted()):
            return True
        return self._stream.get_extra_info(info)

    def _has_queued(self) -> bool:
        """True if anyio has more of the socket's bytes than it was asked for."""
        stream: Any = self._stream._stream  # type: ignore[attr-defined]  # noqa: SLF001 - has no name
        stream = getattr(stream, "transport_stream", stream)
        return bool(stream._protocol.read_queue)  # noqa: SLF001 - as above

    def _has_decrypted(self) -> bool:
        """True if TLS has bytes, or has ended. One of them is lost: the connection must end."""
        secured = self._stream.get_extra_info("ssl_object")
        if secured is None:
            return False
        try:
            secured.read(1)
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError:
            return True
        return True


def head_came(extensions: Mapping[str, Any]) -> None:
    """Note that the head of a response came. extensions: of the response."""
    stream = extensions.get("network_stream")
    if isinstance(stream, BoundedHeads):
        stream.head_came()
