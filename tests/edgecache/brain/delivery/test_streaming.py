"""Workers that send wrong bytes, stall, or die in the middle.

The client gets right bytes or an error, and the node is marked.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from cryptography.fernet import Fernet

from tests.edgecache.brain.delivery import faulty_workers
from tests.edgecache.brain.delivery.faulty_workers import Fault, Proxy
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster, until
from tests.edgecache.conftest import connect
from tests.edgecache.databases import brain_database, own_files
from tests.ports import free_port

pytestmark = pytest.mark.slow

SMALL = os.urandom(5000)
LARGE = os.urandom(3 * 2**20 + 5)
# As many as tests need.
UNREAD = 24
BODIES = {"small": SMALL, "large": LARGE}


class FaultyCluster:
    """A brain with two workers that can be made faulty, and a bucket with objects on both."""

    def __init__(self, cluster: Cluster, proxies: list[Proxy], database_url: str) -> None:
        self.cluster, self.proxies = cluster, proxies
        self._broken_at = 0
        self.database_url = database_url
        self.keys = cluster.tenant()
        self.signer = Signer(self.keys, cluster.url)
        self.s3 = connect(self.keys, cluster.url)
        self.s3.create_bucket(Bucket="faulty")
        self.put()
        self.unread = {f"unread-{number}": os.urandom(5000) for number in range(UNREAD)}
        for key, body in self.unread.items():
            self.s3.put_object(Bucket="faulty", Key=key, Body=body)
        until(lambda: all(self.holders(body) == 2 for body in self.unread.values()))

    def put(self) -> None:
        """Store the objects, and wait until both workers hold them."""
        for key, body in BODIES.items():
            self.s3.put_object(Bucket="faulty", Key=key, Body=body)
        until(lambda: all(self.holders(body) == 2 for body in BODIES.values()))
        # A brain does not send a link's file itself, but falls back on it.
        sha256, folder = hashlib.sha256(LARGE).digest(), self.cluster.folder
        for file in own_files(self.database_url, folder / "brain", sha256):
            if not file.is_symlink():
                file.replace(folder / file.name)
                file.symlink_to(folder / file.name)

    def fresh(self) -> tuple[str, bytes]:
        """Return key and bytes of a small object that was never read, and so is not in memory."""
        return self.unread.popitem()

    @property
    def asked(self) -> int:
        """How many requests the workers got since they became faulty."""
        return sum(proxy.answered for proxy in self.proxies)

    def holders(self, body: bytes) -> int:
        """Return how many nodes hold a body, by the directory."""
        return len(self.copies(body))

    def copies(self, body: bytes) -> set[tuple[str, ...]]:
        """Return the copies of a body, by the directory; one that was made again is another one."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT node_id::text, xmin::text FROM brain_location WHERE blob_id = %s",
                [hashlib.sha256(body).digest()],
            )
            return set(rows.fetchall())

    def own(self, organization_id: int | None) -> None:
        """Make the nodes an operator's; None: the platform's."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute("UPDATE brain_node SET organization_id = %s", [organization_id])
        wanted = organization_id is not None
        until(lambda: all(bool(node["organization_id"]) is wanted for node in self.nodes()))

    def statuses(self) -> list[str]:
        """Return the status of each node."""
        return [node["status"] for node in self.nodes()]

    def nodes(self) -> list[dict[str, Any]]:
        """Return the nodes."""
        rows: list[dict[str, Any]] = self.cluster.call("GET", "/v1/nodes")["nodes"]
        return rows

    def break_workers(self, *illnesses: Fault) -> None:
        """Make the workers faulty, each in its way."""
        self._broken_at = len(self.cluster.log)
        for proxy, fault in zip(self.proxies, illnesses, strict=True):
            proxy.fault = fault
            proxy.answered = 0

    def logs(self, text: str) -> None:
        """Wait until the brain has logged a text since the workers became faulty."""
        until(lambda: text in self.cluster.log[self._broken_at :])

    def make_healthy(self) -> None:
        """Make all workers healthy, approve them again, and wait for what they hold."""
        self.break_workers(faulty_workers.healthy, faulty_workers.healthy)
        until(self._are_believed)
        until(lambda: all(self.holders(body) == 2 for body in BODIES.values()))

    def _are_believed(self) -> bool:
        # A node that sent wrong bytes a moment ago may be barred only now.
        for node in self.nodes():
            if node["status"] == "quarantined":
                self.cluster.call("POST", f"/v1/nodes/{node['node_id']}/approve", {})
        return self.statuses() == ["active", "active"]

    def configure(self, **switches: bool) -> None:
        """Change the bucket."""
        scope = self.keys.scope
        found = self.cluster.call("GET", f"/v1/buckets?{scope}")["buckets"][0]
        self.cluster.call("PATCH", f"/v1/buckets/{found['id']}?{scope}", switches)

    def get(self, key: str, **headers: str) -> bytes:
        """Return what a plain client gets; HTTPException if the connection is cut."""
        answer = self.signer.send(
            "GET", f"/faulty/{key}", headers={n.replace("_", "-"): v for n, v in headers.items()}
        )
        assert answer.status in {200, 206}, answer.body
        return answer.body


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyCluster]:
    """Run a separate brain with nodes that may be barred."""
    proxies: list[Proxy] = []
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(brain_database())
        secret_keys = Fernet.generate_key().decode()
        cluster = Cluster(tmp_path_factory.mktemp("hospital"), url, secret_keys, workers=0)
        stack.callback(cluster.end)
        cluster.start()
        for number in range(2):
            port = free_port()
            proxies.append(Proxy(port))
            stack.callback(proxies[-1].stop)
            cluster.add_worker(f"worker{number}", through=proxies[-1].port, port=port)
        until(lambda: sum(n["health"] == "online" for n in _nodes(cluster)) == 2)
        yield FaultyCluster(cluster, proxies, url)


def _nodes(cluster: Cluster) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cluster.call("GET", "/v1/nodes")["nodes"]
    return rows


@pytest.fixture
def faulty(hospital: FaultyCluster) -> Iterator[FaultyCluster]:
    """Return it with healthy workers, and leave it so."""
    hospital.make_healthy()
    yield hospital
    hospital.configure(verifies_reads=False)
    hospital.make_healthy()


def test_healthy_workers_serve(faulty: FaultyCluster) -> None:
    for key, body in BODIES.items():
        assert faulty.get(key) == body
    assert faulty.asked >= 2
    assert faulty.get("large", range="bytes=1048570-1048580") == LARGE[1048570:1048581]


def test_missing_replicas_are_made_once_workers_recover(faulty: FaultyCluster) -> None:
    body = os.urandom(7000)
    for proxy in faulty.proxies:
        proxy.refuses_copies = True
    faulty.s3.put_object(Bucket="faulty", Key="later", Body=body)
    # A node that failed often is not asked for up to half a minute.
    until(lambda: any(proxy.refused for proxy in faulty.proxies), seconds=60)
    assert faulty.holders(body) == 0

    for proxy in faulty.proxies:
        proxy.refuses_copies = False

    until(lambda: faulty.holders(body) == 2, seconds=60)


ILLNESSES = [
    faulty_workers.dies_before,
    faulty_workers.dies_midway,
    faulty_workers.fails,
    faulty_workers.speaks_nonsense,
    faulty_workers.shortens,
    faulty_workers.lengthens,
]


@pytest.mark.parametrize("fault", ILLNESSES, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("size", ["small", "large"])
def test_a_failing_worker_is_invisible_to_the_client(
    faulty: FaultyCluster, fault: Fault, size: str
) -> None:
    key, body = faulty.fresh() if size == "small" else ("large", LARGE)
    faulty.break_workers(fault, fault)
    assert faulty.get(key) == body
    assert faulty.get(key, range="bytes=100-2999") == body[100:3000]
    assert faulty.asked >= 1
    # What comes after a whole body is not read.
    if fault is not faulty_workers.lengthens:
        faulty.logs('"event":"node_failed"')


def test_a_stalled_worker_is_replaced_by_another(faulty: FaultyCluster) -> None:
    faulty.break_workers(faulty_workers.stalls_before, faulty_workers.stalls_midway)
    assert faulty.get("large") == LARGE


def test_workers_that_drip_are_replaced(faulty: FaultyCluster) -> None:
    faulty.break_workers(faulty_workers.drips, faulty_workers.drips)
    assert faulty.get("large") == LARGE
    faulty.logs('"reason":"too_slow')


def test_a_worker_that_never_gets_to_the_end_is_avoided(faulty: FaultyCluster) -> None:
    """Its head is quick each time, and no success."""
    faulty.break_workers(faulty_workers.dies_midway, faulty_workers.dies_midway)
    for _ in range(3):
        assert faulty.get("large") == LARGE
    faulty.logs('"in_a_row":3')


def test_another_worker_continues_where_one_died(faulty: FaultyCluster) -> None:
    faulty.break_workers(faulty_workers.dies_midway, faulty_workers.dies_midway)
    ranges: list[bytes] = []

    def noting(passage: faulty_workers.Passage) -> None:
        ranges.append(passage.head)
        faulty_workers.healthy(passage)

    # Whichever is asked first, the other one sends the rest.
    faulty.proxies[0].fault = faulty_workers.dies_midway
    faulty.proxies[1].fault = noting
    for _ in range(4):
        assert faulty.get("large") == LARGE
    assert ranges


def test_a_worker_that_lost_the_bytes_is_asked_again_once_it_has_them(
    faulty: FaultyCluster,
) -> None:
    key, body = faulty.fresh()
    faulty.break_workers(faulty_workers.has_lost_it, faulty_workers.has_lost_it)
    for proxy in faulty.proxies:
        proxy.refuses_copies = True
    assert faulty.get(key) == body
    until(lambda: faulty.holders(body) == 0)
    asked = faulty.asked
    assert faulty.get(key) == body
    assert faulty.asked == asked

    for proxy in faulty.proxies:
        proxy.refuses_copies = False
    until(lambda: faulty.holders(body) == 2, seconds=60)


@pytest.mark.parametrize("fault", [faulty_workers.altered, faulty_workers.altered_last])
def test_wrong_bytes_of_a_small_object_are_never_sent(faulty: FaultyCluster, fault: Fault) -> None:
    key, body = faulty.fresh()
    copies = faulty.copies(body)
    faulty.break_workers(fault, fault)
    for _ in range(3):
        assert faulty.get(key) == body
    # Both copies are dropped, and no node is taken out for one bad file.
    until(lambda: not copies & faulty.copies(body))
    assert faulty.statuses() == ["active", "active"]


@pytest.mark.parametrize("fault", [faulty_workers.altered, faulty_workers.altered_last])
def test_ranges_of_a_small_object_are_never_wrong(faulty: FaultyCluster, fault: Fault) -> None:
    key, body = faulty.fresh()
    copies = faulty.copies(body)
    faulty.break_workers(fault, fault)
    for start in (0, 2400, 4990):
        span = f"bytes={start}-{start + 9}"
        assert faulty.get(key, range=span) == body[start : start + 10]
    # Both copies are dropped, and no node is taken out for one bad file.
    until(lambda: not copies & faulty.copies(body))
    assert faulty.statuses() == ["active", "active"]


def test_an_object_that_is_read_often_is_served_from_memory(faulty: FaultyCluster) -> None:
    key, body = faulty.fresh()
    for _ in range(3):
        assert faulty.get(key) == body
    faulty.break_workers(faulty_workers.altered, faulty_workers.altered)
    for _ in range(20):
        assert faulty.get(key, range="bytes=7-4000") == body[7:4001]
    # One read in 64 is a spot check.
    assert faulty.asked < 10

    faulty.s3.delete_object(Bucket="faulty", Key=key)
    assert faulty.signer.send("GET", f"/faulty/{key}").status == 404


@pytest.mark.parametrize("fault", [faulty_workers.altered, faulty_workers.altered_last])
def test_wrong_bytes_of_a_large_object_are_never_sent(faulty: FaultyCluster, fault: Fault) -> None:
    faulty.break_workers(fault, fault)
    assert faulty.get("large", range="bytes=1572800-1572900") == LARGE[1572800:1572901]
    for _ in range(3):
        assert faulty.get("large") == LARGE
    assert faulty.statuses() == ["active", "active"]


@pytest.mark.parametrize(
    "fault", [faulty_workers.altered, faulty_workers.altered_last, faulty_workers.dies_midway]
)
def test_a_bucket_with_verified_reads_never_sends_wrong_bytes(
    faulty: FaultyCluster, fault: Fault
) -> None:
    faulty.configure(verifies_reads=True)
    faulty.break_workers(fault, fault)
    assert faulty.get("large") == LARGE
    assert faulty.get("large", range="bytes=1000000-2500000") == LARGE[1000000:2500001]
    assert faulty.get("small", range="bytes=10-20") == SMALL[10:21]
    # On both sides of a chunk boundary: the second chunk is altered.
    assert faulty.get("large", range="bytes=1048570-1048580") == LARGE[1048570:1048581]


def test_a_worker_that_broke_off_is_not_paid_for_what_the_brain_sends(
    faulty: FaultyCluster,
) -> None:
    after = faulty.cluster.call("GET", "/v1/usage")["next"]
    # Two of many blocks were right, and were sent on.
    faulty.break_workers(faulty_workers.altered, faulty_workers.altered)
    faulty.configure(verifies_reads=True)
    assert faulty.get("large") == LARGE
    lines = faulty.cluster.call("GET", f"/v1/usage?after={after}")["lines"]
    assert [(line["node_id"], line["bytes_served"]) for line in lines] == [(None, len(LARGE))]


def test_a_dying_worker_is_invisible_to_boto3(faulty: FaultyCluster) -> None:
    faulty.break_workers(faulty_workers.dies_midway, faulty_workers.dies_midway)
    got = faulty.s3.get_object(Bucket="faulty", Key="large", ChecksumMode="ENABLED")
    assert got["Body"].read() == LARGE


def test_the_fallback_is_not_used_while_a_worker_is_healthy(faulty: FaultyCluster) -> None:
    for first, second in (
        (faulty_workers.fails, faulty_workers.healthy),
        (faulty_workers.healthy, faulty_workers.fails),
    ):
        faulty.break_workers(first, second)
        assert faulty.get("large") == LARGE


def test_an_operator_s_node_is_taken_out_after_wrong_objects(faulty: FaultyCluster) -> None:
    owner = faulty.keys.organization_id
    faulty.own(owner)
    try:
        faulty.break_workers(faulty_workers.altered, faulty_workers.altered)

        # A brain takes a node out for three wrong blobs, never for one.
        wrong = [faulty.fresh() for _ in range(3)]

        def are_out() -> bool:
            for key, body in wrong:
                assert faulty.get(key) == body
            # Large objects come from the workers each time, as memory keeps small ones only.
            assert faulty.get("large") == LARGE
            return faulty.statuses() == ["quarantined", "quarantined"]

        # Again and again, as a node that failed is left alone for a while.
        until(are_out, seconds=60)
    finally:
        faulty.own(None)
