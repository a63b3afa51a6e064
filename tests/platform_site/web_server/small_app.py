"""gunicorn's configuration and a small application for the tests of the worker."""

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from common.web import pace
from platform_site import gunicorn
from platform_site.web_server import client_shares, takeover

worker_class = gunicorn.worker_class
pre_fork = gunicorn.pre_fork
child_exit = gunicorn.child_exit
on_exit = gunicorn.on_exit
when_ready = takeover.refuse_before_stop
pre_exec = gunicorn.pre_exec
workers = int(os.environ.get("WORKERS", "2"))
threads = int(os.environ.get("THREADS", "8"))
worker_connections = int(os.environ.get("CONNECTIONS", "1000"))
vars(pace)["RECEIVE_S"] = float(os.environ.get("RECEIVE_S", pace.RECEIVE_S))
vars(client_shares)["RECEIVING_LIMIT_BYTES"] = int(
    os.environ.get("RECEIVING_LIMIT_BYTES", client_shares.RECEIVING_LIMIT_BYTES)
)
keepalive = 30
graceful_timeout = 10
loglevel = "warning"
# More than the system keeps for a client that takes nothing.
LARGE_BYTES = 20_000_000


def post_worker_init(worker: Any) -> None:
    """Let the last process end the server before."""
    if worker.age == workers:
        takeover.take_over(worker.ppid)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer the process id, or what else the path asks for."""
    if environ["PATH_INFO"] == "/slow":
        time.sleep(0.3)
    if environ["PATH_INFO"] == "/cut":
        start_response("200 OK", [])
        return _cut()
    if environ["PATH_INFO"] == "/large":
        start_response("200 OK", [("Content-Length", str(LARGE_BYTES))])
        return [b"x" * LARGE_BYTES]
    size = len(environ["wsgi.input"].read())
    body = str(size if environ["PATH_INFO"] == "/size" else os.getpid()).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def _cut() -> Iterator[bytes]:
    yield b"beginning"
    raise ConnectionResetError(errno.ECONNRESET, "cut")
