"""/metrics of a web server with several processes of gunicorn, one of them ended."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.processes import children_of
from tests.scrape import Scrape, parse
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

REQUESTS = {"method": "GET", "route": "healthz", "status": "200"}


class Server:
    """gunicorn with two processes."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, temporary: Path) -> None:
        self.process, self.port, self.temporary = process, port, temporary

    def get(self, path: str) -> str:
        """Return a response's body."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def scrape(self) -> Scrape:
        """Return the metrics."""
        return parse(self.get("/metrics"))

    def answered(self) -> float:
        """Return how many requests for /healthz all processes counted."""
        return self.scrape().value("zonal_requests_total", **REQUESTS)

    def pids(self) -> set[int]:
        """Return the processes that accept connections: whose metrics have files."""
        return set(children_of(self.process.pid))

    def files_of(self, pid: int) -> list[str]:
        """Return the names of the metrics files of a process."""
        return [path.name for path in self.temporary.glob(f"zonal-metrics-*/*_{pid}.db")]

    def is_up(self) -> bool:
        """True if it answers."""
        with suppress(OSError):
            return "ok" in self.get("/healthz")
        return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Run the platform's web server."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "-c", "python:platform_site.gunicorn"]
    command += ["--bind", f"127.0.0.1:{port}", "platform_site.wsgi"]
    environment = os.environ | {"TMPDIR": str(tmp_path), "ZWEB_WORKERS": "2"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        made = Server(process, port, tmp_path)
        wait_until(made.is_up)
        yield made
    finally:
        process.terminate()
        process.wait(20)


def test_what_a_process_counted_outlives_it_in_one_file(server: Server) -> None:
    for _ in range(30):
        server.get("/healthz")
    wait_until(lambda: len(server.pids()) == 2)
    # With the fixture's own. Each process writes once a second what it counted.
    wait_until(lambda: server.answered() > 30)
    before = server.answered()

    first = server.pids()
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(server.pids() - first) == 2)
    wait_until(server.is_up)

    # Each of them had counted; nothing is counted twice, and the new ones go on.
    wait_until(lambda: server.answered() > before)
    assert server.answered() < before + 30
    assert [name for pid in first for name in server.files_of(pid)] == []
    assert server.scrape().value("zonal_sql_running") == 0
