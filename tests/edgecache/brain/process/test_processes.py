"""A brain of several processes: one port, one data directory, and no request that knows of them."""

import os
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from cryptography.fernet import Fernet

from edgecache.brain.db.coherence import LEASE_S
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect
from tests.processes import has_ended
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

MIB = 2**20
# Started by a program that ignores the ends of its children, as some do.
IMPATIENT = """
import runpy, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from edgecache.brain.process import parent
parent.HANGS_S, parent.POLL_S = 3.0, 0.1
runpy.run_module("edgecache.brain", run_name="__main__")
"""


def counters(cluster: Cluster) -> dict[str, float]:
    """Return the brain's counters as Prometheus reads them."""
    with urllib.request.urlopen(f"http://127.0.0.1:{cluster.internal_port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.partition(" ") for line in lines)
        if name.endswith("_total")
    }


def two_processes(start: Callable[..., Cluster], **variables: str) -> Cluster:
    """Start a brain, and wait until both of its processes serve."""
    cluster = start(variables={"ZBRAIN_PROCESSES": "2", **variables})
    wait_until(lambda: '"event":"brain_started"' in cluster.log)
    return cluster


def test_metrics_are_those_of_all_processes_and_never_fall(start: Callable[..., Cluster]) -> None:
    cluster = two_processes(start)
    tenant = cluster.tenant()
    clients = [connect(tenant, cluster.url) for _ in range(4)]
    clients[0].create_bucket(Bucket="docs")
    clients[0].put_object(Bucket="docs", Key="k", Body=b"x" * 1000)
    for _ in range(5):
        for client in clients:
            client.get_object(Bucket="docs", Key="k")["Body"].read()

    # What one process has written includes what the other had counted.
    assert cluster.call("GET", "/v1/metrics")["bytes_served"] == 20_000

    # Whichever process answers: a counter that falls counts twice in Prometheus.
    rising = []
    for number in range(60):
        clients[number % 4].head_object(Bucket="docs", Key="k")
        clients[number % 4].get_object(Bucket="docs", Key="k", Range="bytes=0-9")["Body"].read()
        rising.append(counters(cluster)["zonal_cache_served_bytes_total"])
    assert rising == sorted(rising)

    def served() -> set[float]:
        return {counters(cluster)["zonal_cache_served_bytes_total"] for _ in range(8)}

    wait_until(lambda: served() == {20_600.0})
    os.kill(cluster.brain_processes()[0], signal.SIGKILL)
    wait_until(lambda: len(cluster.brain_processes()) == 2)
    wait_until(lambda: cluster.log.count('"event":"brain_process_started"') == 3)
    assert served() == {20_600.0}
    for client in clients:
        client.close()


def test_a_killed_process_is_replaced_and_nothing_acknowledged_is_lost(
    start: Callable[..., Cluster],
) -> None:
    cluster = two_processes(start)
    tenant = cluster.tenant()
    written: dict[str, bytes] = {}
    failures: Counter[str] = Counter()
    is_over = False
    with closing(connect(tenant, cluster.url)) as client:
        client.create_bucket(Bucket="docs")

    slowest_s = [0.0]

    def write(name: str) -> None:
        number = 0
        with closing(connect(tenant, cluster.url)) as client:
            while not is_over:
                key, body = f"{name}-{number}", os.urandom(3000)
                number += 1
                began = time.monotonic()
                try:
                    client.put_object(Bucket="docs", Key=key, Body=body)
                except (BotoCoreError, ClientError) as error:
                    # Its connection went with the process; the next one is the other's.
                    failures[type(error).__name__] += 1
                else:
                    written[key] = body
                slowest_s[0] = max(slowest_s[0], time.monotonic() - began)

    def grown(count: int) -> bool:
        return len(written) > count

    def is_replaced(pid: int) -> bool:
        return has_ended(pid) and len(cluster.brain_processes()) == 2

    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(write, f"w{number}") for number in range(8)]
        for _ in range(3):
            wanted = len(written) + 50
            wait_until(partial(grown, wanted))
            victim = cluster.brain_processes()[0]
            os.kill(victim, signal.SIGKILL)
            wait_until(partial(is_replaced, victim))
        is_over = True
        for each in running:
            each.result()

    # None has waited for the lease of a process that is known to have ended.
    assert slowest_s[0] < LEASE_S - 1
    assert set(failures) <= {"ConnectionClosedError", "EndpointConnectionError", "ClientError"}
    with closing(connect(tenant, cluster.url)) as client:
        for key, body in written.items():
            assert client.get_object(Bucket="docs", Key=key)["Body"].read() == body, key


class ImpatientCluster(Cluster):
    """A brain whose parent waits for a second."""

    def _spawn(self, log: str, command: list[str], environment: dict[str, str]) -> None:
        super()._spawn(log, ["-c", IMPATIENT], environment)


def test_a_process_that_hangs_is_replaced(database_url: str, tmp_path: Path) -> None:
    keys = Fernet.generate_key().decode()
    two = {"ZBRAIN_PROCESSES": "2"}
    cluster = ImpatientCluster(tmp_path, database_url, keys, workers=0, variables=two)
    try:
        cluster.start()
        wait_until(lambda: '"event":"brain_started"' in cluster.log)
        hanging = cluster.brain_processes()[0]
        os.kill(hanging, signal.SIGSTOP)
        wait_until(lambda: has_ended(hanging) and len(cluster.brain_processes()) == 2)
        wait_until(lambda: cluster.log.count('"event":"brain_process_started"') == 3)
        assert '"event":"brain_process_hangs"' in cluster.log
    finally:
        cluster.stop()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_brain(start: Callable[..., Cluster], how: signal.Signals) -> None:
    cluster = two_processes(start)
    processes = cluster.brain_processes()
    cluster.brain.send_signal(how)
    cluster.brain.wait(20)
    assert cluster.brain.returncode == (0 if how == signal.SIGTERM else -how)
    wait_until(lambda: all(has_ended(pid) for pid in processes))


def test_parts_of_uploads_do_not_exceed_the_budget_through_several_processes(
    start: Callable[..., Cluster],
) -> None:
    """An organization's parts may have half of it, with any number of concurrent connections."""
    cluster = two_processes(start, ZBRAIN_STAGING_MIB="64")
    tenant = cluster.tenant()
    with closing(connect(tenant, cluster.url)) as client:
        client.create_bucket(Bucket="docs")
        upload = client.create_multipart_upload(Bucket="docs", Key="k")["UploadId"]

    def send(number: int) -> int:
        with closing(connect(tenant, cluster.url)) as client:
            try:
                answer = client.upload_part(
                    Bucket="docs", Key="k", UploadId=upload, PartNumber=number, Body=b"x" * 5 * MIB
                )
            except ClientError as error:
                return int(error.response["ResponseMetadata"]["HTTPStatusCode"])
            return int(answer["ResponseMetadata"]["HTTPStatusCode"])

    with ThreadPoolExecutor(4) as threads:
        statuses = Counter(threads.map(send, range(1, 31)))
    stored = sum(file.stat().st_size for file in (cluster.folder / "brain" / "parts").iterdir())
    assert set(statuses) == {200, 503}
    assert stored == statuses[200] * 5 * MIB <= 64 * MIB
