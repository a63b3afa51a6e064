"""Clients that ask for large answers and do not read them."""

import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import cast
from tests.web_process import web_process

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

THREADS = 64
# More than the system keeps of an answer.
ANSWER_BYTES = 6_000_000
STATEMENT = json.dumps({"query": f"SELECT repeat('x', {ANSWER_BYTES})"})


def test_an_organization_that_does_not_read_its_answers_leaves_threads_to_others(
    databases: None, tmp_path: Path
) -> None:
    alice = {"email": "alice@example.com", "password": cast.PASSWORD}
    cast.member(cast.organization(), alice["email"], password=cast.PASSWORD)
    with web_process(tmp_path, ZWEB_WORKERS="1") as web, ExitStack() as stack:
        token = web.ask("POST", "/v1/auth/login", alice)["access_token"]
        web.ask("POST", "/v1/sql", {"query": "SELECT 1"}, token)
        head = (
            "POST /v1/sql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: {len(STATEMENT)}\r\n\r\n{STATEMENT}"
        )
        clients: list[socket.socket] = []
        for _ in range(THREADS + 6):
            client = socket.create_connection(("127.0.0.1", web.port), timeout=30)
            stack.enter_context(client)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(head.encode())
            assert client.recv(15) == b"HTTP/1.1 200 OK"
            clients.append(client)

        assert web.ask("GET", "/healthz")
        # The last one is not cut off.
        assert _has_whole_answer(clients[-1])
        assert not _has_whole_answer(clients[0])


def _has_whole_answer(client: socket.socket) -> bool:
    received = 0
    try:
        while received < ANSWER_BYTES and (piece := client.recv(2**20)):
            received += len(piece)
    except ConnectionResetError:
        return False
    return received >= ANSWER_BYTES
