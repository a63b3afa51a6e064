"""The health check of a container."""

import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.deploy.tools import DEPLOY, run


class _Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Stay quiet."""


@pytest.fixture
def url() -> Iterator[str]:
    """Yield the URL of a process that is healthy at one path."""
    with HTTPServer(("127.0.0.1", 0), _Health) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def probe(url: str) -> int:
    return run(sys.executable, DEPLOY / "probe.py", url).returncode


def test_a_process_that_answers_is_healthy(url: str) -> None:
    assert probe(f"{url}/healthz") == 0


def test_a_process_that_refuses_or_is_gone_is_not(url: str) -> None:
    assert probe(f"{url}/other") == 1
    assert probe("http://127.0.0.1:1/healthz") == 1
