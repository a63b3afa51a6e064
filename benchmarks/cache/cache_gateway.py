"""Warm GETs of 1 KiB, 64 KiB and 1 MiB through the object API, compared with static servers.

Baseline: nginx serving the same file from disk. Also compared: nginx proxy_cache, and Varnish if
installed. Zonal with one worker: the brain, with a signature and without (public bucket); and a
direct GET from the worker with a ticket.
Rounds alternate; the output is ratios of medians. If wrk is installed, it generates the load.
"""

import contextlib
import hashlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
from cryptography.fernet import Fernet
from psycopg import sql

from benchmarks import load
from benchmarks.servers import processor_s
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.nodes.tickets import TicketGrant, TicketSigner
from edgecache.protocol.names import TICKET_PARAMETER, object_path
from edgecache.protocol.tickets import TicketKind
from edgecache.runtime.resource_limits import processors
from operations.embedded.platform_processes import MAX_DEFAULT_BRAINS
from tests.edgecache.brain.s3.raw import EMPTY, Signer, send
from tests.edgecache.cluster import Cluster
from tests.ports import free_port

SIZES: Final = {"1 KiB": 2**10, "64 KiB": 2**16, "1 MiB": 2**20}
CONNECTIONS: Final = 16
WAIT_S: Final = 20.0
ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass
class Contender:
    """A server that serves the object. headers: sent with each request."""

    name: str
    port: int
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Round:
    """Requests a second, the slowest hundredth, and processor time of the brain and the worker."""

    per_second: float
    p99_ms: float
    cpu_us: float = 0.0


def measure(_identity: dict[str, str], *, rounds: int, seconds: float) -> None:
    """Run all servers and print a table for each size."""
    if not Path(_nginx()).exists():
        print("skipped: nginx, the baseline, is not installed")
        return
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zonal-bench-")))
        folder.chmod(0o755)
        files = folder / "files"
        files.mkdir()
        for name, size in SIZES.items():
            (files / _file(name)).write_bytes(os.urandom(size))
        bench = Bench(folder, stack)
        print(f"load: {'wrk' if shutil.which('wrk') else 'benchmarks.load'}, {CONNECTIONS} clients")
        for name in SIZES:
            _compare(bench, name, rounds=rounds, seconds=seconds)


class Bench:
    """All servers, running."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.files = folder / "files"
        self.cluster = stack.enter_context(brain_with_worker(folder))
        self.keys = self.cluster.tenant()
        self.public_name = self._fill()
        self.nginx_port = free_port()
        self.cached_port = free_port()
        self._start_nginx()
        self.varnish_port = self._start_varnish()

    def contenders(self, name: str) -> list[Contender]:
        """Return the servers of an object of this size."""
        path, public = f"/{_file(name)}", f"/{self.public_name}/{_file(name)}"
        private = f"/bench/{_file(name)}"
        found = [
            Contender("nginx, file", self.nginx_port, path),
            Contender("nginx, proxy_cache", self.cached_port, path),
        ]
        if self.varnish_port:
            found.append(Contender("Varnish", self.varnish_port, path))
        signed = Signer(self.keys, self.cluster.url).sign("GET", private, payload=EMPTY)
        found.append(Contender("Zonal, brain", self.cluster.port, public))
        found.append(Contender("Zonal, brain, signed", self.cluster.port, private, signed))
        node = self.cluster.nodes[0]
        target = f"{object_path(self._sha256(name))}?{TICKET_PARAMETER}={self._ticket(name)}"
        found.append(Contender("Zonal, worker", urlsplit(node["endpoint"]).port or 0, target))
        return found

    def _sha256(self, name: str) -> bytes:
        return hashlib.sha256((self.files / _file(name)).read_bytes()).digest()

    def _ticket(self, name: str) -> str:
        """Return a reusable ticket, such as the brain itself uses."""
        tenant = EnvironmentKey(self.keys.organization_id, self.keys.environment_pk)
        grant = TicketGrant(tenant, self.bucket_id, self._sha256(name), SIZES[name])
        node_id = UUID(self.cluster.nodes[0]["node_id"])
        return TicketSigner(self.cluster.secret).sign(
            TicketKind.READ, node_id, grant, now=time.time()
        )

    def _fill(self) -> str:
        signer = Signer(self.keys, self.cluster.url)
        scope = self.keys.scope
        row = self.cluster.call(
            "POST", f"/v1/buckets?{scope}", {"name": "bench", "is_public": True}
        )
        for name in SIZES:
            body = (self.files / _file(name)).read_bytes()
            signer.send("PUT", f"/bench/{_file(name)}", body)
        for name in SIZES:
            _wait(lambda name=name: self._is_held(signer, name))
        self.bucket_id = int(row["id"])
        public_name: str = row["public_name"]
        return public_name

    def _is_held(self, signer: Signer, name: str) -> bool:
        asked = {"x-zonal-redirect": "1"}
        return signer.send("GET", f"/bench/{_file(name)}", headers=asked).status == 307

    def _start_nginx(self) -> None:
        """Start nginx as the baseline, and nginx as a cache in front of it."""
        self._run_nginx(
            "baseline",
            f"""
    proxy_cache_path {self.folder}/cache keys_zone=bench:1m;
    server {{ listen 127.0.0.1:{self.nginx_port}; root {self.files}; }}
    server {{
        listen 127.0.0.1:{self.cached_port};
        location / {{
            proxy_cache bench; proxy_cache_valid 200 1h;
            proxy_pass http://127.0.0.1:{self.nginx_port};
        }}
    }}""",
        )
        _wait(lambda: send(f"http://127.0.0.1:{self.nginx_port}", "GET", "/x").status == 404)

    def _run_nginx(self, name: str, sites: str) -> None:
        config = self.folder / f"{name}.conf"
        config.write_text(self._nginx_text(name, sites))
        self._spawn([_nginx(), "-p", str(self.folder), "-c", str(config)])

    def _nginx_text(self, name: str, sites: str) -> str:
        folder = self.folder / name
        folder.mkdir()
        user = "user root;\n" if os.geteuid() == 0 else ""
        return f"""{user}worker_processes 1; daemon off; pid {folder}/pid;
