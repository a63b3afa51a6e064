"""Two brains on one database: shared decisions, and failover."""

import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import boto3
import brotli
import pytest
from cryptography.fernet import Fernet

from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.brain.support import (
    ClusterRows,
    FakeWorker,
    Internal,
    health_of,
    register,
    run_worker,
)
from tests.edgecache.cluster import Cluster
from tests.edgecache.databases import brain_database
from tests.ports import free_port
from tests.table_cleanup import empty
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

Start = Callable[..., Cluster]
Pair = tuple[Cluster, Cluster]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Return two brains on one database, for tests that stop neither."""
    secret_keys = Fernet.generate_key().decode()
    with brain_database() as url, ExitStack() as stack:
        first = Cluster(tmp_path_factory.mktemp("first"), url, secret_keys, workers=0)
        second = Cluster(
            tmp_path_factory.mktemp("second"), url, secret_keys, workers=0, secret=first.secret
        )
        for brain in (first, second):
            stack.callback(brain.end)
            brain.start()
        yield first, second


@pytest.fixture
def rows(running: Pair) -> ClusterRows:
    """Return their tables without nodes."""
    found = ClusterRows(running[0].database_url)
    empty(found, ("brain_node", "brain_usagecounter", "brain_usageline", "brain_measurement"))
    return found


@pytest.fixture
def pair(running: Pair, rows: ClusterRows) -> Pair:
    """Return two brains without nodes."""
    return running


def voice_on(brain: Cluster, node: FakeWorker) -> FakeWorker:
    """Return a fake worker that sends a node's messages to another brain."""
    made = FakeWorker(brain, {"node_id": str(node.id), "node_secret": node.secret})
    made.incarnation, made.sequence = node.incarnation, node.sequence
    return made


def test_a_node_registered_with_one_brain_is_known_to_the_other(pair: Pair) -> None:
    first, second = pair
    node = register(first)
    assert voice_on(second, node).beat().status == 200
    wait_until(lambda: Internal(first)("GET", "/v1/status").body["online_nodes"] == 1)
    wait_until(lambda: Internal(second)("GET", "/v1/status").body["online_nodes"] == 1)


def test_a_decision_of_one_brain_applies_on_the_other_when_it_returns(pair: Pair) -> None:
    first, second = pair
    node = register(first)
    other = voice_on(second, node)
    other.beat()

    Internal(first)("POST", f"/v1/nodes/{node.id}/quarantine")
    assert other.beat().body["status"] == "quarantined"
    Internal(first)("DELETE", f"/v1/nodes/{node.id}")
    assert other.beat().status == 410


def test_both_brains_sign_with_the_same_key(pair: Pair) -> None:
    first, second = pair
    node = register(first)
    assert node.beat().body["keys"] == voice_on(second, node).beat().body["keys"]


def test_pages_of_an_inventory_may_go_to_different_brains(pair: Pair, rows: ClusterRows) -> None:
    first, second = pair
    node = register(first)
    node.beat()
    node.hold(page=0, last=False)
    other = voice_on(second, node)
    other.hold(page=1)
    assert other.beat().body["wants_inventory"] is False
    assert rows.value("SELECT inventory_of FROM brain_node") == "first"


def test_an_access_key_that_one_brain_deletes_is_refused_by_the_other(pair: Pair) -> None:
    first, second = pair
    keys = first.tenant()
    assert second.call("GET", f"/v1/access-keys?{keys.scope}")["access_keys"]
    Internal(first)("DELETE", f"/v1/access-keys/{keys.access_key}?{keys.scope}")
    assert second.call("GET", f"/v1/access-keys?{keys.scope}")["access_keys"] == []


