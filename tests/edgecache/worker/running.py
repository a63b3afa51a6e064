"""A worker in a separate process, and requests to it."""

import hashlib
import http.client
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from edgecache.protocol.names import TICKET_HEADER, object_path
from edgecache.protocol.tickets import TicketKind
from tests.edgecache.forks import Process, fork_server
from tests.edgecache.worker.brain import CLIENT, NODE, SECRET, FakeBrain
from tests.ports import free_port

START_S = 120.0
POLL_S = 0.02


@dataclass(frozen=True)
class Answer:
    """A worker's response."""

    status: int
    headers: dict[str, str]
    body: bytes


def name(content: bytes) -> bytes:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(content).digest()


def altered(content: bytes) -> bytes:
    """Return the bytes with the first one changed."""
    return bytes([content[0] ^ 1]) + content[1:]


def unmeasured() -> dict[str, str]:
    """Return this process's environment without coverage measurement of child processes."""
    return {key: value for key, value in os.environ.items() if not key.startswith("COVERAGE")}


@dataclass
class Worker:
    """A worker process that may be killed and started again.

    environment, wrapper: with one of them it is not forked, and shares no memory.
    """

    brain: FakeBrain
    folder: Path
    options: list[str] = field(default_factory=list)
    capacity: str = "64MiB"
    secret: str = SECRET
    environment: dict[str, str] | None = None
    wrapper: list[str] = field(default_factory=list)
    port: int = field(default_factory=free_port)
    process: Process | None = None

    @property
    def store(self) -> Path:
        """Return its folder."""
        return self.folder / "store"

    @property
    def log(self) -> str:
        """Return its log so far."""
        return (self.folder / "log").read_text()

    def start(self, *, until_served: bool = True) -> "Worker":
        """Start it and wait until it serves."""
        secret = self.folder / "secret"
        secret.write_text(self.secret)
        secret.chmod(0o600)
        command = [
            "edgecache.worker",
            "--brain",
            self.brain.url,
            "--node-id",
            str(NODE),
            "--secret-file",
            str(secret),
            "--dir",
            str(self.store),
            "--capacity",
            self.capacity,
            "--region",
            "eu-central",
            "--listen",
            f"127.0.0.1:{self.port}",
            *self.options,
        ]
        with (self.folder / "log").open("ab") as log:
            if self.environment is None and not self.wrapper:
                streams = dict.fromkeys((1, 2), log.fileno())
                self.process = fork_server().fork(command, os.environ, streams)
            else:
                own = [*self.wrapper, sys.executable, "-m", *command]
                self.process = subprocess.Popen(own, stderr=log, stdout=log, env=self.environment)
        if until_served:
            self.wait_until(lambda: self.health() == 200)
        return self

    def kill(self) -> None:
        """Kill it as a power cut would."""
        self.send(signal.SIGKILL)
        self.wait()

    def send(self, number: int) -> None:
        """Send it a signal."""
        assert self.process is not None
        os.kill(self.process.pid, number)

    def wait(self, timeout_s: float = 20.0) -> int:
        """Wait for its end; return its exit code."""
        assert self.process is not None
        return self.process.wait(timeout_s)

    def stop(self) -> None:
        """Kill it if it runs: nothing of what it would do at its end is needed."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def wait_until(self, true: Any, timeout_s: float = START_S) -> None:
        """Wait until a condition is true."""
        assert self.process is not None
        ends = time.monotonic() + timeout_s
        while not true():
            assert time.monotonic() < ends, f"not in time; the worker said:\n{self.log}"
            assert self.process.poll() is None, f"the worker ended:\n{self.log}"
            time.sleep(POLL_S)

    def health(self) -> int:
        """Return the status of ``/healthz``, 0 when the port is closed."""
        try:
            return self.request("GET", "/healthz").status
        except OSError:
            return 0

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request on a new connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            said = {key.lower(): value for key, value in response.getheaders()}
            return Answer(response.status, said, response.read())
        finally:
            connection.close()

    def put(self, content: bytes, **fields: Any) -> Answer:
        """Store some bytes with a valid ticket."""
        ticket = self.brain.signer.ticket(content, kind=TicketKind.STORE, **fields)
        return self.request("PUT", object_path(name(content)), content, {TICKET_HEADER: ticket})

    def get(
        self,
        content: bytes,
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> Answer:
        """Read some bytes with a valid ticket of the brain."""
        ticket = self.brain.signer.ticket(content, **fields)
        shown = {TICKET_HEADER: ticket, **(headers or {})}
        return self.request(method, object_path(name(content)), headers=shown)

    def delete(self, content: bytes) -> Answer:
        """Delete some bytes with a valid ticket."""
        ticket = self.brain.signer.ticket(content, kind=TicketKind.DELETE)
        return self.request("DELETE", object_path(name(content)), headers={TICKET_HEADER: ticket})

    def direct_ticket(self, content: bytes, **fields: Any) -> str:
        """Return a ticket for a client's direct read of some bytes."""
        return self.brain.signer.ticket(
            content, **{"client_prefix": CLIENT, "id": uuid4(), **fields}
        )

    def show(self, ticket: str, content: bytes, headers: dict[str, str] | None = None) -> Answer:
        """Read some bytes with this ticket."""
        shown = {TICKET_HEADER: ticket, **(headers or {})}
        return self.request("GET", object_path(name(content)), headers=shown)

    def file(self, content: bytes) -> Path:
        """Return the path of some bytes in the store."""
        sha256 = name(content).hex()
        return self.store / "objects" / sha256[:2] / sha256

    def incoming(self) -> list[Path]:
        """Return the incomplete files."""
        return list((self.store / "incoming").iterdir())

    def metric(self, metric: str) -> float:
        """Return one number of ``/metrics``."""
        for line in self.request("GET", "/metrics").body.decode().splitlines():
            if line.startswith(f"zonal_worker_{metric} "):
                return float(line.split()[1])
        raise LookupError(metric)
