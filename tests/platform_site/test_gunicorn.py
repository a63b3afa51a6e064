"""The application that gunicorn preloads is safe to fork."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

LOOK = """
import threading
from pathlib import Path
from types import SimpleNamespace
from platform_site import gunicorn
from platform_site.wsgi import application
from django.db import connections

gunicorn.when_ready(SimpleNamespace(stop=None))
print(threading.active_count())
print(sum(connection.connection is not None for connection in connections.all()))
gunicorn.on_exit(None)
print(gunicorn.preload_app)
links = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.exists()]
print(sum("socket:" in str(link) for link in links))
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
