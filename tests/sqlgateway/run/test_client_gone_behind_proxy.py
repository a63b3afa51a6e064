"""A client behind a proxy that goes away takes its statement with it."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from tests import cast
from tests.deploy.proxies import APP, PROXIES, running
from tests.ports import free_port
from tests.sqlgateway.support import as_provisioner
from tests.waiting import wait_until
from tests.web_process import web_process

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

STATEMENT = "SELECT pg_sleep(60) AS of_one_who_leaves"
RUNNING = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s"


def is_running() -> bool:
    """True if the statement runs."""
    return as_provisioner(RUNNING, [f"{STATEMENT}%"]) != []


@pytest.mark.parametrize("name", PROXIES)
def test_the_statement_of_a_client_that_leaves_is_cancelled(
    databases: None, tmp_path: Path, name: str
) -> None:
    alice = {"email": "alice@example.com", "password": cast.PASSWORD}
    cast.member(cast.organization(), alice["email"], password=cast.PASSWORD)
    variables = {
        "ZALLOWED_HOSTS": f"{APP},127.0.0.1",
        "ZFORCE_HTTPS": "true",
        "ZTRUSTED_PROXY_COUNT": "1",
    }
    with (
        web_process(tmp_path, **variables) as web,
        running(name, tmp_path / name, web_port=web.port, brain_port=free_port()) as proxy,
    ):
        sent = {"Content-Type": "application/json"}
        made = proxy.send("POST", "/v1/auth/login", sent, json.dumps(alice).encode())
        token = json.loads(made.body)["access_token"]
        body = json.dumps({"query": STATEMENT})
        head = f"POST /v1/sql HTTP/1.1\r\nHost: {APP}\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
        with closing(proxy.connect()) as client:
            client.sendall((head + body).encode())
            wait_until(is_running, timeout_s=30)
        wait_until(lambda: not is_running(), timeout_s=10)
