"""Brains and workers restart while objects are read and written, and no request fails."""

import http.client
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect
from tests.load import Load, load
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# A brain starts while this machine runs the load and other programs.
START_S = 120.0
PUBLIC = "public reader"
READS = 50
REQUESTS = 5000
SMALL = b"x" * 1000
BODY = os.urandom(300_000)


def reading(s3: Any, key: str) -> Callable[[], None]:
    """Return a request that reads an object to its end."""

    def read() -> None:
        assert s3.get_object(Bucket="docs", Key=key)["Body"].read() == BODY

    return read


def reading_public(connection: http.client.HTTPConnection, path: str) -> Callable[[], None]:
    """Return requests that read a small object without a signature, READS of them."""

    def read() -> None:
        for _ in range(READS):
            connection.request("GET", path)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, SMALL)

    return read


def _public_path(cluster: Cluster, keys: Keys) -> str:
    row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    row = cluster.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", {"is_public": True})
    return f"/p/{row['public_name']}/small"


def writing(s3: Any, name: str) -> Callable[[], None]:
    """Return a request that writes an object and reads it."""
    numbers = itertools.count()

    def write() -> None:
        key, body = f"{name}-{next(numbers)}", os.urandom(20_000)
        s3.put_object(Bucket="docs", Key=key, Body=body)
        assert s3.get_object(Bucket="docs", Key=key)["Body"].read() == body

    return write


@contextmanager
def clients(cluster: Cluster, tenant: Keys) -> Iterator[dict[str, Callable[[], object]]]:
    """Yield what clients do, each on connections of its own."""
    made = [connect(tenant, cluster.url) for _ in range(4)]
    public = [http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=30) for _ in range(4)]
    made[0].create_bucket(Bucket="docs")
    made[0].put_object(Bucket="docs", Key="read", Body=BODY)
    made[0].put_object(Bucket="docs", Key="small", Body=SMALL)
    path = _public_path(cluster, tenant)
    try:
        yield {
            "reader": reading(made[0], "read"),
            "other reader": reading(made[1], "read"),
            "writer": writing(made[2], "a"),
            "other writer": writing(made[3], "b"),
            **{
                f"{PUBLIC} {number}": reading_public(connection, path)
                for number, connection in enumerate(public)
            },
        }
    finally:
        for client in (*made, *public):
            client.close()


def all_online(cluster: Cluster) -> bool:
    """True if the brain uses every worker."""
    return all(node["health"] == "online" for node in cluster.call("GET", "/v1/nodes")["nodes"])


def test_brains_restart_one_after_the_other(start: Callable[..., Cluster]) -> None:
    cluster = start(workers=1, brains=3)
    with clients(cluster, cluster.tenant()) as callers, load(callers) as seen:
        for number in range(cluster.brains):
            seen.goes_on()
            cluster.processes[number].terminate()
            assert cluster.processes[number].wait(20) == 0
            cluster.restart(number)
            cluster.wait_for_brain(number)
        wait_until(lambda: seen.failures or answered(seen) > REQUESTS, timeout_s=START_S)
    assert seen.failures == []


def answered(seen: Load) -> int:
    """Return how many requests have been answered."""
    return sum(n * (READS if name.startswith(PUBLIC) else 1) for name, n in seen.done.items())


def test_a_worker_restarts(start: Callable[..., Cluster]) -> None:
    cluster = start(workers=2)
    with clients(cluster, cluster.tenant()) as callers, load(callers) as seen:
        seen.goes_on()
        worker = cluster.processes[1]
        worker.terminate()
        worker.wait(30)
        seen.goes_on()
        cluster.restart(1)
        wait_until(lambda: all_online(cluster))
        seen.goes_on()
    assert seen.failures == []
