"""Whether the client of a request is still there."""

import socket
from collections.abc import Iterator

import pytest

from common.web import client_presence


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return the server's and the client's end of a connection that is answered to."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        client_presence.set_client_socket(ours)
        yield ours, theirs
        client_presence.set_client_socket(None)


def test_a_client_is_gone_when_it_closes(ends: tuple[socket.socket, socket.socket]) -> None:
    assert not client_presence.is_gone()
    ends[1].close()
    assert client_presence.is_gone()


def test_a_client_is_gone_when_this_server_closes(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ends[0].close()
    assert client_presence.is_gone()
