"""A brain that is terminated, or was paused, while another is about to take over from it."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect
from tests.processes import has_ended
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# A successor needs time; the times of a stop, and until a process counts as hanging, are short.
PATIENT = """
import os, runpy, time
if "ZONAL_BRAIN_FORMER" in os.environ and "SLOW" in os.environ:
    time.sleep(60)
from edgecache.brain.process import one_process, parent
one_process.STOP_TIMEOUT_S = 0.5
parent.HANGS_S, parent.POLL_S = 3.0, 0.1
runpy.run_module("edgecache.brain", run_name="__main__")
"""
Start = Callable[..., Cluster]


class PatientCluster(Cluster):
    """A brain that runs the program above."""

    def _spawn(self, log: str, command: list[str], environment: dict[str, str]) -> None:
        super()._spawn(log, ["-c", PATIENT], environment)


@pytest.fixture
def begin(database_url: str, tmp_path: Path) -> Iterator[Start]:
    """Return how to start a brain of two processes."""
    started = []

    def start(**variables: str) -> Cluster:
        two = {"ZBRAIN_PROCESSES": "2", **variables}
        keys = Fernet.generate_key().decode()
        cluster = PatientCluster(tmp_path, database_url, keys, workers=0, variables=two)
        started.append(cluster)
        cluster.start()
        wait_until(lambda: '"event":"brain_started"' in cluster.log)
        return cluster

    yield start
    for cluster in started:
        cluster.stop()


def successor_of(cluster: Cluster) -> int:
    """Let a successor begin; return its process."""
    cluster.brain.send_signal(signal.SIGUSR2)
    wait_until(lambda: "brain_successor_started" in cluster.log)
    (line,) = (line for line in cluster.log.splitlines() if "brain_successor_started" in line)
    (successor,) = re.findall(r'"pid":(\d+)', line)
    return int(successor)


def test_a_stop_ends_a_successor_that_does_not_serve_yet(begin: Start) -> None:
    cluster = begin(SLOW="1")
    successor = successor_of(cluster)

    cluster.brain.send_signal(signal.SIGTERM)

    assert cluster.brain.wait(20) == 0
    assert has_ended(successor)


def test_a_stop_ends_the_wait_for_long_requests_after_a_hand_over(begin: Start) -> None:
    cluster = begin()
    with closing(connect(cluster.tenant(), cluster.url)) as client:
        client.create_bucket(Bucket="docs")
        url = client.generate_presigned_url("put_object", Params={"Bucket": "docs", "Key": "k"})
    with socket.create_connection(("127.0.0.1", cluster.port)) as sock:
        target, host = url.removeprefix(cluster.url), f"127.0.0.1:{cluster.port}"
        sock.sendall(
            f"PUT {target} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 9\r\n\r\na".encode()
        )
        successor = successor_of(cluster)
        wait_until(lambda: cluster.log.count('"event":"brain_started"') == 2)
        with pytest.raises(subprocess.TimeoutExpired):
            cluster.brain.wait(3)

        cluster.brain.send_signal(signal.SIGTERM)
        assert cluster.brain.wait(20) == 0
    assert not has_ended(successor)
    os.kill(successor, signal.SIGTERM)
    wait_until(lambda: has_ended(successor))


def test_a_pause_of_all_processes_ends_none(begin: Start) -> None:
    cluster = begin()
    processes = cluster.brain_processes()
    for pid in (cluster.brain.pid, *processes):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(3.5)
    # The parent goes on first.
    for pid in (cluster.brain.pid, *processes):
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)

    wait_until(lambda: cluster.call("GET", "/health")["status"] == "ok")
    assert cluster.brain_processes() == processes
    assert "brain_process_hangs" not in cluster.log
