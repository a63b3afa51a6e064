"""Transactions with real web servers: processes that end, machines behind HAProxy and nginx."""

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pytest

from tests import cast
from tests.deploy.proxies import APP, Proxy, running
from tests.documents.blocks import blocks
from tests.sqlgateway.transactions.support import PATH
from tests.waiting import wait_until
from tests.web_process import Web, web_process

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

EMAIL: Final = "alice@example.com"
JSON: Final = {"Content-Type": "application/json"}


class Answer(NamedTuple):
    """A status and a body."""

    status: int
    body: dict[str, Any]


Send = Callable[[str, str, dict[str, str], bytes], Answer]


@dataclass(frozen=True)
class Caller:
    """Alice, who has signed in. Each request has a connection of its own."""

    send: Send
    headers: dict[str, str]

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        """Send a request."""
        content = b"" if body is None else json.dumps(body).encode()
        return self.send(method, path, self.headers, content)

    def begin(self) -> str:
        """Begin a transaction; return its id."""
        answer = self.call("POST", PATH, {})
        assert answer.status == 201, answer
        return str(answer.body["id"])

    def run(self, transaction: str, number: int, query: str) -> Answer:
        """Run a statement of a transaction."""
        body = {"number": number, "query": query}
        return self.call("POST", f"{PATH}/{transaction}/statements", body)

    def rows(self, query: str) -> Any:
        """Run a text outside of transactions."""
        answer = self.call("POST", "/v1/sql", {"query": query, "rows": "arrays"})
        assert answer.status == 200, answer
        return answer.body["rows"]


def signed_in(send: Send) -> Caller:
    """Sign in."""
    body = {"email": EMAIL, "password": cast.PASSWORD}
    token = Caller(send, JSON).call("POST", "/v1/auth/login", body).body["access_token"]
    return Caller(send, {**JSON, "Authorization": f"Bearer {token}"})


