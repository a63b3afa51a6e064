"""Three brains on three machines, over one store, behind the balancer of docs/scaling.md."""

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.edgecache.brain.restarts.test_restarts_under_load import (
    REQUESTS,
    START_S,
    answered,
    clients,
)
from tests.edgecache.ceph.test_gateway import Brains, Writers, check, tenant
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import ROOT, connect
from tests.load import load
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


@pytest.fixture
def three(brains: Brains) -> list[Cluster]:
    """Return three brains, each with a folder of its own."""
    return [brains(workers=0) for _ in range(3)]


@pytest.fixture
def front(three: list[Cluster], tmp_path: Path) -> Iterator[Cluster]:
    """Return the three as clients see them: at the balancer's port."""
    haproxy = shutil.which("haproxy")
    assert haproxy, "Debian's package haproxy is missing"
    page = (ROOT / "docs" / "scaling.md").read_text()
    (backend,) = re.findall(r"```haproxy\n(backend brain\n.*?)```", page, re.DOTALL)
    for number, brain in enumerate(three, 1):
        backend = backend.replace(f"10.0.0.2{number}:9000", f"127.0.0.1:{brain.port}")
    front = replace(three[0], port=free_port(), processes=[], commands=[], sockets=[])
    file = tmp_path / "haproxy.cfg"
    file.write_text(BEGINNING.format(port=front.port) + backend)
    process = subprocess.Popen([haproxy, "-db", "-f", str(file)])
    try:
        wait_until(lambda: is_ready(front))
        yield front
    finally:
        process.terminate()
        process.wait(10)


def test_a_restart_of_each_brain_fails_no_request(three: list[Cluster], front: Cluster) -> None:
    with clients(front, front.tenant()) as callers, load(callers) as seen:
        for brain in three:
            seen.goes_on()
            brain.brain.terminate()
            assert brain.brain.wait(20) == 0
            brain.restart(0)
            wait_until(partial(is_ready, brain), timeout_s=START_S)
        wait_until(lambda: seen.failures or answered(seen) > REQUESTS, timeout_s=START_S)
    assert seen.failures == []


def test_no_acknowledged_put_is_lost_when_brains_die_and_hang(
    three: list[Cluster], front: Cluster
) -> None:
    keys, _ = tenant(front)
    with Writers(keys, front.url) as writers:
        writers.wait_for(50)
        three[0].kill(0)
        writers.wait_for(50)
        three[0].restart(0)
        three[1].brain.send_signal(signal.SIGSTOP)
        writers.wait_for(50)
        three[1].brain.send_signal(signal.SIGCONT)
        writers.wait_for(50)
    assert writers.refused <= {500, 502, 503, 504}
    for each in (front, *three):
        wait_until(partial(is_ready, each), timeout_s=START_S)
        check(connect(keys, each.url), writers)
