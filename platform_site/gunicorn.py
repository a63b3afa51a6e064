"""gunicorn's configuration (``gunicorn -c python:platform_site.gunicorn platform_site.wsgi``).

Worker kind and counts are chosen by measurement: benchmarks/README.md has the figures.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from edgecache.runtime.resource_limits import files_allowed
from platform_site import settings
from platform_site.web_server import Worker, refuse_before_stop, take_over

bind = settings.BIND
worker_class = Worker
workers = settings.WEB_WORKERS
threads = settings.WEB_THREADS
# Each connection has a file descriptor, and requests need further ones.
worker_connections = min(1000, files_allowed() // 2)
# gthread's heartbeat comes from the worker's loop, so a slow query does not count as hanging.
timeout = 60
graceful_timeout = 15
keepalive = 30
# Loaded once, before the fork, so that workers share its memory. HUP loads no new code; USR2 does.
# The server itself answers no request and starts no thread, so what it loads needs no reset in a
# worker: a test checks that there is no thread, connection or socket (tests/platform_site).
preload_app = True
# Limits memory leaks of libraries; the jitter prevents simultaneous restarts.
max_requests = 100_000
max_requests_jitter = 10_000
# Disabled, because RequestMiddleware logs requests, with their ids.
accesslog = None
# A proxy passes a client's SCRIPT_NAME and PATH_INFO on; gunicorn would believe it on this machine.
forwarder_headers = ""
# Disabled: it is not used, and two servers of one user would need the same path.
control_socket_disable = True
loglevel = "warning"


def _fresh_metrics_dir() -> str:
    """Return an empty folder for metrics; under `up` always the same one."""
    if not os.environ.get("ZONAL_SUPERVISED"):
        return tempfile.mkdtemp(prefix="zonal-metrics-")
    folder = settings.DATA_DIR / "metrics"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return str(folder)


# Before the first import of prometheus_client, which reads the variable only then.
_metrics_dir = _fresh_metrics_dir()
os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics_dir


def when_ready(server: Any) -> None:
    """Prepare the API's page, which workers share; print the development token unless `up` does."""
    refuse_before_stop(server)
    from console.api_reference.views import prepare  # noqa: PLC0415 - Django is loaded by now

    prepare()
    if os.environ.get("ZONAL_SUPERVISED"):
        return
    from platform_site.startup import development_notice  # noqa: PLC0415 - Django is loaded by now

    notice = development_notice()
    if notice:
        sys.stdout.write(notice + "\n")
        sys.stdout.flush()


def post_worker_init(worker: Any) -> None:
    """Start the worker's threads, which no fork copies; the last worker ends the old server."""
    from common import tracing  # noqa: PLC0415 - after the fork
    from common.every import Every  # noqa: PLC0415 - as above
    from common.metrics import publishing  # noqa: PLC0415 - needs Django
    from platform_site.staff import activity  # noqa: PLC0415 - as above

    Every(publishing.EVERY_S, publishing.publish, name="metrics").start()
    every = Every(activity.WRITE_EVERY_S, activity.write_and_disconnect, name="http-activity")
    every.start()
    tracing.start(f"{settings.SERVICE_NAME}-web", settings.TRACES_URL, settings.TRACES_SHARE)
    if worker.age == 1:
        from platform_site.startup import probe_cache  # noqa: PLC0415 - Django is loaded by now

        probe_cache()
    if worker.age == settings.WEB_WORKERS:
        take_over(worker.ppid)


def pre_exec(server: Any) -> None:
    """Start the new server like this one: gunicorn would run `-m` as a file."""
    server.START_CTX["args"] = [sys.executable, *sys.orig_argv[1:]]


def post_request(worker: Any, request: Any, environ: dict[str, Any], response: Any) -> None:
    """Return the share of a large answer, which is sent now."""
    from common.middleware import LARGE_ANSWERS  # noqa: PLC0415 - Django is loaded by now

    LARGE_ANSWERS.end(environ)


def worker_exit(server: Any, worker: Any) -> None:
    """Write the remaining metrics and send the remaining traces."""
    from common import tracing  # noqa: PLC0415 - after the fork
    from common.metrics import publishing  # noqa: PLC0415 - as above

    publishing.publish()
    tracing.stop()


def child_exit(server: Any, worker: Any) -> None:
    """Delete the gauges of an ended worker; keep its counters."""
    from prometheus_client import multiprocess  # noqa: PLC0415 - see _metrics_dir

    from common.metrics.exposition import forget_ended  # noqa: PLC0415 - see _metrics_dir

    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]  # untyped library
    forget_ended(Path(_metrics_dir), alive={os.getpid(), *server.WORKERS})


def on_exit(server: Any) -> None:
    """Remove the metrics files."""
    shutil.rmtree(_metrics_dir, ignore_errors=True)
