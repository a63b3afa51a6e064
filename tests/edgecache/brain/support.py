"""A client of the brain's APIs, fake and real workers, and the brain's tables."""

import http.client
import json
import os
import signal
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from edgecache.protocol.credentials import authorization
from edgecache.protocol.names import worker_path
from tests.database_client import DatabaseClient
from tests.edgecache.cluster import Cluster
from tests.edgecache.forks import Process, fork_server
from tests.ports import free_port

WAIT_S = 30.0
# Ends every connection to a database.
CUT = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"


def text_of(sha256: bytes) -> str:
    """Return a hash as messages have it."""
    return b64encode(sha256).decode()


@dataclass(frozen=True)
class ApiAnswer:
    """A response of an API."""

    status: int
    body: Any

    @property
    def code(self) -> str:
        """Return the error code of a refusal."""
        return str(self.body["code"])

    @property
    def fields(self) -> set[str]:
        """Return the names of the wrong fields."""
        return {row["field"] for row in self.body["errors"]}


def ask(
    url: str, method: str = "GET", body: Any = None, *, bearer: str = "", raw: bytes | None = None
) -> ApiAnswer:
    """Send one request; an error status is returned, not raised."""
    data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    try:
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request(method, target, data, headers)
        answer = connection.getresponse()
        content = answer.read()
        return ApiAnswer(answer.status, json.loads(content) if content else None)
    finally:
        connection.close()


class Internal:
    """A client of the internal API with the secret."""

    def __init__(self, cluster: Cluster) -> None:
        self.url = f"http://127.0.0.1:{cluster.internal_port}"
        self.secret = cluster.secret

    def __call__(self, method: str, path: str, body: Any = None) -> ApiAnswer:
        """Send one request."""
        return ask(self.url + path, method, body, bearer=self.secret)


class FakeWorker:
    """A node; the test sends its messages to the brain."""

    def __init__(self, cluster: Cluster, node: dict[str, Any]) -> None:
        self.id = UUID(node["node_id"])
        self.secret = str(node["node_secret"])
        self.url = f"http://127.0.0.1:{cluster.worker_port}"
        self.incarnation = "first"
        self.sequence = 0

    def say(self, name: str, body: Any = None, *, method: str = "POST") -> ApiAnswer:
        """Send one message."""
        bearer = authorization(self.id, self.secret).removeprefix("Bearer ")
        return ask(self.url + worker_path(self.id, name), method, body, bearer=bearer)

    def beat(self, **changes: Any) -> ApiAnswer:
        """Send a heartbeat."""
        self.sequence += 1
        said = {
            "incarnation": self.incarnation,
            "sequence": self.sequence,
            "used_bytes": 0,
            "object_count": 0,
            "capacity_bytes": 2**30,
            "evictions": 0,
            "load": 0.0,
            "problems": [],
        }
        return self.say("heartbeat", said | changes)

    def hold(self, *blobs: tuple[bytes, int], full: bool = True, **changes: Any) -> ApiAnswer:
        """Send an inventory."""
        self.sequence += 1
        said = {
            "incarnation": self.incarnation,
            "sequence": self.sequence,
            "full": full,
            "added": [[text_of(sha256), size] for sha256, size in blobs],
            "removed": [],
            "page": 0,
            "last": True,
        }
        return self.say("inventory", said | changes)


def register(
    cluster: Cluster,
    *,
    port: int = 9999,
    organization_id: int | None = None,
    is_trusted: bool = True,
    region: str = "eu-central",
) -> FakeWorker:
    """Register a node; return a fake worker for it."""
    said = Internal(cluster)(
        "POST",
        "/v1/nodes",
        {
            "endpoint": f"http://127.0.0.1:{port}",
            "region": region,
            "capacity_bytes": 2**30,
            "organization_id": organization_id,
            "is_trusted": is_trusted,
        },
    )
    assert said.status == 201, said
    return FakeWorker(cluster, said.body)


@dataclass
class RunningWorker:
    """A real worker."""

    id: UUID
    port: int
    process: Process
    command: list[str]

    def send(self, signum: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(signum)

    def kill(self) -> None:
        """Kill it as a power cut would."""
        self.process.kill()
        self.process.wait(10)


def run_worker(
    cluster: Cluster,
    name: str,
    *,
    region: str = "eu-central",
    organization_id: int | None = None,
    is_trusted: bool = True,
) -> RunningWorker:
    """Register a worker and start it; it stops with the cluster."""
    port = free_port()
    node = register(
        cluster, port=port, organization_id=organization_id, is_trusted=is_trusted, region=region
    )
    secret = cluster.folder / f"{name}.secret"
    secret.touch(mode=0o600)
    secret.write_text(node.secret)
    command = ["edgecache.worker", "--brain", node.url, "--node-id", str(node.id)]
    command += ["--secret-file", str(secret), "--dir", str(cluster.folder / name)]
    command += ["--capacity", "1GiB", "--region", region, "--listen", f"127.0.0.1:{port}"]
    return start_again(cluster, RunningWorker(node.id, port, cluster.brain, command))


def start_again(cluster: Cluster, worker: RunningWorker) -> RunningWorker:
    """Start a worker again with its folder."""
    with (cluster.folder / "workers.log").open("ab") as output:
        streams = dict.fromkeys((1, 2), output.fileno())
        worker.process = fork_server().fork(worker.command, os.environ, streams)
    cluster.processes.append(worker.process)
    return worker


def health_of(cluster: Cluster, worker: RunningWorker) -> str:
    """Return a node's health according to the brain."""
    return str(Internal(cluster)("GET", f"/v1/nodes/{worker.id}").body["health"])


# Stores some bytes in a new bucket of a new tenant; returns their hash.
Put = Callable[..., bytes]


class ClusterRows(DatabaseClient):
    """The brain's tables, as a client_of_database sees them."""

    def all(self, statement: str, *values: Any) -> list[Any]:
        """Return rows."""
        return self.execute(statement, values).fetchall()

    def run(self, statement: str, *values: Any) -> None:
        """Run a statement."""
        self.execute(statement, values)

    def value(self, statement: str, *values: Any) -> Any:
        """Return one value."""
        return self.all(statement, *values)[0][0]

    def holders(self, sha256: bytes) -> set[UUID]:
        """Return the nodes that hold some bytes."""
        found = self.all("SELECT node_id FROM brain_location WHERE blob_id = %s", sha256)
        return {row[0] for row in found}
