"""A web server that answers with the small application."""

import http.client
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port
from tests.processes import children_of
from tests.waiting import wait_until

APPLICATION = "tests.platform_site.web_server.small_app"


@dataclass(frozen=True)
class Server:
    """A running server."""

    port: int
    process: "subprocess.Popen[bytes]"
    workers: int

    def connect(self) -> http.client.HTTPConnection:
        """Return a client."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)

    def get(self, path: str = "/") -> str:
        """Return the body of a response on a connection of its own."""
        with closing(self.connect()) as client:
            client.request("GET", path)
            return client.getresponse().read().decode()

    def pids(self, connections: int) -> Counter[str]:
        """Return how many of this number of keep-alive connections belong to each process."""
        found: Counter[str] = Counter()
        with ExitStack() as stack:
            for _ in range(connections):
                client = stack.enter_context(closing(self.connect()))
                client.request("GET", "/")
                found[client.getresponse().read().decode()] += 1
        return found

    def successor(self) -> int:
        """Wait for the server that this one has started; return its process id."""
        variable = f"GUNICORN_PID={self.process.pid}".encode()

        def found() -> list[int]:
            children = children_of(self.process.pid)
            files = {pid: Path(f"/proc/{pid}/environ").read_bytes() for pid in children}
            return [pid for pid, variables in files.items() if variable in variables.split(b"\0")]

        wait_until(found)
        return found()[0]

    def is_up(self) -> bool:
        """True if all processes answer."""
        try:
            return len(self.pids(self.workers)) == self.workers
        except OSError:
            return False


@contextmanager
def running(**options: str) -> Iterator[Server]:
    """Run the small application. options: its environment's variables, in capital letters."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "-c", f"python:{APPLICATION}"]
    command += ["--bind", f"127.0.0.1:{port}", f"{APPLICATION}:application"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ | options)
    try:
        server = Server(port, process, int(options.get("WORKERS", "2")))
        wait_until(server.is_up)
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=10)
