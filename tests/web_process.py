"""The platform's web server as processes of its own, on the test's database."""

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from tests.ports import free_port
from tests.waiting import wait_until

# It imports the whole platform, beside the load and whatever else this machine does.
START_S = 120.0
ROOT = Path(__file__).parents[1]
SERVER = ["-m", "gunicorn", "-c", "python:platform_site.gunicorn", "platform_site.wsgi"]
COMMAND = [sys.executable, *SERVER]


@dataclass
class Web:
    """A web server, and what its supervisor has heard of it."""

    process: "subprocess.Popen[bytes]"
    port: int
    notifications: socket.socket
    start: Callable[[], "subprocess.Popen[bytes]"]

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

    def restart(self) -> None:
        """Have it end as a supervisor does, and start it again on its port."""
        self.process.terminate()
        self.process.wait(30)
        self.process = self.start()
        wait_until(self.is_up, timeout_s=START_S)

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


@contextmanager
def web_process(
    folder: Path, code: Path = ROOT, command: Sequence[str] = COMMAND, /, **variables: str
) -> Iterator[Web]:
    """Run the platform's web server with two processes. folder: for its own files.

    code: its working folder. variables: settings that differ from the test's.
    """
    port, path = free_port(), folder / "notify"
    address = urlsplit(settings.DATABASE_URL)
    name = str(connection.settings_dict["NAME"])
    environment = os.environ | {
        "DATABASE_URL": address._replace(path=f"/{name}").geturl(),
        "NOTIFY_SOCKET": str(path),
        "TMPDIR": str(folder),
        "ZSECRET_KEYS": ",".join(settings.SECRET_KEYS),
        "ZWEB_WORKERS": "2",
        **variables,
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifications:
        notifications.bind(str(path))
        words = [*command, "--bind", f"127.0.0.1:{port}"]

        def start() -> "subprocess.Popen[bytes]":
            return subprocess.Popen(words, env=environment, cwd=code)

        made = Web(start(), port, notifications, start)
        try:
            wait_until(made.is_up, timeout_s=START_S)
            yield made
        finally:
            made.process.terminate()
            made.process.wait(30)
