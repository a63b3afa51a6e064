"""Servers under test: gunicorn with the same arguments for Zonal and for its yardstick."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """How gunicorn is run."""

    worker_class: str = "gthread"
    workers: int = 2
    threads: int = 8
    pool: int = 0

    def __str__(self) -> str:
        """Give a short name."""
        connections = f"pool of {self.pool}" if self.pool else "a connection a thread"
        return f"{self.worker_class}, {self.workers} x {self.threads}, {connections}"


def free_port() -> int:
    """Give a port nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def serve(application: str, shape: Shape, *, probe: str, **variables: str) -> Iterator[int]:
    """Run gunicorn over a WSGI application; give its port."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}"]
    command += ["--worker-class", shape.worker_class, "--workers", str(shape.workers)]
    command += ["--threads", str(shape.threads), "--keep-alive", "30", "--log-level", "warning"]
    environment = os.environ | variables
    environment |= {"ZLOG_LEVEL": "error", "ZDB_POOL_SIZE": str(shape.pool)}
    process = subprocess.Popen([*command, application], env=environment)
    try:
        _wait(port, probe)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait(port: int, probe: str) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{probe}", timeout=2)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nothing answers on port {port}")
