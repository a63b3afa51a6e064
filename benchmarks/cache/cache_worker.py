"""A GET with a ticket from a cache worker, compared with nginx serving the same file from disk.

Three ways to read from the worker:

    own      with one ticket for all requests, as the brain reads for its clients
    direct   with a ticket for each request, as clients read in direct mode: signature and receipt
    nginx    the baseline: the same file, no ticket, sendfile

They alternate in short rounds. Figures are relative to nginx in the same round, because the
machine's speed varies more than they differ.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.load import run
from edgecache.protocol.names import TICKET_HEADER, object_path
from tests.edgecache.worker.brain import CLIENT, FakeBrain
from tests.edgecache.worker.running import Worker, name
from tests.ports import accepts, free_port
from tests.waiting import wait_until

SIZES = {"1 KiB": 1 << 10, "64 KiB": 64 << 10, "1 MiB": 1 << 20}
CONNECTIONS = 16
# More than a round needs, because a direct ticket costs less when it is used again.
TICKETS_A_SECOND = 12_000
# Several organizations, because one may use only some thousands of tickets per second.
ORGANIZATIONS = 8

NGINX = """
worker_processes auto; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;
  server {{ listen 127.0.0.1:{port} reuseport; root {root}; }}
}}
"""


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round. cpu_us: the server's processor time for each response."""

    per_second: float
    p95_ms: float
    cpu_us: float


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print the worker's throughput, p95 and processor time relative to nginx.

    identity: not used. On a machine with other load, compare the processor times: they vary least.
    """
    if shutil.which("nginx") is None:
        print("nginx is not installed: there is nothing to compare with")
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        worker = stack.enter_context(_worker(folder))
        nginx = stack.enter_context(_nginx(folder, worker.store / "objects"))
        for label, size in SIZES.items():
            content = os.urandom(size)
            if worker.put(content).status != 201:
                raise RuntimeError(worker.log)
            _compare(worker, nginx, content, label, rounds=rounds, seconds=seconds)


def _compare(
    worker: Worker,
    nginx: tuple[int, int],
    content: bytes,
    label: str,
    *,
    rounds: int,
    seconds: float,
) -> None:
    sha256 = name(content).hex()
    plain = [f"GET /{sha256[:2]}/{sha256} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()]
    server = (worker.port, worker.process.pid if worker.process else 0)
    ratios: dict[str, list[tuple[float, ...]]] = {"own": [], "direct": []}
    for _ in range(rounds + 1):
        baseline = _round(nginx, plain, seconds)
        for kind, row in ratios.items():
            one = _round(server, _requests(worker, content, kind, seconds), seconds)
            row.append(
                (
                    one.per_second / baseline.per_second,
                    one.p95_ms / baseline.p95_ms,
                    one.cpu_us / baseline.cpu_us,
                )
            )
    for kind, row in ratios.items():
        # The first round warms up.
        rate, tail, cpu = (statistics.median(column) for column in zip(*row[1:], strict=True))
        figures = f"throughput {rate:.2f}, p95 {tail:.2f}, processor {cpu:.1f}"
        print(f"{label} {kind}: {figures} (nginx = 1)")


def _round(server: tuple[int, int], payloads: list[bytes], seconds: float) -> Round:
    port, pid = server
    before = _cpu_s(pid)
    load = run(port, payloads, connections=CONNECTIONS, seconds=seconds)
    if load.failures:
        raise RuntimeError(f"{load.failures} answers were not 200")
    cpu_us = (_cpu_s(pid) - before) * 1e6 / (load.per_second * seconds)
    return Round(load.per_second, load.p95_ms, cpu_us)


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(_cpu_s(int(child)) for child in children)


def _requests(worker: Worker, content: bytes, kind: str, seconds: float) -> list[bytes]:
    count, prefix = (1, "") if kind == "own" else (int(TICKETS_A_SECOND * seconds), CLIENT)
    sha256, sign = name(content), worker.brain.signer.ticket
    fields: dict[str, Any] = {"sha256": sha256, "length": len(content), "client_prefix": prefix}
    head = f"GET {object_path(sha256)} HTTP/1.1\r\nHost: localhost\r\n{TICKET_HEADER}: "
    return [
        f"{head}{sign(**fields, organization_id=number % ORGANIZATIONS)}\r\n\r\n".encode()
        for number in range(count)
    ]


@contextmanager
def _worker(folder: Path) -> Iterator[Worker]:
    brain = FakeBrain()
    brain.interval_s = 5.0
    worker = Worker(brain, folder, capacity="1GiB")
    try:
        yield worker.start()
    finally:
        worker.stop()
        brain.close()


@contextmanager
def _nginx(folder: Path, root: Path) -> Iterator[tuple[int, int]]:
    """Serve a folder; yield port and process."""
    port = free_port()
    # nginx's workers do not run as root, and must be able to read the files.
    for made in (folder, root.parent, root, *root.iterdir()):
        made.chmod(0o755)
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, root=root))
    process = subprocess.Popen(["nginx", "-c", str(config)], stderr=sys.stderr)
    try:
        wait_until(lambda: accepts(port))
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(timeout=20)
