"""Brains and workers are replaced while objects are read and written, and no request fails."""

import itertools
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect
from tests.load import load
from tests.processes import has_ended
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# A brain starts while this machine runs the load and other programs.
START_S = 120.0
BODY = os.urandom(300_000)


def reading(s3: Any, key: str) -> Callable[[], None]:
    """Return a request that reads an object to its end."""

    def read() -> None:
        assert s3.get_object(Bucket="docs", Key=key)["Body"].read() == BODY

    return read


def writing(s3: Any, name: str) -> Callable[[], None]:
    """Return a request that writes an object and reads it."""
    numbers = itertools.count()

    def write() -> None:
        key, body = f"{name}-{next(numbers)}", os.urandom(20_000)
        s3.put_object(Bucket="docs", Key=key, Body=body)
        assert s3.get_object(Bucket="docs", Key=key)["Body"].read() == body

    return write


@contextmanager
def clients(cluster: Cluster) -> Iterator[dict[str, Callable[[], None]]]:
    """Yield what clients do, each on connections of its own."""
    tenant = cluster.tenant()
    made = [connect(tenant, cluster.url) for _ in range(4)]
    made[0].create_bucket(Bucket="docs")
    made[0].put_object(Bucket="docs", Key="read", Body=BODY)
    try:
        yield {
            "reader": reading(made[0], "read"),
            "other reader": reading(made[1], "read"),
            "writer": writing(made[2], "a"),
            "other writer": writing(made[3], "b"),
        }
    finally:
        for client in made:
            client.close()


def all_online(cluster: Cluster) -> bool:
    """True if the brain uses every worker."""
    return all(node["health"] == "online" for node in cluster.call("GET", "/v1/nodes")["nodes"])


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_brain_hands_over_to_another(start: Callable[..., Cluster], processes: str) -> None:
    cluster = start(workers=1, variables={"ZBRAIN_PROCESSES": processes})
    former = cluster.brain
    with clients(cluster) as callers, load(callers) as seen:
        seen.goes_on()
        former.send_signal(signal.SIGUSR2)
        former.wait(START_S)
        seen.goes_on()
    assert seen.failures == []
    assert former.returncode == 0
    (line,) = (line for line in cluster.log.splitlines() if "brain_successor_started" in line)
    (successor,) = re.findall(r'"pid":(\d+)', line)
    # It has the other ports as well.
    assert cluster.call("GET", "/health")["status"] == "ok"
    os.kill(int(successor), signal.SIGTERM)
    wait_until(lambda: has_ended(int(successor)))


def test_a_worker_restarts(start: Callable[..., Cluster]) -> None:
    cluster = start(workers=2)
    with clients(cluster) as callers, load(callers) as seen:
        seen.goes_on()
        worker = cluster.processes[1]
        worker.terminate()
        worker.wait(30)
        seen.goes_on()
        cluster.restart(1)
        wait_until(lambda: all_online(cluster))
        seen.goes_on()
    assert seen.failures == []
