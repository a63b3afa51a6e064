"""What a connection does with the bytes that arrive."""

import socket
from unittest.mock import Mock

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]  # it has no types

from platform_site.web_server import connection
from platform_site.web_server.connection import Connection
from platform_site.web_server.framing import Progress, progress


def test_a_head_is_parsed_once_however_small_the_pieces_of_the_body_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parse = Mock(side_effect=progress)
    monkeypatch.setattr(connection, "progress", parse)
    server, client = socket.socketpair()
    with server, client:
        conn = Connection(Config(), server, "", "", on_close=lambda _: None)
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n")
        states = [conn.receive()]
        for _ in range(100):
            client.sendall(b"x")
            states.append(conn.receive())
    assert states == [Progress.PARTIAL] * 100 + [Progress.COMPLETE]
    assert parse.call_count == 2
