"""A brain and workers as separate processes, over an existing database."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.edgecache.forks import Process, fork_server
from tests.ports import free_port

START_S = 180.0
STOP_S = 20.0
POLL_S = 0.05


def until(holds: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Wait until a condition is met."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "the condition was never met"
        time.sleep(0.02)


@dataclass(frozen=True)
class Keys:
    """A tenant and one of its access keys."""

    organization_id: int
    environment_pk: int
    access_key: str
    secret_key: str

    @property
    def scope(self) -> str:
        """Return the query that names the tenant on the internal API."""
        return f"organization_id={self.organization_id}&environment_pk={self.environment_pk}"


@dataclass
class Cluster:
    """The brains of a machine, and workers.

    variables: of the brains' environment; database_url and secret keys are the caller's. brains: if
    several, they have the same sockets, and each answers for itself on one of metrics_ports.
    """

    folder: Path
    database_url: str
    secret_keys: str
    variables: dict[str, str] = field(default_factory=dict)
    workers: int = 2
    brains: int = 1
    port: int = field(default_factory=free_port)
    internal_port: int = field(default_factory=free_port)
    worker_port: int = field(default_factory=free_port)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    processes: list[Process] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    commands: list[tuple[str, list[str], dict[str, str]]] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)
    metrics_ports: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Return the object API's URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """Return what the brains have logged: one line of JSON per event, without blanks."""
        return (self.folder / "brain.log").read_text().replace('": ', '":')

    @property
    def brain(self) -> Process:
        """Return the process of the brain, or of the first one."""
        return self.processes[0]

    def brain_processes(self) -> list[int]:
        """Return the process ids of the brains."""
        return [process.pid for process in self.processes[: self.brains]]

    def start(self) -> "Cluster":
        """Start the brain and its workers, and wait until they serve."""
        environment = os.environ | {
            "DATABASE_URL": self.database_url,
            "ZBRAIN_DATABASE_URL": "",
            "ZDATA_DIR": str(self.folder),
            "ZSECRET_KEYS": self.secret_keys,
            "ZCACHE_BRAIN_SECRET": self.secret,
            "ZBRAIN_PORT": str(self.internal_port),
            "ZBRAIN_S3_PORT": str(self.port),
            "ZBRAIN_WORKER_PORT": str(self.worker_port),
            "ZCACHE_HEARTBEAT": "1",
            "ZBRAIN_PROCESSES": str(self.brains),
            "ZLOG_FORMAT": "json",
            **self.variables,
        }
        self._start_brains(environment)
        for number in range(self.workers):
            self.add_worker(f"worker{number}")
        self._wait(self._all_online)
        return self

    def add_worker(
        self, name: str, region: str = "eu-central", *, through: int = 0, port: int = 0
    ) -> dict[str, Any]:
        """Register and start a worker; return its node. through: the port that the brain uses."""
        port = port or free_port()
        node: dict[str, Any] = self.call(
            "POST",
            "/v1/nodes",
            {
                "endpoint": f"http://127.0.0.1:{through or port}",
                "region": region,
                "capacity_bytes": 2**30,
                "organization_id": None,
                "is_trusted": True,
            },
        )
        secret = self.folder / f"{name}.secret"
        secret.touch(mode=0o600)
        secret.write_text(node["node_secret"])
        command = ["-m", "edgecache.worker", "--brain", f"http://127.0.0.1:{self.worker_port}"]
        command += ["--node-id", node["node_id"], "--secret-file", str(secret)]
        command += ["--dir", str(self.folder / name), "--capacity", "1GiB", "--region", region]
        command += ["--listen", f"127.0.0.1:{port}"]
        self._spawn(f"{name}.log", command, dict(os.environ))
        self.nodes.append(node)
        return node

    def stop(self) -> None:
        """End them all, the brain last."""
        for process in reversed(self.processes):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=STOP_S)
        self.end()

    def end(self) -> None:
        """Kill them all: nothing of what they would do at their end is needed."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        for each in self.sockets:
            each.close()
        for made in (self.processes, self.commands, self.sockets):
            made.clear()

    def kill(self, number: int) -> None:
        """Kill a brain (from 0) or a worker as a power cut would."""
        self.processes[number].kill()
        self.processes[number].wait()

    def restart(self, number: int) -> None:
        """Start a process that ended again; it may not serve yet."""
        self.processes[number] = self._run(*self.commands[number])

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Call the internal API."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.internal_port}{path}",
            method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"Bearer {self.secret}"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - http, as above
            content = answer.read()
        return json.loads(content) if content else None

    def tenant(self, access: str = "write", like: Keys | None = None) -> Keys:
        """Create an access key, of a new tenant or of an existing one."""
        organization = like.organization_id if like else secrets.randbits(40)
        environment = like.environment_pk if like else secrets.randbits(40)
        scope = f"organization_id={organization}&environment_pk={environment}"
        made = self.call("POST", f"/v1/access-keys?{scope}", {"access": access})
        return Keys(organization, environment, made["access_key_id"], made["secret_access_key"])

    def _start_brains(self, environment: dict[str, str]) -> None:
        command = ["-m", "edgecache.brain"]
        if self.brains == 1:
            self._spawn("brain.log", command, environment)
            self._wait(lambda: self.call("GET", "/health"))
            return
        for port in (self.internal_port, self.worker_port, self.port):
            self.sockets.append(socket.create_server(("127.0.0.1", port), backlog=2048))
        self.metrics_ports = [free_port() for _ in range(self.brains)]
        for port in self.metrics_ports:
            self._spawn("brain.log", command, environment | {"ZBRAIN_METRICS_PORT": str(port)})
        for number in range(self.brains):
            self.wait_for_brain(number)

    def wait_for_brain(self, number: int) -> None:
        """Wait until one of several brains serves."""
        url = f"http://127.0.0.1:{self.metrics_ports[number]}/health"
        self._wait(lambda: urllib.request.urlopen(url, timeout=20).close())

    @contextmanager
    def only(self, number: int) -> Iterator[None]:
        """Pause the other brains: what connects in this block is this one's."""
        brains = self.processes[: self.brains]
        others = brains[:number] + brains[number + 1 :]
        for each in others:
            each.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for each in others:
                each.send_signal(signal.SIGCONT)

    def _all_online(self) -> None:
        nodes = self.call("GET", "/v1/nodes")["nodes"]
        if sum(node["health"] == "online" for node in nodes) < self.workers:
            raise ConnectionError("a worker is not online yet")

    def _spawn(self, log: str, command: list[str], environment: dict[str, str]) -> None:
        self.commands.append((log, command, environment))
        self.processes.append(self._run(log, command, environment))

    def _run(self, log: str, command: list[str], environment: dict[str, str]) -> Process:
        given = self.sockets if log == "brain.log" else ()
        with (self.folder / log).open("ab") as output:
            if command[0] == "-m":
                streams = dict.fromkeys((1, 2), output.fileno())
                return fork_server().fork(command[1:], environment, streams, sockets=given)
            # It changes something before the brain is imported.
            return subprocess.Popen(
                [sys.executable, *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def _wait(self, works: Any) -> None:
        until = time.monotonic() + START_S
        while True:
            try:
                works()
            except OSError:
                ended = [process for process in self.processes if process.poll() is not None]
                if ended or time.monotonic() > until:
                    logs = [path.read_text()[-3000:] for path in self.folder.glob("*.log")]
                    raise RuntimeError("\n".join(logs)) from None
                time.sleep(POLL_S)
            else:
                return
