"""Whether the client of a request is still there."""

import socket
from collections.abc import Iterator

import pytest

from platform_site.lib.web import clients


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return the server's and the client's end of a connection that is answered to."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        clients.answer_to(ours)
        yield ours, theirs
        clients.answer_to(None)


def test_a_client_is_gone_when_it_closes(ends: tuple[socket.socket, socket.socket]) -> None:
    assert not clients.is_gone()
    ends[1].close()
    assert clients.is_gone()


def test_a_client_is_gone_when_this_server_closes(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ends[0].close()
    assert clients.is_gone()
