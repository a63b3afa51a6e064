"""Three brains of one machine: the same ports, one data directory, and one that dies or hangs."""

import os
import re
import signal
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from edgecache.brain.db.coherence import ACK_LIMIT_S
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

MIB = 2**20
WRITERS = 8


@pytest.fixture
def three(start: Callable[..., Cluster]) -> Cluster:
    """Return three brains with the same ports."""
    return start(brains=3)


def client_of(cluster: Cluster, number: int, tenant: Keys) -> Any:
    """Return a client with a connection to one of the brains."""
    client = connect(tenant, cluster.url)
    with cluster.only(number):
        client.list_buckets()
    return client


def metrics_of(port: int) -> str:
    """Return what Prometheus reads at a port."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        body: str = answer.read().decode()
    return body


def test_each_brain_reports_for_itself_and_the_platform_reads_the_sum(three: Cluster) -> None:
    tenant = three.tenant()
    with closing(connect(tenant, three.url)) as client:
        client.create_bucket(Bucket="docs")
        client.put_object(Bucket="docs", Key="k", Body=b"x" * 1000)
    for number in range(three.brains):
        with closing(client_of(three, number, tenant)) as client:
            client.get_object(Bucket="docs", Key="k")["Body"].read()

    found = {}
    for port in three.metrics_ports:
        pattern = r'^zonal_cache_served_bytes_total\{brain="(\S+)"\} (\d+)$'
        ((brain, served),) = re.findall(pattern, metrics_of(port), re.MULTILINE)
        found[brain] = int(served)
    assert sorted(found.values()) == [1000, 1000, 1000]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        metrics_of(three.internal_port)

    # Each brain writes its counts every ten seconds; any of them reads those of all.
    wait_until(lambda: three.call("GET", "/v1/metrics")["bytes_served"] == 3000)
    assert three.call("GET", "/v1/metrics")["total_hits"] == 3


def test_a_killed_brain_loses_its_running_requests_and_nothing_else(three: Cluster) -> None:
    tenant = three.tenant()
    written: dict[str, bytes] = {}
    failures: Counter[str] = Counter()
    slowest_s = [0.0]
    is_over = False
    with closing(connect(tenant, three.url)) as client:
        client.create_bucket(Bucket="docs")

    def write(name: str) -> None:
        number = 0
        with closing(connect(tenant, three.url)) as client:
            while not is_over:
                key, body = f"{name}-{number}", os.urandom(3000)
                number += 1
                began = time.monotonic()
                try:
                    client.put_object(Bucket="docs", Key=key, Body=body)
                except (BotoCoreError, ClientError) as error:
                    failures[type(error).__name__] += 1
                else:
                    written[key] = body
                slowest_s[0] = max(slowest_s[0], time.monotonic() - began)

    def goes_on() -> None:
        goal = len(written) + 50
        wait_until(lambda: len(written) > goal)

    with ThreadPoolExecutor(WRITERS) as threads:
        running = [threads.submit(write, f"w{number}") for number in range(WRITERS)]
        for victim in range(three.brains):
            goes_on()
            three.kill(victim)
            goes_on()
            three.restart(victim)
            three.wait_for_brain(victim)
        is_over = True
        for each in running:
            each.result()

    # A writer's connection goes with its brain; the next one is another brain's.
    assert set(failures) <= {"ConnectionClosedError"}
    assert failures.total() <= WRITERS * three.brains
    # Others wait until the lease of the dead brain ends.
    assert slowest_s[0] < ACK_LIMIT_S
    with closing(connect(tenant, three.url)) as client:
        for key, body in written.items():
            assert client.get_object(Bucket="docs", Key=key)["Body"].read() == body, key


def test_the_others_go_on_while_a_brain_hangs_and_it_serves_nothing_old_afterwards(
    three: Cluster,
) -> None:
    tenant = three.tenant()
    with closing(client_of(three, 0, tenant)) as of_first:
        of_first.create_bucket(Bucket="docs")
        of_first.put_object(Bucket="docs", Key="k", Body=b"old")
        assert of_first.get_object(Bucket="docs", Key="k")["Body"].read() == b"old"
        os.kill(three.processes[0].pid, signal.SIGSTOP)
        try:
            for number in range(10):
                with closing(connect(tenant, three.url)) as client:
                    client.put_object(Bucket="docs", Key="k", Body=b"%d" % number)
                    read = client.get_object(Bucket="docs", Key="k")
                    assert read["Body"].read() == b"%d" % number
        finally:
            os.kill(three.processes[0].pid, signal.SIGCONT)
        assert of_first.get_object(Bucket="docs", Key="k")["Body"].read() == b"9"


def test_parts_of_uploads_do_not_exceed_the_budget_through_several_brains(
    start: Callable[..., Cluster],
) -> None:
    """An organization's parts may have half of it, with any number of concurrent connections."""
    cluster = start(brains=2, variables={"ZBRAIN_STAGING_MIB": "64"})
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
    files = (cluster.folder / "brain" / "objects").rglob("*")
    stored = sum(file.stat().st_size for file in files if file.is_file())
    assert set(statuses) == {200, 503}
    assert stored == statuses[200] * 5 * MIB <= 64 * MIB
