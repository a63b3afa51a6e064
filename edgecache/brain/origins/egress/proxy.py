"""A CONNECT proxy on loopback, for a client without another hook (obstore).

It requires the brain's own password, and connects only to addresses that the guard has checked.
"""

import asyncio
import base64
import contextlib
import hmac
import re
import secrets
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import OriginError, OriginForbidden
from edgecache.brain.origins.egress.guard import Guard

log = structlog.get_logger(__name__)

HEAD_LIMIT_BYTES: Final = 16_384
HEAD_TIMEOUT_S: Final = 5.0
DIAL_TIMEOUT_S: Final = 5.0
PIECE_BYTES: Final = 256 * 1024
TARGET: Final = re.compile(
    r"CONNECT (?:\[([0-9A-Fa-f:.]+)\]|([^\s:/]{1,255})):([0-9]{1,5}) HTTP/1\.1"
)

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class StreamServer:
    """Serves each connection with a handler, and closes it after, even one that comes at the stop.

    ``asyncio.start_server`` runs its own task for each connection, and one that is cancelled before
    it began never reaches the ``finally`` that would have closed it. limit: of a line, in bytes.
    """

    def __init__(
        self, handler: Handler, *, limit: int = 2**16, tls: ssl.SSLContext | None = None
    ) -> None:
        self._handler = handler
        self._limit = limit
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks = BackgroundTasks()
        self._is_stopped = False

    @property
    def port(self) -> int:
        """Return the port. Raises RuntimeError before ``start``."""
        if self._server is None:
            raise RuntimeError("the server is not open")
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, host: str) -> None:
        """Listen on a free port. Raises OSError."""
        self._server = await asyncio.start_server(
            self._accept, host, 0, limit=self._limit, ssl=self._tls
        )

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        self._is_stopped = True
        if self._server is not None:
            self._server.close()
        await self._tasks.stop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_stopped:
            writer.close()
        else:
            task = self._tasks.add(self._handler(reader, writer))
            task.add_done_callback(lambda _: writer.close())


class Proxy:
    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._password = secrets.token_urlsafe(24)
        self._server = StreamServer(self._serve, limit=HEAD_LIMIT_BYTES)

    def url(self, owner: int) -> str:
        """Return the address with the password. owner: the organization, sent as the user.

        Raises RuntimeError before ``start``.
        """
        return f"http://{owner}:{self._password}@127.0.0.1:{self._server.port}"

    async def start(self) -> None:
        """Listen on a free port."""
        await self._server.start("127.0.0.1")

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        await self._server.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await self._connect(reader, writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_TIMEOUT_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.split("\r\n")
        target = TARGET.fullmatch(line)
        if target is None:
            return await _refuse(writer, "405 Method Not Allowed")
        owner = self._owner(fields)
        if owner is None:
            return await _refuse(writer, "407 Proxy Authentication Required")
        try:
            upstream = await self._dial(target[1] or target[2], int(target[3]), owner)
        except OriginForbidden:
            log.warning("origin_address_refused")
            return await _refuse(writer, "403 Forbidden")
        except (OriginError, OSError):
            return await _refuse(writer, "502 Bad Gateway")
        # From here on the upstream connection is closed in any case.
        with contextlib.closing(upstream[1]):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
            await _join((reader, writer), upstream)
        return None

    def _owner(self, fields: list[str]) -> int | None:
        """Return the organization for which one of our clients connects; None for other clients."""
        for field in fields:
            name, _, value = field.partition(":")
            if name.strip().lower() == "proxy-authorization":
                with contextlib.suppress(ValueError):
                    pair = base64.b64decode(value.strip().removeprefix("Basic "), validate=True)
                    user, _, password = pair.partition(b":")
                    if hmac.compare_digest(password, self._password.encode()):
                        return int(user)
        return None

    async def _dial(
        self, host: str, port: int, owner: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        failure: OSError = OSError("no address")
        for address in await self._guard.resolve(host, port, owner=owner):
            try:
                async with asyncio.timeout(DIAL_TIMEOUT_S):
                    return await asyncio.open_connection(address, port)
            except OSError as exc:
                failure = exc
        raise failure


async def _refuse(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()


async def _join(
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    tasks = [
        asyncio.create_task(_pump(client[0], upstream[1])),
        asyncio.create_task(_pump(upstream[0], client[1])),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
