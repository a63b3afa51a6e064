"""The writing side of a client's connection: back-pressure, and files by the kernel."""

import asyncio

from edgecache.http.exchange import ClientGone
from edgecache.http.files import FileBody, FileTransfer
from edgecache.http.server.limits import NEVER, ServerLimits


class ResponseWriter(asyncio.Protocol):
    """Writes responses to one client, which has a limited time to take them."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, limits: ServerLimits, *, scheme: str
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._scheme = scheme
        self._transport: asyncio.Transport
        # Until when the client must have taken what was written.
        self._take_by = NEVER
        self._is_paused = False
        self._is_closing = False
        self._drained: asyncio.Future[None] | None = None

    def pause_writing(self) -> None:
        """Hold the answer back: the client does not take it."""
        self._is_paused = True
        self._take_by = self._loop.time() + self._limits.take_timeout_s

    def resume_writing(self) -> None:
        """Continue: the client took enough."""
        self._is_paused = False
        self._take_by = NEVER
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def write(self, data: bytes | bytearray) -> None:
        self._transport.write(data)

    async def drain(self) -> None:
        """Wait while the client has not taken enough. Raises ClientGone."""
        if self._is_paused and not self._is_closing:
            self._drained = self._loop.create_future()
            await self._drained
        if self._is_closing:
            raise ClientGone

    @property
    def transport(self) -> asyncio.Transport:
        return self._transport

    async def send_file(self, head: bytes, body: FileBody) -> None:
        """Send a head and a file; ``body.sent`` counts. Raises ClientGone."""
        if self._scheme == "https":
            await self._copy_file(head, body)
            return
        # The kernel's turn comes after all that is still to be written.
        self._transport.set_write_buffer_limits(high=0)
        await self.drain()
        self._transport.set_write_buffer_limits(high=self._limits.write_high_bytes)
        transfer = FileTransfer(self._transport.get_extra_info("socket"), head, body)
        try:
            await transfer.run(self._note_stall)
        except OSError as error:
            self.cut()
            raise ClientGone from error

    async def _copy_file(self, head: bytes, body: FileBody) -> None:
        """Send a file through Python: TLS needs its bytes."""
        self.write(head)
        while body.sent < body.length:
            piece = await body.in_thread(body.piece, body.sent)
            self.write(piece)
            body.sent += len(piece)
            await self.drain()

    def _note_stall(self, is_stalled: bool) -> None:
        wait_s = self._limits.take_timeout_s if is_stalled else NEVER
        self._take_by = self._loop.time() + wait_s

    def cut(self) -> None:
        self._is_closing = True
        self._transport.abort()
