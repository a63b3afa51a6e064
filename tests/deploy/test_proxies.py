"""A web server and a brain behind Caddy, nginx and HAProxy, with the files of deploy/."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.fernet import Fernet

from tests import cast
from tests.cast import PASSWORD
from tests.deploy.proxies import APP, CLIENT, OBJECTS, PROXIES, Proxy, running
from tests.edgecache.brain.s3.raw import Answer, Signer
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.databases import brain_database
from tests.waiting import wait_until
from tests.web_process import Web, web_process

pytestmark = pytest.mark.slow

SPOOFED: Final = {
    "X-Forwarded-For": "203.0.113.9",
    "X_Forwarded_For": "203.0.113.9",
    "X-Forwarded-Proto": "http",
}
# 30 KiB and 15 KiB: a web server takes 8 KiB in one header, and a brain 16 KiB in all.
LARGE_HEAD: Final = {f"X-Filler-{number}": "f" * 7600 for number in range(4)}
LARGE_FOR_BRAIN: Final = {"X-Filler-1": "f" * 7600, "X-Filler-2": "f" * 7000}
BODY: Final = b"b" * (3 * 2**20)
CHUNKED: Final = "Transfer-Encoding: chunked\r\n\r\n"
# Of a web process.
THREADS: Final = 64


@dataclass(frozen=True)
class Machine:
    """The processes behind a proxy."""

    web: Web
    brain: Cluster
    keys: Keys


@pytest.fixture
def machine(tmp_path: Path, transactional_db: None) -> Iterator[Machine]:
    """Run a web server and a brain as behind a proxy that ends TLS."""
    alice = cast.member(cast.organization(), "alice@example.com", password=PASSWORD)
    assert alice.pk
    (tmp_path / "web").mkdir()
    (tmp_path / "brain").mkdir()
    # Not all of this machine, since the test's client is on it.
    of_brain = {"ZTRUSTED_PROXIES": "127.0.0.1/32", "ZBRAIN_S3_DOMAINS": OBJECTS}
    of_web = {
        "ZALLOWED_HOSTS": f"{APP},127.0.0.1",
        "ZHSTS": "host",
        "ZTRUSTED_PROXIES": "127.0.0.1/32",
        "ZWEB_WORKERS": "1",
    }
    with brain_database() as url:
        keys = Fernet.generate_key().decode()
        brain = Cluster(tmp_path / "brain", url, keys, variables=of_brain, workers=0)
        try:
            brain.start()
            with web_process(tmp_path / "web", **of_web) as web:
                yield Machine(web, brain, brain.tenant())
        finally:
            brain.stop()


@pytest.mark.parametrize("name", PROXIES)
def test_web_and_brain_work_alike_behind_each_proxy(
    machine: Machine, tmp_path: Path, name: str
) -> None:
    web_port, brain_port = machine.web.port, machine.brain.port
    with running(name, tmp_path / name, web_port=web_port, brain_port=brain_port) as proxy:
        _check_client_s_address(proxy, machine)
        _check_metrics_and_prefixes(proxy)
        _check_redirects(proxy)
        _check_heads_and_bodies(proxy, machine)
        _check_large_bodies(proxy)
        _check_slow_clients(proxy)


def _check_client_s_address(proxy: Proxy, machine: Machine) -> None:
    """Check that what a client says of its address is not believed, and the proxy is."""
    sessions = _signed_in(proxy, "/v1/auth/sessions")
    assert [each["address"] for each in sessions["results"]] == [CLIENT]
    assert proxy.send("GET", "/docs/k", SPOOFED, host=OBJECTS).status in {403, 404}
    wait_until(lambda: f'"client":"{CLIENT}"' in machine.brain.log, timeout_s=30)
    assert '"client":"203.0.113.9"' not in machine.brain.log
    assert '"client":"127.0.0.1"' not in machine.brain.log


def _signed_in(proxy: Proxy, path: str) -> Any:
    """Return what Alice, who has just signed in, gets."""
    body = json.dumps({"email": "alice@example.com", "password": PASSWORD}).encode()
    headers = {"Content-Type": "application/json", **SPOOFED}
    made = proxy.send("POST", "/v1/auth/login", headers, body)
    assert made.status == 200, made.body
    token = {"Authorization": f"Bearer {json.loads(made.body)['access_token']}"}
    answer = proxy.send("GET", path, token)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def _check_metrics_and_prefixes(proxy: Proxy) -> None:
    """Check that no spelling of /metrics passes, for a client on this machine even."""
    for target in ("/metrics", "/%6detrics", "/metrics?a=1"):
        refused = proxy.send("GET", target, source="127.0.0.1")
        assert refused.status == 404, target
        assert b"zonal_" not in refused.body
    # Names that WSGI has for the server's own: a client's would move each route.
    moved = proxy.send("GET", "/x/metrics", {"SCRIPT_NAME": "/x"}, source="127.0.0.1")
    assert moved.status == 404, moved.body
    assert proxy.send("GET", "/x/healthz", {"SCRIPT_NAME": "/x"}).status == 404


def _check_redirects(proxy: Proxy) -> None:
    """Check that no page is a redirect to itself, and that http is one to https."""
    page = proxy.send("GET", "/console/sign-in", {"X-Forwarded-Proto": "http"})
    assert page.status == 200, page.headers
    if proxy.plain_port:
        answer = proxy.ask_plainly("/console/sign-in?a=b")
        wanted = (301, f"https://{APP}/console/sign-in?a=b")
        assert (answer.status, answer.headers["location"]) == wanted


def _check_heads_and_bodies(proxy: Proxy, machine: Machine) -> None:
    assert proxy.send("GET", "/healthz", LARGE_HEAD).status == 200
    assert _signed(proxy, machine, "PUT", "/docs").status == 200
    written = {"x-amz-meta-my_note": "yes", "x-amz-meta-long": "n" * 1500}
    put = _signed(proxy, machine, "PUT", "/docs/a%20b", BODY, written)
    assert put.status == 200, put.body
    got = _signed(proxy, machine, "GET", "/docs/a%20b", headers=LARGE_FOR_BRAIN)
    assert (got.status, got.body) == (200, BODY)
    assert got.headers["x-amz-meta-my_note"] == "yes"


def _check_large_bodies(proxy: Proxy) -> None:
    """Check that the refusal of a large body is a problem document."""
    large = {"Content-Length": str(3 * 2**20)}
    refused = proxy.send("POST", "/v1/sql", large)
    assert refused.headers["content-type"] == "application/problem+json"
    problem = json.loads(refused.body)
    assert (refused.status, problem["status"], problem["code"]) == (413, 413, "payload_too_large")
    assert {"type", "title", "request_id"} <= problem.keys()


def _check_slow_clients(proxy: Proxy) -> None:
    """Check that clients which send a byte now and then take no thread of the web server."""
    head = f"POST /v1/auth/login HTTP/1.1\r\nHost: {APP}\r\n"
    for beginning in (head, f"{head}Content-Length: 90\r\n\r\n{{", f"{head}{CHUNKED}1\r\n{{\r\n"):
        with ExitStack() as stack:
            clients = [stack.enter_context(proxy.connect()) for _ in range(THREADS + 6)]
            for client in clients:
                client.sendall(beginning.encode())
            assert proxy.send("GET", "/healthz").status == 200
            for client in clients:
                client.sendall(b"\n" if beginning.endswith("\r\n") else b"x")
            assert proxy.send("GET", "/healthz").status == 200


def _signed(
    proxy: Proxy,
    machine: Machine,
    method: str,
    target: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
) -> Answer:
    signer = Signer(machine.keys, f"https://{OBJECTS}")
    given = signer.sign(method, target, headers, payload="UNSIGNED-PAYLOAD")
    given.pop("host")
    if method == "PUT" and not body:
        given["content-length"] = "0"
    return proxy.send(method, target, given, body, host=OBJECTS)
