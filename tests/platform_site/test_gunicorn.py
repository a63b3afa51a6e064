"""The application that gunicorn preloads is safe to fork, and what its workers share."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

LOOK = """
import threading
from pathlib import Path
from platform_site import gunicorn
from platform_site.wsgi import application
from django.db import connections

print(threading.active_count())
print(sum(connection.connection is not None for connection in connections.all()))
gunicorn.on_exit(None)
print(gunicorn.preload_app)
links = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.exists()]
print(sum("socket:" in str(link) for link in links))
"""

DRAIN = """
from types import SimpleNamespace
from platform_site import gunicorn

old, new = SimpleNamespace(), SimpleNamespace()
gunicorn.pre_fork(None, old)
gunicorn.pre_fork(None, new)
gunicorn.on_exit(None)
print(new.sql_row == old.sql_row)
"""


MANY = """
from types import SimpleNamespace
from platform_site import gunicorn

for _ in range(100):
    gunicorn.pre_fork(None, SimpleNamespace())
gunicorn.on_exit(None)
print("forked")
"""


def output_of(code: str) -> list[str]:
    """Return the words that a program prints."""
    seen = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return seen.stdout.split()


def test_the_preloaded_application_has_no_thread_and_no_connection() -> None:
    threads, connections, is_preloaded, sockets = output_of(LOOK)
    assert (threads, connections, is_preloaded, sockets) == ("1", "0", "True", "0")


def test_a_worker_that_drains_keeps_its_row_of_sql_requests() -> None:
    assert output_of(DRAIN) == ["False"]


def test_more_workers_than_there_are_places_are_started() -> None:
    assert output_of(MANY) == ["forked"]