def directly(web: Web) -> Send:
    """Send to a web server."""

    def send(method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        with closing(web.connect()) as client:
            client.request(method, path, body or None, headers)
            answer = client.getresponse()
            return Answer(answer.status, json.loads(answer.read()))

    return send


def through(proxy: Proxy) -> Send:
    """Send to a proxy."""

    def send(method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        answer = proxy.send(method, path, headers, body)
        return Answer(answer.status, json.loads(answer.body))

    return send


@pytest.fixture(autouse=True)
def _alice(databases: None) -> None:
    cast.member(cast.organization(), EMAIL, password=cast.PASSWORD)


@pytest.fixture
def data_dir() -> Iterator[str]:
    """Return a folder with a short path."""
    with TemporaryDirectory() as folder:
        yield folder


def test_a_transaction_is_rolled_back_with_its_process(tmp_path: Path, data_dir: str) -> None:
    with web_process(tmp_path, ZDATA_DIR=data_dir) as web:
        alice = signed_in(directly(web))
        alice.rows("CREATE TABLE items (id int)")
        ours = alice.begin()
        numbers = iter(range(1, 100))

        def sockets() -> list[Path]:
            return list(Path(data_dir, "run").glob(f"{ours[:8]}-*"))

        def has_reached_both() -> bool:
            assert alice.run(ours, next(numbers), "INSERT INTO items VALUES (1)").status == 200
            return len(sockets()) == 2

        wait_until(has_reached_both)
        for pid in _children(web.process.pid):
            os.kill(pid, signal.SIGKILL)
        wait_until(web.is_up)

        over = alice.run(ours, next(numbers), "SELECT 1")
        assert (over.status, over.body["outcome"]) == (410, "rolled_back")
        assert alice.rows("SELECT id FROM items") == []
        assert alice.call("GET", f"{PATH}/{ours}").body["state"] == "rolled_back"
        later = alice.begin()
        assert alice.run(later, 1, "SELECT 1").status == 200
        assert later[:8] == ours[:8]
        assert len(sockets()) <= 2


def test_a_transaction_is_rolled_back_by_a_reload(tmp_path: Path, data_dir: str) -> None:
    with web_process(tmp_path, ZDATA_DIR=data_dir) as web:
        alice = signed_in(directly(web))
        alice.rows("CREATE TABLE items (id int)")
        ours = alice.begin()
        assert alice.run(ours, 1, "INSERT INTO items VALUES (1)").status == 200

        web.process.send_signal(signal.SIGUSR2)
        successor = web.main_pid()
        web.process.wait(30)

        try:
            over = alice.call("POST", f"{PATH}/{ours}/commit")
            assert (over.status, over.body["outcome"]) == (410, "rolled_back")
            assert alice.rows("SELECT id FROM items") == []
            later = alice.begin()
            assert later[:8] == ours[:8]
            assert alice.call("POST", f"{PATH}/{later}/commit").status == 200
        finally:
            os.kill(successor, signal.SIGTERM)
            wait_until(lambda: not web.is_up())


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in found.split()]


def test_a_proxy_sends_requests_to_the_machine_of_their_transaction(
    tmp_path: Path, data_dir: str
) -> None:
    variables = {
        "ZALLOWED_HOSTS": f"{APP},127.0.0.1",
        "ZTRUSTED_PROXIES": "127.0.0.0/8",
        "ZWEB_WORKERS": "1",
    }
    for name in ("one", "two"):
        Path(data_dir, name).mkdir()
        (tmp_path / name).mkdir()
    with (
        web_process(tmp_path / "one", ZDATA_DIR=f"{data_dir}/one", **variables) as one,
        web_process(tmp_path / "two", ZDATA_DIR=f"{data_dir}/two", **variables) as two,
    ):
        alice = signed_in(directly(one))
        alice.rows("CREATE TABLE items (id int)")
        labels = _check_machines(alice, replace(alice, send=directly(two)))
        machines = [(one.port, labels[0]), (two.port, labels[1])]
        for name in ("haproxy", "nginx"):

            def edit(text: str, name: str = name) -> str:
                return _for_two_machines(name, text, machines)

            with running(name, tmp_path / name, web_port=9, brain_port=9, edit=edit) as proxy:
                _check_proxy(replace(alice, send=through(proxy)), set(labels))


def _check_machines(one: Caller, two: Caller) -> tuple[str, str]:
    """Check what a machine answers for the other one; return their labels."""
    ours, theirs = one.begin(), two.begin()
    for caller, transaction in ((one, theirs), (two, ours)):
        refused = caller.run(transaction, 1, "SELECT 1")
        assert (refused.status, refused.body["code"]) == (409, "transaction_elsewhere")
    for caller, transaction in ((one, ours), (two, theirs)):
        assert caller.run(transaction, 1, "SELECT 1").status == 200
        assert caller.call("POST", f"{PATH}/{transaction}/commit").status == 200
    assert ours[:8] != theirs[:8]
    return ours[:8], theirs[:8]


def _check_proxy(alice: Caller, labels: set[str]) -> None:
    """Check that every request of transactions of both machines reaches its own."""
    begun = [alice.begin() for _ in range(4)]
    assert {transaction[:8] for transaction in begun} == labels
    for number in range(1, 4):
        for transaction in begun:
            assert alice.run(transaction, number, "INSERT INTO items VALUES (1)").status == 200
    for transaction in begun:
        assert alice.call("POST", f"{PATH}/{transaction}/commit").status == 200


def _for_two_machines(name: str, text: str, machines: list[tuple[int, str]]) -> str:
    """Change a file of deploy/ as the documentation says, with the machines of the test."""
    lines = next(b.text for b in blocks("docs/scaling.md") if b.language == name)
    names = (("10.0.0.11", "1a2b3c4d"), ("10.0.0.12", "5e6f7a8b"))
    for (address, example), (port, label) in zip(names, machines, strict=True):
        lines = lines.replace(f"{address}:8000", f"127.0.0.1:{port}").replace(example, label)
    if name == "haproxy":
        return re.sub(r"^backend web\n(?: .*\n)+", lines, text, flags=re.MULTILINE)
    text = re.sub(r"^upstream zonal_web \{\n(?: .*\n)+\}\n", lines, text, flags=re.MULTILINE)
    return text.replace("proxy_pass http://zonal_web;", "proxy_pass http://$zonal_machine;")
