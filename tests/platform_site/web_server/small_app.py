"""gunicorn's configuration and a small application for the tests of the worker."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from platform_site import gunicorn

worker_class = gunicorn.worker_class
pre_fork = gunicorn.pre_fork
child_exit = gunicorn.child_exit
on_exit = gunicorn.on_exit
workers = 2
threads = 8
keepalive = 30
graceful_timeout = 10
loglevel = "warning"


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer the process id, or the size of the body; wait first if the path says so."""
    if environ["PATH_INFO"] == "/slow":
        time.sleep(0.3)
    size = len(environ["wsgi.input"].read())
    body = str(size if environ["PATH_INFO"] == "/size" else os.getpid()).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
