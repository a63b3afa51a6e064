"""A web server is replaced during sign-ins and SQL, and no request fails."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection

from tests import cast
from tests.load import load
from tests.ports import free_port
from tests.waiting import wait_until

# It imports the whole platform, beside the load and whatever else this machine does.
START_S = 120.0
EMAILS = ("alice@example.com", "bob@example.com")


@dataclass
class Web:
    """A web server, and what its supervisor has heard of it."""

    process: "subprocess.Popen[bytes]"
    port: int
    notifications: socket.socket

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection, which is kept alive."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def is_up(self) -> bool:
        """True if it answers."""
        with suppress(OSError):
            self.ask("GET", "/healthz")
            return True
        return False

    def ask(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        """Send a request on a new connection; return the answer's body."""
        with closing(self.connect()) as client:
            return call(client, method, path, body, token)

    def main_pid(self) -> int:
        """Wait until another process is reported as the main one; return it."""
        self.notifications.settimeout(START_S)
        while True:
            for line in self.notifications.recv(1000).decode().splitlines():
                if line.startswith("MAINPID="):
                    return int(line.removeprefix("MAINPID="))


def call(
    client: http.client.HTTPConnection, method: str, path: str, body: Any = None, token: str = ""
) -> Any:
    """Send a request; return the answer's body. Anything but 200 is a failure."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    client.request(method, path, json.dumps(body) if body else None, headers)
    answer = client.getresponse()
    content = answer.read()
    assert answer.status == 200, (answer.status, content)
    return json.loads(content)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    """Run the platform's web server on the test's database."""
    port, path = free_port(), tmp_path / "notify"
    address = urlsplit(settings.DATABASE_URL)
    name = str(connection.settings_dict["NAME"])
    environment = os.environ | {
        "DATABASE_URL": address._replace(path=f"/{name}").geturl(),
        "NOTIFY_SOCKET": str(path),
        "TMPDIR": str(tmp_path),
        "ZSECRET_KEYS": ",".join(settings.SECRET_KEYS),
        "ZWEB_WORKERS": "2",
    }
    command = [sys.executable, "-m", "gunicorn", "-c", "python:platform_site.gunicorn"]
    command += ["--bind", f"127.0.0.1:{port}", "platform_site.wsgi"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifications:
        notifications.bind(str(path))
        process = subprocess.Popen(command, env=environment)
        try:
            made = Web(process, port, notifications)
            wait_until(made.is_up, timeout_s=START_S)
            yield made
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.django_db(transaction=True)
def test_a_web_server_hands_over_to_another(web: Web, databases: None) -> None:
    home = cast.organization()
    # Two, since many sign-ins of one end the oldest.
    alice, bob = [{"email": email, "password": cast.PASSWORD} for email in EMAILS]
    for email in EMAILS:
        cast.member(home, email, password=cast.PASSWORD)
    token = web.ask("POST", "/v1/auth/login", alice)["access_token"]
    kept, other = web.connect(), web.connect()
    query = ("POST", "/v1/sql", {"query": "SELECT 40 + 2, pg_sleep(0.05)"}, token)
    callers = {
        "SQL": lambda: call(kept, *query),
        "other SQL": lambda: call(other, *query),
        "SQL on new connections": lambda: web.ask(*query),
        "sign-in": lambda: web.ask("POST", "/v1/auth/login", bob),
    }
    with closing(kept), closing(other), load(callers) as seen:
        seen.goes_on()
        web.process.send_signal(signal.SIGUSR2)
        successor = web.main_pid()
        web.process.wait(30)
        seen.goes_on()
    os.kill(successor, signal.SIGTERM)
    wait_until(lambda: not web.is_up())
    assert seen.failures == []
    assert successor != web.process.pid
