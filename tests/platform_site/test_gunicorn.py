"""What gunicorn's master loads for its workers is safe to fork."""

import subprocess
import sys

from platform_site import gunicorn

LOOK = """
import threading
from pathlib import Path
from platform_site.wsgi import application
from django.db import connections

print(threading.active_count())
print(sum(connection.connection is not None for connection in connections.all()))
links = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.exists()]
print(sum("socket:" in str(link) for link in links))
"""


def test_the_loaded_application_holds_no_thread_and_no_connection() -> None:
    assert gunicorn.preload_app
    seen = subprocess.run(
        [sys.executable, "-c", LOOK],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    threads, connections, sockets = seen.stdout.split()
    assert (threads, connections, sockets) == ("1", "0", "0")