error_log {folder}/error.log crit;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; keepalive_requests 1000000000;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    {sites}
}}
"""

    def _start_varnish(self) -> int:
        varnish = shutil.which("varnishd") or "/usr/sbin/varnishd"
        if not Path(varnish).exists():
            return 0
        port = free_port()
        command = [varnish, "-F", "-n", f"{self.folder}/varnish", "-a", f"127.0.0.1:{port}"]
        command += ["-b", f"127.0.0.1:{self.nginx_port}", "-s", "malloc,64m"]
        self._spawn(command)
        path = f"/{_file('1 KiB')}"
        _wait(lambda: send(f"http://127.0.0.1:{port}", "GET", path).status == 200)
        return port

    def _spawn(self, command: list[str], **variables: str) -> None:
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.stack.callback(_end, process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _compare(bench: Bench, name: str, *, rounds: int, seconds: float) -> None:
    results: dict[str, list[Round]] = {}
    for _ in range(rounds):
        # Every round has new tickets and signatures.
        for contender in bench.contenders(name):
            began_s = _processor_s(bench.cluster)
            found = _run(contender, seconds=seconds)
            used_s = _processor_s(bench.cluster) - began_s
            found.cpu_us = used_s / (found.per_second * seconds) * 1e6
            results.setdefault(contender.name, []).append(found)
    base = statistics.median(row.per_second for row in results["nginx, file"])
    print(f"\n{name:28} ratio   requests/s     MB/s   p99 ms   Zonal's us each")
    for title, rows in results.items():
        rate = statistics.median(row.per_second for row in rows)
        p99 = statistics.median(row.p99_ms for row in rows)
        cpu_us = statistics.median(row.cpu_us for row in rows)
        megabytes = rate * SIZES[name] / 1e6
        print(
            f"{title:28} {rate / base:5.2f} {rate:12.0f} {megabytes:8.0f} {p99:8.2f} {cpu_us:12.0f}"
        )


def _processor_s(cluster: Cluster) -> float:
    """Return the processor time that the brain and its worker have used."""
    return sum(processor_s(process.pid) for process in cluster.processes)


def _run(contender: Contender, *, seconds: float) -> Round:
    if shutil.which("wrk"):
        return _wrk(contender, seconds=seconds)
    lines = [f"GET {contender.target} HTTP/1.1"]
    headers = {"host": f"127.0.0.1:{contender.port}", **contender.headers}
    lines += [f"{name}: {value}" for name, value in headers.items()]
    request = "\r\n".join([*lines, "", ""]).encode()
    found = load.run(contender.port, request, connections=CONNECTIONS, seconds=seconds)
    if found.failures:
        raise RuntimeError(f"{contender.name} failed {found.failures} times")
    return Round(found.per_second, found.p99_ms)


def _wrk(contender: Contender, *, seconds: float) -> Round:
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:.0f}s", "--latency"]
    for name, value in contender.headers.items():
        # wrk writes the Host header itself, with the signed value.
        if name != "host":
            command += ["-H", f"{name}: {value}"]
    command.append(f"http://127.0.0.1:{contender.port}{contender.target}")
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", said)
    slow = re.search(r"99%\s+([\d.]+)(us|ms|s)", said)
    if "Non-2xx" in said or rate is None or slow is None:
        raise RuntimeError(f"{contender.name}: {said}")
    scale = {"us": 0.001, "ms": 1.0, "s": 1000.0}[slow[2]]
    return Round(float(rate[1]), float(slow[1]) * scale)


@contextlib.contextmanager
def brain_with_worker(
    folder: Path,
    variables: Mapping[str, str] = MappingProxyType({}),
    *,
    kind: type[Cluster] = Cluster,
) -> Iterator[Cluster]:
    """Run brains as `make run` does, one worker, and a database. variables: more settings."""
    given = os.environ["DATABASE_URL"]
    name = sql.Identifier(f"bench_{uuid.uuid4().hex}")
    url = urlsplit(given)._replace(path=f"/{name.as_string()[1:-1]}").geturl()
    secret_key = Fernet.generate_key().decode()
    environment = os.environ | {"DATABASE_URL": url, "ZSECRET_KEYS": secret_key}
    with psycopg.connect(given, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            command = [sys.executable, "manage.py", "migrate", "brain", "-v0"]
            subprocess.run(command, cwd=ROOT, check=True, env=environment)
            brains = min(processors(), MAX_DEFAULT_BRAINS)
            cluster = kind(
                folder, url, secret_key, workers=1, brains=brains, variables=dict(variables)
            )
            try:
                yield cluster.start()
            finally:
                cluster.stop()
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def _file(name: str) -> str:
    return name.replace(" ", "")


def _nginx() -> str:
    return shutil.which("nginx") or "/usr/sbin/nginx"


def _wait(holds: object) -> None:
    end = time.monotonic() + WAIT_S
    while True:
        with contextlib.suppress(OSError):
            if callable(holds) and holds():
                return
        if time.monotonic() > end:
            raise TimeoutError("a server does not come up")
        time.sleep(0.05)
