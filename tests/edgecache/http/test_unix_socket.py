"""The server's Unix socket, beside its port."""

import asyncio
import socket
from pathlib import Path

import pytest

from edgecache.http.exchange import Exchange
from edgecache.http.scope import Scope
from edgecache.http.server import Server
from platform_site.embedded.errors import PortTakenError, StartError
from tests.edgecache.http.test_server import ask, serving
from tests.ports import free_port

REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"


async def say_who(scope: Scope, exchange: Exchange) -> None:
    """Answer with the client's address."""
    exchange.response_bytes(200, [], scope.client_address.encode())


async def ask_beside(path: Path) -> bytes:
    """Send the request to a path; give the answer."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(REQUEST)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


def names_in(folder: Path) -> list[str]:
    """Give the names of a folder's files."""
    return [each.name for each in folder.iterdir()]


async def test_both_answer_and_the_peer_is_on_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "objects.sock"
    async with serving(say_who, path=path) as port:
        for answer in (await ask(port, REQUEST), await ask_beside(path)):
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(b"\r\n\r\n127.0.0.1")
    with pytest.raises(ConnectionRefusedError):
        await ask_beside(path)


async def test_what_a_server_that_is_gone_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "objects.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with serving(say_who, path=path):
        assert (await ask_beside(path)).startswith(b"HTTP/1.1 200")
    assert names_in(tmp_path) == ["objects.sock"]


async def test_a_path_in_use_is_refused_and_stays_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "objects.sock"
    async with serving(say_who, path=path):
        with pytest.raises(PortTakenError, match="ZBRAIN_S3_SOCKET"):
            await Server(say_who, address="127.0.0.1", port=free_port(), path=path).serve()
        assert (await ask_beside(path)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("name", ["a-file", "no-folder/objects.sock"])
async def test_a_path_that_cannot_be_a_socket_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a-file").write_text("somebody's")
    server = Server(say_who, address="127.0.0.1", port=free_port(), path=tmp_path / name)
    with pytest.raises(StartError, match="ZBRAIN_S3_SOCKET"):
        await server.serve()
    assert (tmp_path / "a-file").read_text() == "somebody's"
