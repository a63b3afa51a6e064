"""Workers that lie, stall, die in the middle.

The client gets right bytes or an error, and the node is marked.
"""

import contextlib
import hashlib
import http.client
import os
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from cryptography.fernet import Fernet

from edgecache.brain.delivery import nginx_offload
from tests.edgecache.conftest import connect
from tests.edgecache.databases import brain_database
from tests.edgecache.delivery import faulty_workers
from tests.edgecache.delivery.faulty_workers import Illness, Proxy
from tests.edgecache.s3.cluster import Cluster, until
from tests.edgecache.s3.raw import Signer, send
from tests.ports import free_port

SMALL = os.urandom(5000)
LARGE = os.urandom(3 * 2**20 + 5)
# As many as tests ask for one.
UNREAD = 16
BODIES = {"small": SMALL, "large": LARGE}


class Ward:
    """A brain whose two workers can be made ill, and a bucket with objects on both of them."""

    def __init__(self, cluster: Cluster, proxies: list[Proxy], database_url: str) -> None:
        self.cluster, self.proxies = cluster, proxies
        self.database_url = database_url
        self.keys = cluster.tenant()
        self.signer = Signer(self.keys, cluster.url)
        self.s3 = connect(self.keys, cluster.url)
        self.s3.create_bucket(Bucket="ward")
        self.put()
        self.unread = {f"unread-{number}": os.urandom(5000) for number in range(UNREAD)}
        for key, body in self.unread.items():
            self.s3.put_object(Bucket="ward", Key=key, Body=body)
        until(lambda: all(self.holders(body) == 2 for body in self.unread.values()))

    def put(self) -> None:
        """Store the objects, and wait until both workers hold them."""
        for key, body in BODIES.items():
            self.s3.put_object(Bucket="ward", Key=key, Body=body)
        until(lambda: all(self.holders(body) == 2 for body in BODIES.values()))

    def fresh(self) -> tuple[str, bytes]:
        """Give key and bytes of a small object that nobody has read: no memory answers for it."""
        return self.unread.popitem()

    @property
    def asked(self) -> int:
        """How often a worker was asked since it fell ill."""
        return sum(proxy.answered for proxy in self.proxies)

    def holders(self, body: bytes) -> int:
        """Give the number of nodes that hold a body, as the directory says."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            row = connection.execute(
                "SELECT count(*) FROM brain_location WHERE blob_id = %s",
                [hashlib.sha256(body).digest()],
            ).fetchone()
        assert row is not None
        return int(row[0])

    def statuses(self) -> list[str]:
        """Give the status of each node."""
        return [node["status"] for node in self.nodes()]

    def nodes(self) -> list[dict[str, Any]]:
        """Give the nodes."""
        rows: list[dict[str, Any]] = self.cluster.call("GET", "/v1/nodes")["nodes"]
        return rows

    def infect(self, *illnesses: Illness) -> None:
        """Make the proxies ill, each in its way."""
        for proxy, illness in zip(self.proxies, illnesses, strict=True):
            proxy.illness = illness
            proxy.answered = 0

    def heal(self) -> None:
        """Make all well, and believe them again."""
        self.infect(faulty_workers.healthy, faulty_workers.healthy)
        until(self._are_believed)

    def _are_believed(self) -> bool:
        # A node that was found out a moment ago may be barred only now.
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
        """Give what a plain client gets; HTTPException when it is cut off."""
        answer = self.signer.send(
            "GET", f"/ward/{key}", headers={n.replace("_", "-"): v for n, v in headers.items()}
        )
        assert answer.status in {200, 206}, answer.body
        return answer.body


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    """Give a brain of its own, whose nodes may be barred."""
    proxies: list[Proxy] = []
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(brain_database())
        secret_keys = Fernet.generate_key().decode()
        cluster = Cluster(tmp_path_factory.mktemp("hospital"), url, secret_keys, workers=0)
        stack.callback(cluster.stop)
        cluster.start()
        for number in range(2):
            port = free_port()
            proxies.append(Proxy(port))
            stack.callback(proxies[-1].stop)
            cluster.add_worker(f"worker{number}", through=proxies[-1].port, port=port)
        until(lambda: sum(n["health"] == "online" for n in _nodes(cluster)) == 2)
        yield Ward(cluster, proxies, url)


def _nodes(cluster: Cluster) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cluster.call("GET", "/v1/nodes")["nodes"]
    return rows


@pytest.fixture
def ward(hospital: Ward) -> Iterator[Ward]:
    """Give it with everybody well, and leave it so."""
    hospital.heal()
    yield hospital
    hospital.configure(verifies_reads=False)
    hospital.heal()


def test_healthy_workers_serve(ward: Ward) -> None:
    for key, body in BODIES.items():
        assert ward.get(key) == body
    assert ward.asked >= 2
    assert ward.get("large", range="bytes=1048570-1048580") == LARGE[1048570:1048581]


def test_what_no_worker_took_gets_its_copies_once_they_are_well(ward: Ward) -> None:
    body = os.urandom(7000)
    for proxy in ward.proxies:
        proxy.refuses_copies = True
    ward.s3.put_object(Bucket="ward", Key="later", Body=body)
    # One that failed often before rests up to half a minute.
    until(lambda: any(proxy.refused for proxy in ward.proxies), seconds=60)
    assert ward.holders(body) == 0

    for proxy in ward.proxies:
        proxy.refuses_copies = False

    until(lambda: ward.holders(body) == 2, seconds=60)


ILLNESSES = [
    faulty_workers.dies_before,
    faulty_workers.dies_midway,
    faulty_workers.fails,
    faulty_workers.speaks_nonsense,
    faulty_workers.shortens,
    faulty_workers.lengthens,
]


@pytest.mark.parametrize("illness", ILLNESSES, ids=lambda illness: illness.__name__)
@pytest.mark.parametrize("size", ["small", "large"])
def test_the_client_does_not_notice(ward: Ward, illness: Illness, size: str) -> None:
    key, body = ward.fresh() if size == "small" else ("large", LARGE)
    ward.infect(illness, illness)
    assert ward.get(key) == body
    assert ward.get(key, range="bytes=100-2999") == body[100:3000]
    assert ward.asked >= 1
    assert '"event":"node_failed"' in ward.cluster.log


def test_a_worker_that_stalls_is_left_for_another(ward: Ward) -> None:
    ward.infect(faulty_workers.stalls_before, faulty_workers.stalls_midway)
    assert ward.get("large") == LARGE


def test_one_that_dies_midway_is_followed_at_its_byte(ward: Ward) -> None:
    ward.infect(faulty_workers.dies_midway, faulty_workers.dies_midway)
    ranges: list[bytes] = []

    def noting(passage: faulty_workers.Passage) -> None:
        ranges.append(passage.head)
        faulty_workers.healthy(passage)

    # Whichever of both comes first, the other one gives the rest.
    ward.proxies[0].illness = faulty_workers.dies_midway
    ward.proxies[1].illness = noting
    for _ in range(4):
        assert ward.get("large") == LARGE
    assert ranges


def test_one_that_lost_its_bytes_is_asked_no_more(ward: Ward) -> None:
    key, body = ward.fresh()
    ward.infect(faulty_workers.has_lost_it, faulty_workers.has_lost_it)
    assert ward.get(key) == body
    until(lambda: ward.holders(body) == 0)
    asked = ward.asked
    assert ward.get(key) == body
    assert ward.asked == asked


@pytest.mark.parametrize("illness", [faulty_workers.altered, faulty_workers.altered_last])
def test_a_small_lie_is_found_before_it_is_told(ward: Ward, illness: Illness) -> None:
    key, body = ward.fresh()
    ward.infect(illness, illness)
    for _ in range(3):
        assert ward.get(key) == body
    until(lambda: "quarantined" in ward.statuses())


@pytest.mark.parametrize("illness", [faulty_workers.altered, faulty_workers.altered_last])
def test_no_part_of_a_small_object_is_a_lie(ward: Ward, illness: Illness) -> None:
    key, body = ward.fresh()
    ward.infect(illness, illness)
    for start in (0, 2400, 4990):
        span = f"bytes={start}-{start + 9}"
        assert ward.get(key, range=span) == body[start : start + 10]
    until(lambda: "quarantined" in ward.statuses())


def test_what_is_read_often_is_answered_from_memory(ward: Ward) -> None:
    key, body = ward.fresh()
    for _ in range(3):
        assert ward.get(key) == body
    ward.infect(faulty_workers.altered, faulty_workers.altered)
    for _ in range(20):
        assert ward.get(key, range="bytes=7-4000") == body[7:4001]
    # One read in 64 asks a worker all the same.
    assert ward.asked < 10

    ward.s3.delete_object(Bucket="ward", Key=key)
    assert ward.signer.send("GET", f"/ward/{key}").status == 404


@pytest.mark.parametrize("illness", [faulty_workers.altered, faulty_workers.altered_last])
def test_a_large_lie_cuts_the_connection_and_bars_the_node(ward: Ward, illness: Illness) -> None:
    ward.infect(illness, illness)
    outcomes: list[str] = []
    for _ in range(4):
        try:
            assert ward.get("large") == LARGE
            outcomes.append("right")
        except (http.client.IncompleteRead, ConnectionError):
            outcomes.append("cut")
    assert outcomes[0] == "cut"
    # Both are barred by and by; then the brain's own copy answers.
    assert outcomes[-1] == "right"
    until(lambda: ward.statuses() == ["quarantined", "quarantined"])


@pytest.mark.parametrize(
    "illness", [faulty_workers.altered, faulty_workers.altered_last, faulty_workers.dies_midway]
)
def test_a_verified_bucket_has_no_errors_at_all(ward: Ward, illness: Illness) -> None:
    ward.configure(verifies_reads=True)
    ward.infect(illness, illness)
    assert ward.get("large") == LARGE
    assert ward.get("large", range="bytes=1000000-2500000") == LARGE[1000000:2500001]
    assert ward.get("small", range="bytes=10-20") == SMALL[10:21]
    # On both sides of a MiB: the second of them is the altered one.
    assert ward.get("large", range="bytes=1048570-1048580") == LARGE[1048570:1048581]


def test_boto3_notices_nothing_of_a_death(ward: Ward) -> None:
    ward.infect(faulty_workers.dies_midway, faulty_workers.dies_midway)
    got = ward.s3.get_object(Bucket="ward", Key="large", ChecksumMode="ENABLED")
    assert got["Body"].read() == LARGE


def test_the_last_resort_is_not_needed_while_a_worker_is_well(ward: Ward) -> None:
    for first, second in (
        (faulty_workers.fails, faulty_workers.healthy),
        (faulty_workers.healthy, faulty_workers.fails),
    ):
        ward.infect(first, second)
        assert ward.get("large") == LARGE


def test_nginx_is_told_of_no_file_of_a_worker_that_lied(ward: Ward) -> None:
    ward.configure(is_public=True)
    names = [nginx_offload.store_name(UUID(node["node_id"])) for node in ward.nodes()]
    beside = {
        "x-zonal-gateway": nginx_offload.token_of(ward.cluster.secret),
        "x-zonal-client": "203.0.113.9",
        "x-zonal-stores": " ".join(names),
    }
    bucket = ward.cluster.call("GET", f"/v1/buckets?{ward.keys.scope}")["buckets"][0]

    def told() -> str:
        answer = send(ward.cluster.url, "GET", f"/{bucket['public_name']}/small", beside)
        # A spot check is sent by the brain itself.
        return answer.headers.get("x-accel-redirect", "")

    until(lambda: told().startswith("/.zonal-store/"))
    assert any(told() for _ in range(5))
    ward.infect(faulty_workers.altered, faulty_workers.altered)
    for _ in range(4):
        with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
            ward.get("large")
    until(lambda: ward.statuses() == ["quarantined", "quarantined"])
    assert not any(told() for _ in range(20))
