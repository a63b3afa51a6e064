"""The brain's ports, and the Unix socket of the object API."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from common.machine.errors import PortTakenError, StartError
from edgecache.brain.conf.brain import BrainSettings, Listener
from edgecache.brain.process.listeners import Listeners, port_server
from edgecache.brain.process.sockets import open_sockets
from edgecache.http.exchange import Exchange
from edgecache.http.scope import HttpScope
from edgecache.runtime.turns import LoopTurns
from tests.edgecache.http.support import ask
from tests.ports import free_port

REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"


async def client_address(scope: HttpScope, exchange: Exchange) -> None:
    """Respond with the client's address."""
    exchange.response_bytes(200, [], scope.client_address.encode())


def chosen(path: Path | None = None, *, port: int = 0) -> BrainSettings:
    """Return settings with free ports, and a path beside the object API's."""

    def listener(port_setting: str, port: int = 0) -> Listener:
        return Listener("127.0.0.1", port or free_port(), port_setting)

    return replace(
        settings.BRAIN,
        internal=listener("ZBRAIN_PORT"),
        workers=listener("ZBRAIN_WORKER_PORT"),
        s3=listener("ZBRAIN_S3_PORT", port),
        s3_socket=path,
    )


@asynccontextmanager
async def listening(path: Path | None = None) -> AsyncIterator[int]:
    """Serve on a free port and a path; yield the port."""
    rows = chosen(path)
    sockets = open_sockets(rows, {})
    listeners = Listeners({"objects": port_server(client_address, rows.s3, LoopTurns())})
    await listeners.start(sockets)
    try:
        yield rows.s3.port
    finally:
        await listeners.stop(timeout_s=5)
        for sock in sockets.values():
            sock.close()


async def ask_path(path: Path) -> bytes:
    """Send the request to a path; return the answer."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(REQUEST)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


def names_in(folder: Path) -> list[str]:
    """Return the names of a folder's files."""
    return [each.name for each in folder.iterdir()]


async def test_the_port_and_the_socket_respond_and_socket_clients_are_local(tmp_path: Path) -> None:
    path = tmp_path / "objects.sock"
    async with listening(path) as port:
        for answer in (await ask(port, REQUEST), await ask_path(path)):
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(b"\r\n\r\n127.0.0.1")
    with pytest.raises(ConnectionRefusedError):
        await ask_path(path)


async def test_the_socket_of_a_dead_server_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "objects.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with listening(path):
        assert (await ask_path(path)).startswith(b"HTTP/1.1 200")
    assert names_in(tmp_path) == ["objects.sock"]


async def test_a_socket_in_use_is_refused_and_keeps_its_server(tmp_path: Path) -> None:
    path = tmp_path / "objects.sock"
    async with listening(path):
        with pytest.raises(PortTakenError, match="ZBRAIN_S3_SOCKET"):
            open_sockets(chosen(path), {})
        assert (await ask_path(path)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("name", ["a-file", "no-folder/objects.sock"])
def test_an_impossible_socket_path_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a-file").write_text("of another program")
    with pytest.raises(StartError, match="ZBRAIN_S3_SOCKET"):
        open_sockets(chosen(tmp_path / name), {})
    assert (tmp_path / "a-file").read_text() == "of another program"


async def test_a_port_in_use_is_refused_with_its_setting() -> None:
    async with listening() as port:
        with pytest.raises(PortTakenError, match="ZBRAIN_S3_PORT"):
            open_sockets(chosen(port=port), {})
