"""The worker's port: Granian in the worker's own event loop, with limits for hostile clients."""

import asyncio
import os
import resource
import socket
import stat
from contextlib import suppress
from typing import Any, Final

from granian.constants import HTTPModes
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from edgecache.worker.options import Options

HEAD_LIMIT_BYTES: Final = 16_384
# Someone who plays a film may take nothing for a while.
TAKING_FACTOR: Final = 4
BACKLOG: Final = 1024
READY_TIMEOUT_S: Final = 10.0
POLL_S: Final = 0.01
FILES_EACH: Final = 4
LOGGING: Final[dict[str, Any]] = {"formatters": {}, "handlers": {}, "loggers": {}}


class PortTaken(Exception):
    """Something else listens there."""


class Listening:
    """The server, from ready to stopped."""

    def __init__(self, options: Options, app: Any) -> None:
        """Listen on nothing yet."""
        self._address = (options.host, options.port)
        self._timeout_ms = int(options.client_timeout_s * 1000)
        self._server = Server(
            app,
            address=options.host,
            port=options.port,
            http=HTTPModes.http1,
            websockets=False,
            backlog=BACKLOG,
            backpressure=options.max_connections,
            http1_settings=HTTP1Settings(
                header_read_timeout=self._timeout_ms, max_buffer_size=HEAD_LIMIT_BYTES
            ),
            log_dictconfig=LOGGING,
            log_level=LogLevels.error,
            ssl_cert=options.tls_cert,
            ssl_key=options.tls_key,
        )
        self._task: asyncio.Task[None] | None = None
        _allow_files(options.max_connections * FILES_EACH + 256)

    async def start(self) -> None:
        """Listen. Raises PortTaken, OSError."""
        _check_is_free(self._address)
        self._task = asyncio.create_task(self._server.serve())
        async with asyncio.timeout(READY_TIMEOUT_S):
            while not _harden(self._address[1], TAKING_FACTOR * self._timeout_ms):
                if self._task.done():
                    await self._task
                await asyncio.sleep(POLL_S)

    async def wait(self) -> None:
        """Return when the server ended by itself, which it should not."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self, *, patience_s: float) -> bool:
        """Accept nothing more and finish what runs; give whether that was in time."""
        if self._task is None:
            return True
        self._server.stop()  # type: ignore[no-untyped-call] # Granian has no hint there
        _, late = await asyncio.wait([self._task], timeout=patience_s)
        return not late


def _check_is_free(address: tuple[str, int]) -> None:
    """Refuse a port that is taken: Granian would share it with whoever listens there."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            raise PortTaken(
                f"can't listen on {address[0]}:{address[1]}: {error.strerror}"
            ) from error


def _harden(port: int, stalled_ms: int) -> bool:
    """Have the kernel cut clients that acknowledge nothing for so long.

    Connections inherit it from the socket that listens. Gives whether it listens already.
    """
    is_found = False
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, not paths
        with suppress(OSError):
            # A copy of what is no socket would stay open, and closed end the inventory's locks.
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            sock = socket.socket(fileno=os.dup(int(name)))
            with sock:
                if _is_listening(sock, port):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stalled_ms)
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                    is_found = True
    return is_found


def _is_listening(sock: socket.socket, port: int) -> bool:
    is_tcp = sock.family in {socket.AF_INET, socket.AF_INET6}
    return (
        is_tcp
        and bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
        and sock.getsockname()[1] == port
    )


def _allow_files(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
