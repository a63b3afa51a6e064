"""Servers under test: gunicorn with the same arguments for Zonal and for its baseline."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port

NS = 1e9
PLATFORM = "platform_site.wsgi"
# The platform, and the platform with metrics and traces that can be switched.
PLATFORMS = frozenset({PLATFORM, "benchmarks.platform.observability"})


@dataclass(frozen=True, slots=True)
class Shape:
    """The configuration of gunicorn."""

    worker_class: str = ""
    workers: int = 2
    threads: int = 64
    pool: int = 0

    def __str__(self) -> str:
        """Return a short name."""
        connections = f"pool of {self.pool}" if self.pool else "a connection a thread"
        name = self.worker_class or "the platform's worker"
        return f"{name}, {self.workers} x {self.threads}, {connections}"


BASELINE = Shape("gthread", threads=8)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A running server."""

    port: int
    pid: int

    def processor_s(self) -> float:
        """Return the processor time of its processes so far."""
        return processor_s(self.pid)


@contextmanager
def serve(
    application: str, shape: Shape, *, probe: str, **variables: str
) -> Iterator[RunningServer]:
    """Run gunicorn over a WSGI application.

    The applications of PLATFORMS run as in production: with the platform's own configuration, which
    counts requests in all processes, and with a log line for each request.
    """
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}"]
    if shape.worker_class:
        command += ["--worker-class", shape.worker_class]
    command += ["--workers", str(shape.workers)]
    command += ["--threads", str(shape.threads), "--keep-alive", "30", "--log-level", "warning"]
    if application in PLATFORMS:
        command += ["--config", "python:platform_site.gunicorn"]
    environment = os.environ | {"ZLOG_LEVEL": "info", "ZLOG_FORMAT": "json"} | variables
    environment["ZDB_POOL_SIZE"] = str(shape.pool)
    with Path(os.devnull).open("w") as nowhere:
        process = subprocess.Popen([*command, application], env=environment, stderr=nowhere)
    try:
        _wait(port, probe)
        yield RunningServer(port, process.pid)
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait(port: int, probe: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{probe}", timeout=2)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nothing answers on port {port}")


def processor_s(pid: int) -> float:
    """Return the processor time of a process and its children so far."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    # For all threads, in nanoseconds; `stat` has a resolution of 10 ms.
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    own = sum(int(thread.read_text().split()[0]) for thread in threads) / NS
    return own + sum(processor_s(int(child)) for child in children)
