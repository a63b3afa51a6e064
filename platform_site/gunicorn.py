"""gunicorn's configuration (``gunicorn -c python:platform_site.gunicorn platform_site.wsgi``).

Worker kind and counts are chosen by measurement: docs/performance.md has the figures.
"""

import os
import shutil
import sys
import tempfile
from typing import Any

from prometheus_client import multiprocess

from platform_site import settings
from platform_site.web_server.connection_counts import CLOSED, ConnectionCounts

bind = settings.BIND
worker_class = "platform_site.web_server.worker.BalancedWorker"
workers = settings.WEB_WORKERS
threads = settings.WEB_THREADS
# gthread's heartbeat comes from the worker's own loop, so a slow query does not look hung.
timeout = 60
graceful_timeout = 15
keepalive = 30
# Loaded once, before the fork, so that workers share its memory. HUP loads no new code.
preload_app = True
# Limits a memory leak of any library; the jitter keeps workers from restarting together.
max_requests = 100_000
max_requests_jitter = 10_000
# RequestMiddleware logs requests, with their ids.
accesslog = None
loglevel = "warning"


def _fresh_metrics_dir() -> str:
    """Return an empty folder for metrics; under `up` always the same one, so that none pile up."""
    if not os.environ.get("ZONAL_SUPERVISED"):
        return tempfile.mkdtemp(prefix="zonal-metrics-")
    folder = settings.DATA_DIR / "metrics"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return str(folder)


# A worker that ends and the one that replaces it overlap.
_counts = ConnectionCounts(2 * settings.WEB_WORKERS + 2)
_metrics_dir = _fresh_metrics_dir()
os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics_dir


def when_ready(server: Any) -> None:
    """Print the development token once, unless the supervisor already does."""
    if os.environ.get("ZONAL_SUPERVISED"):
        return
    from platform_site.startup import development_notice  # noqa: PLC0415 - Django is loaded by now

    notice = development_notice()
    if notice:
        sys.stdout.write(notice + "\n")
        sys.stdout.flush()


def pre_fork(server: Any, worker: Any) -> None:
    """Assign a worker its place among the counts of connections."""
    worker.counts, worker.slot = _counts, _counts.take_slot()
    worker.lane_count = settings.WEB_LANES


def post_worker_init(worker: Any) -> None:
    """Probe the cache's brain once; in a worker, since no thread survives a fork."""
    if worker.age == 1:
        from platform_site.startup import probe_cache  # noqa: PLC0415 - Django is loaded by now

        probe_cache()


def child_exit(server: Any, worker: Any) -> None:
    """Drop the gauges and the count of a worker that is gone."""
    _counts.set(worker.slot, CLOSED)
    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]  # untyped library


def on_exit(server: Any) -> None:
    """Remove the metrics files."""
    shutil.rmtree(_metrics_dir, ignore_errors=True)
