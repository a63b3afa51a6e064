"""gunicorn's configuration and a small application for the tests of the worker."""

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from platform_site import gunicorn, web_server

worker_class = gunicorn.worker_class
child_exit = gunicorn.child_exit
on_exit = gunicorn.on_exit
when_ready = web_server.refuse_before_stop
pre_exec = gunicorn.pre_exec
workers = int(os.environ.get("WORKERS", "2"))
threads = int(os.environ.get("THREADS", "8"))
keepalive = 30
graceful_timeout = 10
control_socket_disable = True
loglevel = "warning"


def post_worker_init(worker: Any) -> None:
    """Let the last process end the server before."""
    if worker.age == workers:
        web_server.take_over(worker.ppid)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer the process id, or what else the path asks for."""
    if environ["PATH_INFO"] == "/slow":
        time.sleep(0.3)
    if environ["PATH_INFO"] == "/cut":
        start_response("200 OK", [])
        return _cut()
    if environ["PATH_INFO"] == "/refuse":
        start_response("401 Unauthorized", [("Content-Length", "0")])
        return []
    size = len(environ["wsgi.input"].read())
    body = str(size if environ["PATH_INFO"] == "/size" else os.getpid()).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def _cut() -> Iterator[bytes]:
    yield b"beginning"
    raise ConnectionResetError(errno.ECONNRESET, "cut")