def test_a_purge_at_one_brain_ends_what_the_other_has_compressed(pair: Pair) -> None:
    first, second = pair
    keys = first.tenant()
    row = first.call("POST", f"/v1/buckets?{keys.scope}", {"name": "site", "is_public": True})
    path, accepts = f"/p/{row['public_name']}/a.css", {"accept-encoding": "br"}

    def put(text: bytes) -> None:
        signer = Signer(keys, first.url)
        assert signer.send("PUT", "/site/a.css", text, {"content-type": "text/css"}).status == 200

    for text in (b"old " * 1000, b"new " * 1000, b"old " * 1000):
        put(text)
        for brain in (second, first, second):
            found = send(brain.url, "GET", path, accepts)
            assert found.headers["content-encoding"] == "br"
            assert brotli.decompress(found.body) == text
    tenant = {"organization_id": keys.organization_id, "environment_pk": keys.environment_pk}
    for body in ({"keys": ["site/a.css"]}, {"prefix": "site/"}):
        assert first.call("POST", "/v1/purge", tenant | body)["objects_purged"] == 1
        found = send(second.url, "GET", path, accepts)
        assert brotli.decompress(found.body) == text
        assert not found.headers["cache-status"].startswith("Zonal; hit")
    Signer(keys, first.url).send("DELETE", "/site/a.css")
    assert send(second.url, "GET", path, accepts).status == 404


def test_the_second_brain_repairs_after_the_first_one_died(start: Start, database_url: str) -> None:
    first, second = start(), start()
    worker = run_worker(second, "worker0")
    run_worker(second, "worker1", region="us-east")
    wait_until(lambda: health_of(second, worker) == "online")
    first.brain.send_signal(signal.SIGKILL)
    first.brain.wait(10)

    # One job is left to issue: this node will be removed.
    Internal(second)("DELETE", f"/v1/nodes/{worker.id}")

    wait_until(
        lambda: (
            ClusterRows(database_url).value(
                "SELECT status FROM brain_node WHERE id = %s", worker.id
            )
            == "removed"
        )
    )


def test_written_metrics_include_both_brains(start: Start, database_url: str) -> None:
    pair = start(), start()
    for _ in range(2):
        ClusterRows(database_url).run(
            "INSERT INTO brain_measurement (brain_id, minute, hits, misses, bytes_served,"
            " latencies) VALUES (gen_random_uuid(), date_trunc('minute', now()), 3, 1, 10,"
            ' \'{"counts": {"300": 4}, "total_us": 40000}\')'
        )
    for brain in pair:
        said = Internal(brain)("GET", "/v1/metrics").body
        assert (said["total_hits"], said["total_misses"], said["bytes_served"]) == (6, 2, 20)
        assert said["hit_ratio"] == 0.75
        assert said["avg_latency_ms"] == 10.0
        assert said["p99_latency_ms"] == said["p95_latency_ms"] > 0


def test_a_stopping_brain_writes_its_counters(start: Start, database_url: str) -> None:
    brain = start()
    keys = brain.tenant()
    brain.call("POST", f"/v1/buckets?{keys.scope}", {"name": "docs"})
    client = boto3.client(
        "s3",
        endpoint_url=brain.url,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        region_name="us-east-1",
    )
    data = secrets.token_bytes(1000)
    client.put_object(Bucket="docs", Key="key", Body=data)
    client.get_object(Bucket="docs", Key="key")["Body"].read()
    client.close()

    brain.brain.send_signal(signal.SIGTERM)
    assert brain.brain.wait(20) == 0

    (line,) = ClusterRows(database_url).all(
        "SELECT organization_id, environment_pk, bytes_served FROM brain_usagecounter"
    )
    assert line == (keys.organization_id, keys.environment_pk, 1000)


def test_workers_reconnect_to_another_brain_on_the_same_port(start: Start) -> None:
    port = free_port()
    first = start(worker_port=port)
    worker = run_worker(first, "worker0")
    wait_until(lambda: health_of(first, worker) == "online")
    first.brain.send_signal(signal.SIGKILL)
    first.brain.wait(10)

    second = start(worker_port=port)
    wait_until(lambda: health_of(second, worker) == "online")
