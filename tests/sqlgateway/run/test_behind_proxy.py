"""SQL through Caddy, nginx and HAProxy, with the files of deploy/."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests import cast
from tests.deploy.proxies import APP, PROXIES, Proxy, running
from tests.ports import free_port
from tests.sqlgateway.support import as_provisioner
from tests.waiting import wait_until
from tests.web_process import web_process

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

STATEMENT = "SELECT pg_sleep(60) AS of_one_who_leaves"
RUNNING = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s"
IMPORT = "/v1/sql/import?table=notes&columns=id,text"


@pytest.fixture(params=PROXIES)
def proxy(databases: None, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """Run a proxy in front of the platform's web server."""
    variables = {
        "ZALLOWED_HOSTS": f"{APP},127.0.0.1",
        "ZHSTS": "host",
        "ZTRUSTED_PROXIES": "127.0.0.0/8",
    }
    folder = tmp_path / request.param
    with (
        web_process(tmp_path, **variables) as web,
        running(request.param, folder, web_port=web.port, brain_port=free_port()) as made,
    ):
        yield made


@pytest.fixture
def headers(proxy: Proxy) -> dict[str, str]:
    """Return the headers of Alice's requests."""
    alice = {"email": "alice@example.com", "password": cast.PASSWORD}
    cast.member(cast.organization(), alice["email"], password=cast.PASSWORD)
    sent = {"Content-Type": "application/json"}
    made = proxy.send("POST", "/v1/auth/login", sent, json.dumps(alice).encode())
    return sent | {"Authorization": f"Bearer {json.loads(made.body)['access_token']}"}


def is_running() -> bool:
    """True if the statement runs."""
    return as_provisioner(RUNNING, [f"{STATEMENT}%"]) != []


def test_the_statement_of_a_client_that_leaves_is_cancelled_and_an_import_may_be_large(
    proxy: Proxy, headers: dict[str, str]
) -> None:
    body = json.dumps({"query": STATEMENT})
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join(
        ["POST /v1/sql HTTP/1.1", f"Host: {APP}", *lines, f"Content-Length: {len(body)}", "", body]
    )
    with closing(proxy.connect()) as client:
        client.sendall(head.encode())
        wait_until(is_running, timeout_s=30)
    wait_until(lambda: not is_running(), timeout_s=10)

    create = json.dumps({"query": "CREATE TABLE notes (id int, text text)"}).encode()
    assert proxy.send("POST", "/v1/sql", headers, create).status == 200
    rows = b"id,text\n" + b"".join(b"%d,%s\n" % (number, b"x" * 1000) for number in range(3000))
    made = proxy.send("POST", IMPORT, headers | {"Content-Type": "text/csv"}, rows)
    assert (made.status, json.loads(made.body)["row_count"]) == (200, 3000), made.body
