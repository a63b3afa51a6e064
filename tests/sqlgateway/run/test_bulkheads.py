"""One organization's slow statements on a whole web server, and everybody else."""

import http.client
import json
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from tests import cast
from tests.sqlgateway import support
from tests.waiting import wait_until
from tests.web_process import Web, call, web_process

pytestmark = pytest.mark.slow

GONE, STAYING = 48, 12
SLOW = {"query": "SELECT pg_sleep(29)"}
# Longer than any of it takes beside other tests, and shorter than the slow statements.
LIMIT_S = 20.0


@contextmanager
def _slow_clients(web: Web, token: str, count: int) -> Iterator[list[socket.socket]]:
    """Connect clients that have each sent a slow statement."""
    body = json.dumps(SLOW).encode()
    head = (
        f"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", web.port), timeout=LIMIT_S))
            for _ in range(count)
        ]
        for client in clients:
            client.sendall(head.encode() + body)
        yield clients


def _unanswered(clients: list[socket.socket]) -> int:
    return len(clients) - len(select.select(clients, [], [], 0)[0])


def _signed_in(web: Web, name: str) -> str:
    """Sign a user in; return the access token."""
    body = {"email": f"{name}@example.com", "password": cast.PASSWORD}
    return str(web.ask("POST", "/v1/auth/login", body)["access_token"])


def _page(web: Web, path: str) -> str:
    with closing(http.client.HTTPConnection("127.0.0.1", web.port, timeout=LIMIT_S)) as client:
        client.request("GET", path, headers={"Host": f"localhost:{web.port}"})
        answer = client.getresponse()
        text = answer.read().decode()
    assert answer.status == 200, text
    return text


@pytest.mark.django_db(transaction=True)
def test_one_organization_s_slow_statements_stop_nobody(tmp_path: Path, databases: None) -> None:
    greedy, other = cast.organization(), cast.organization("Charlie's")
    cast.member(greedy, "alice@example.com", password=cast.PASSWORD)
    cast.member(other, "charlie@example.com", password=cast.PASSWORD)
    with web_process(tmp_path) as web:
        alice, charlie = (_signed_in(web, name) for name in ("alice", "charlie"))
        for token in (alice, charlie):
            web.ask("POST", "/v1/sql", {"query": "SELECT 1"}, token)
        greedy_caller = support.caller(greedy)

        with _slow_clients(web, alice, STAYING) as staying:
            wait_until(lambda: support.backends_of(greedy_caller), timeout_s=LIMIT_S)
            with _slow_clients(web, alice, GONE):
                pass  # They hang up at once.

            # On connections of their own, so that both processes are asked.
            for _ in range(4):
                assert web.ask("GET", "/readyz")["status"] == "ok"
                assert web.ask("GET", "/v1/whoami", token=charlie)["org_id"] == other.pk
                assert web.ask("GET", "/v1/whoami", token=alice)["org_id"] == greedy.pk
                assert _signed_in(web, "charlie")
                assert "<html" in _page(web, "/console/sign-in")
                rows = web.ask("POST", "/v1/sql", {"query": "SELECT 1 AS one"}, charlie)["rows"]
                assert rows == [{"one": 1}]
            # All of that came while the statements ran.
            assert _unanswered(staying) > 0
            # What runs is for those who stay; what found no turn is refused.
            wait_until(
                lambda: len(support.backends_of(greedy_caller)) == _unanswered(staying),
                timeout_s=LIMIT_S,
            )
            assert 0 < _unanswered(staying) < STAYING
        wait_until(lambda: not support.backends_of(greedy_caller), timeout_s=LIMIT_S)
        with closing(web.connect()) as client:
            again = call(client, "POST", "/v1/sql", {"query": "SELECT 2 AS two"}, alice)
        assert again["rows"] == [{"two": 2}]
