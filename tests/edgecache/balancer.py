"""HAProxy in front of several brains, with the backend of docs/scaling.md."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import ROOT
from tests.ports import free_port
from tests.waiting import wait_until

# The defaults of deploy/haproxy.cfg, without TLS.
BEGINNING = """\
global
    maxconn 2000
defaults
    mode http
    timeout http-keep-alive 75s
    timeout client 60s
    timeout connect 2s
    timeout server 60s
    retries 20
    retry-on conn-failure
frontend objects
    bind 127.0.0.1:{port}
    default_backend brain
"""


def is_ready(cluster: Cluster) -> bool:
    """Return whether a brain, or the balancer, takes requests."""
    try:
        urlopen(f"{cluster.url}/-/readyz", timeout=5).close()  # noqa: S310 - http, on loopback
    except OSError:
        return False
    return True


@contextmanager
def balanced(brains: Sequence[Cluster], folder: Path) -> Iterator[Cluster]:
    """Yield three brains as clients see them: at the balancer's port. folder: for its file."""
    haproxy = shutil.which("haproxy")
    assert haproxy, "Debian's package haproxy is missing"
    page = (ROOT / "docs" / "scaling.md").read_text()
    (backend,) = re.findall(r"```haproxy\n(backend brain\n.*?)```", page, re.DOTALL)
    for number, brain in enumerate(brains, 1):
        backend = backend.replace(f"10.0.0.2{number}:9000", f"127.0.0.1:{brain.port}")
    front = replace(brains[0], port=free_port(), processes=[], commands=[], sockets=[])
    file = folder / "haproxy.cfg"
    file.write_text(BEGINNING.format(port=front.port) + backend)
    process = subprocess.Popen([haproxy, "-db", "-f", str(file)])
    try:
        wait_until(lambda: is_ready(front))
        yield front
    finally:
        process.terminate()
        process.wait(10)
