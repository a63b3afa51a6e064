"""An operator reads others' public objects through its own node, to be paid for it."""

import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from edgecache.brain.conf.operators import CreditLimits
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.metering.creditable_reads import CreditableReads
from edgecache.brain.metering.hourly_counts import HOURS_KEPT, MAX_KEYS_OF_OWNER, HourlyCounts
from edgecache.brain.nodes.tickets import TicketGrant, TicketSigner
from edgecache.http.addresses import prefix_of
from edgecache.protocol.tickets import TicketKind
from tests.edgecache.brain.support import ClusterRows, FakeWorker, Internal, register, run_worker
from tests.edgecache.cluster import Cluster, Keys, until
from tests.edgecache.conftest import connect

OPERATOR = 4242
# By then every brain knows a new node.
LEARNED_S = 4.0
ALICE = EnvironmentKey(1, 11)
NODE = UUID(int=5)
LIMITS = CreditLimits(hits=3, limit_bytes=1000)


class Operators:
    """One operator's node, and what the brain knows of its networks."""

    organization_id = OPERATOR
    endpoint = "http://203.0.113.9:9101"

    def get(self, node_id: UUID) -> Any:
        return self if node_id == NODE else None

    def of(self, operator_id: int) -> frozenset[str]:
        return (
            frozenset({"198.51.100.0/24", "2001:db8:7:100::/56"})
            if operator_id == 4242
            else frozenset()
        )


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def judge(clock: Clock) -> CreditableReads:
    known: Any = Operators()
    return CreditableReads(known, known, LIMITS, clock=clock)


@pytest.mark.parametrize(
    "client",
    [
        "198.51.100.77",
        "::ffff:198.51.100.1",
        "203.0.113.200",
        "2001:db8:7:1ff::9",
        "198.51.100.0/24",
    ],
)
def test_reads_from_networks_of_the_operators_own_earn_nothing(client: str) -> None:
    clock = Clock()
    assert not judge(clock).is_creditable(ALICE, 1, NODE, client, 10, clock.now)


def test_a_rented_network_earns_up_to_a_limit_for_each_bucket_and_hour() -> None:
    clock = Clock()
    reads = judge(clock)

    def earned(client: str, times: int = 6, *, bucket: int = 1, size: int = 10) -> int:
        read = (ALICE, bucket, NODE, client, size, clock.now)
        return sum(reads.is_creditable(*read) for _ in range(times))

    assert earned("192.0.2.1", 2) + earned("192.0.2.254", 4) == 3
    assert earned("192.0.3.1") == earned("192.0.2.1", bucket=2) == 3
    assert earned("192.0.4.1", size=500) == 2
    # Clients that hide their address share one limit.
    assert earned("", 2) + earned("unknown", 4) == 3
    clock.now += 3600
    assert earned("192.0.2.1") == 3
    # Reads from the platform's own nodes, and of the operator's own buckets, are not counted.
    for tenant, node in ((EnvironmentKey(OPERATOR, 1), NODE), (ALICE, UUID(int=6))):
        read = (tenant, 1, node, "192.0.2.1", 1, clock.now)
        assert all(reads.is_creditable(*read) for _ in range(9))


def test_the_limit_is_of_the_hour_of_the_reads_whenever_they_are_redeemed() -> None:
    clock = Clock()
    reads, read_at, earned = judge(clock), clock.now, []
    for _ in range(HOURS_KEPT + 2):
        late = [reads.is_creditable(ALICE, 1, NODE, "192.0.2.1", 10, read_at) for _ in range(2)]
        earned.append(sum(late))
        clock.now += 3600
        # Reads since then have their own limit.
        assert reads.is_creditable(ALICE, 1, NODE, "192.0.2.1", 10, clock.now)
    assert earned == [2, 1, 0, 0, 0, 0, 0, 0]


def test_a_read_earns_until_five_hours_after_its_hour() -> None:
    clock = Clock()
    reads = judge(clock)
    ages = range(HOURS_KEPT + 2)
    earned = [
        reads.is_creditable(ALICE, 1, NODE, "192.0.2.1", 10, clock.now - 3600 * age) for age in ages
    ]
    assert earned == [age < HOURS_KEPT for age in ages]


def test_one_operator_s_flood_of_networks_earns_no_more_and_leaves_others_their_credit() -> None:
    counts = HourlyCounts()

    def add(owner: int, number: int, hour: int = 1) -> tuple[int, int] | None:
        return counts.add((owner, number), 10, hour=hour, now_hour=hour)

    assert all(add(1, number) == (1, 10) for number in range(MAX_KEYS_OF_OWNER))
    assert add(1, -1) is None
    assert add(1, 0) == (2, 20)
    assert add(2, 0) == (1, 10)
    # All keys are taken, until their hour is forgotten.
    assert all(add(3, number) for number in range(MAX_KEYS_OF_OWNER - 1))
    assert add(4, 0) is None
    assert add(4, 0, hour=1 + HOURS_KEPT) == add(1, 0, hour=1 + HOURS_KEPT) == (1, 10)


def test_prefixes_are_those_that_one_customer_has() -> None:
    assert prefix_of("2001:db8:0:12ff::1") == prefix_of("2001:db8:0:1200::/64")
    assert prefix_of("nonsense") == ""


@pytest.fixture
def keys(bare_cluster: Cluster) -> Keys:
    return bare_cluster.tenant()


@pytest.fixture
def public(bare_cluster: Cluster, keys: Keys) -> Iterator[str]:
    """Return the path of a public object that one operator's node holds."""
    with published(bare_cluster, keys) as path:
        yield path


@contextmanager
def published(cluster: Cluster, keys: Keys) -> Iterator[str]:
    """Run an operator's node that holds a public object; yield its path."""
    worker = run_worker(cluster, "own", organization_id=OPERATOR)
    store = connect(keys, cluster.url)
    made = cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "docs", "is_public": True})
    store.put_object(Bucket="docs", Key="key", Body=b"x" * 1000)
    store.close()
    rows = ClusterRows(cluster.database_url)
    until(lambda: bool(rows.value("SELECT count(*) FROM brain_location")))
    yield f"/{made['public_name']}/key"
    worker.kill()


@pytest.mark.slow
def test_each_brain_of_a_machine_credits_its_part_of_the_limit(
    start: Callable[..., Cluster],
) -> None:
    cluster = start(brains=2, variables={"ZCACHE_CREDIT_HITS": "6"})
    keys = cluster.tenant()
    with published(cluster, keys) as path, ExitStack() as stack:
        opened = [connection_from("127.0.6.7", cluster) for _ in range(2)]
        for number, connection in enumerate(opened):
            stack.callback(connection.close)
            with cluster.only(number):
                connection.connect()
                connection.request("GET", "/-/readyz")
                connection.getresponse().read()
        made, end = 0, time.monotonic() + LEARNED_S

        def read_until_learned() -> bool:
            nonlocal made
            for connection in opened:
                made += 1
                connection.request("GET", path)
                assert connection.getresponse().read() == b"x" * 1000
            return time.monotonic() > end

        until(read_until_learned)

        def hits() -> int:
            lines = Internal(cluster)("GET", "/v1/usage").body["lines"]
            return sum(one["hits"] for one in lines if one["environment_pk"] == keys.environment_pk)

        # Each brain writes its counts every ten seconds.
        until(lambda: hits() == made)
        counted = credited(cluster, keys.organization_id)
        assert sum(line[1] for line in counted if line[0]) == 6


def connection_from(source: str, cluster: Cluster) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(
        "127.0.0.1", cluster.port, timeout=10, source_address=(source, 0)
    )


def read_from(cluster: Cluster, source: str, path: str) -> None:
    connection = connection_from(source, cluster)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert (answer.status, len(answer.read())) == (200, 1000)
    connection.close()


def test_a_presigned_address_read_from_its_own_network_earns_nothing(
    bare_cluster: Cluster, keys: Keys, public: str
) -> None:
    """Whoever signed it: the reader's network decides, and the consumer pays in any case."""
    internal = Internal(bare_cluster)
    body = {"networks": ["127.0.5.0/24"]}
    assert internal("PUT", f"/v1/operators/{OPERATOR}/networks", body).status == 204
    store = connect(keys, bare_cluster.url)
    wanted = {"Bucket": "docs", "Key": "key"}
    address = urlsplit(store.generate_presigned_url("get_object", Params=wanted))
    store.close()
    for source in ("127.0.5.7", "127.0.6.7", "127.0.5.8"):
        read_from(bare_cluster, source, f"{address.path}?{address.query}")
    assert credited(bare_cluster, keys.organization_id) == [(False, 2, 2000), (True, 1, 1000)]


def test_direct_reads_from_its_own_network_and_beyond_the_limit_earn_nothing(
    bare_cluster: Cluster,
) -> None:
    node = register(bare_cluster, organization_id=OPERATOR)
    internal = Internal(bare_cluster)
    body = {"networks": ["198.51.100.0/24"]}
    assert internal("PUT", f"/v1/operators/{OPERATOR}/networks", body).status == 204

    def redeem(network: str, length: int, times: int) -> None:
        direct_reads(bare_cluster, node, network, length, times=times)

    redeem("198.51.100.0/24", 10, 3)
    # From elsewhere: 10 GiB in an hour for a bucket, and from a third network as much again.
    redeem("203.0.113.0/24", 6 * 2**30, 2)
    redeem("192.0.2.0/24", 6 * 2**30, 1)
    assert credited(bare_cluster, ALICE.organization_id) == [
        (False, 4, 30 + 6 * 2**30),
        (True, 2, 12 * 2**30),
    ]


def test_a_quarantined_node_earns_nothing_for_receipts_that_it_kept(bare_cluster: Cluster) -> None:
    """The consumer pays for what was read all the same."""
    node = register(bare_cluster, organization_id=OPERATOR)
    direct_reads(bare_cluster, node, "203.0.113.0/24", 10)
    assert Internal(bare_cluster)("POST", f"/v1/nodes/{node.id}/quarantine", {}).status == 200
    direct_reads(bare_cluster, node, "203.0.113.0/24", 20)
    assert Internal(bare_cluster)("POST", f"/v1/nodes/{node.id}/approve").status == 200
    direct_reads(bare_cluster, node, "203.0.113.0/24", 40)
    assert credited(bare_cluster, ALICE.organization_id) == [(False, 1, 20), (True, 2, 50)]


def test_each_hour_of_late_receipts_has_its_limit_and_older_ones_earn_nothing(
    bare_cluster: Cluster,
) -> None:
    node = register(bare_cluster, organization_id=OPERATOR)
    network, size = "203.0.113.0/24", 6 * 2**30
    # After an outage: each hour alone is below 10 GiB.
    direct_reads(bare_cluster, node, network, size, age_s=2 * 3600)
    direct_reads(bare_cluster, node, network, size, age_s=4 * 3600)
    # Kept until the platform no longer knows that the network was the operator's.
    direct_reads(bare_cluster, node, network, 10, age_s=29 * 86_400)
    assert credited(bare_cluster, ALICE.organization_id) == [
        (False, 1, 10),
        (True, 1, size),
        (True, 1, size),
    ]


def direct_reads(
    cluster: Cluster,
    node: FakeWorker,
    network: str,
    length: int,
    *,
    times: int = 1,
    age_s: float = 0,
) -> None:
    """Have a node redeem tickets of Alice's bucket, read from a network some seconds ago."""
    signer, served_at = TicketSigner(cluster.secret), time.time() - age_s
    lines = []
    for _ in range(times):
        grant = TicketGrant(ALICE, 5, bytes(32), length)
        ticket = signer.sign(TicketKind.READ, node.id, grant, now=served_at, client_prefix=network)
        lines.append({"ticket": ticket, "bytes_served": length, "served_at": int(served_at)})
    assert len(node.say("receipts", {"receipts": lines}).body["accepted"]) == times


def credited(cluster: Cluster, organization_id: int) -> list[tuple[bool, int, int]]:
    """Return whether the operator is credited, hits and bytes, of a consumer's usage lines."""
    return sorted(
        (line["is_creditable"], line["hits"], line["bytes_served"])
        for line in Internal(cluster)("GET", "/v1/usage").body["lines"]
        if line["organization_id"] == organization_id and line["operator_id"] == OPERATOR
    )


def test_the_attack_from_its_own_networks_is_charged_and_earns_nothing(
    bare_cluster: Cluster, cluster_rows: ClusterRows, keys: Keys, public: str
) -> None:
    internal = Internal(bare_cluster)
    body = {"networks": ["127.0.5.0/24", "127.0.9.1"]}
    assert internal("PUT", f"/v1/operators/{OPERATOR}/networks", body).status == 204
    for source in ("127.0.5.1", "127.0.9.200", "127.0.6.1"):
        read_from(bare_cluster, source, public)
    assert credited(bare_cluster, keys.organization_id) == [(False, 2, 2000), (True, 1, 1000)]
    # The list replaces what was there, and a wrong one changes nothing.
    wrong = {"networks": ["127.0.5.0/24"] * 2000}
    assert internal("PUT", f"/v1/operators/{OPERATOR}/networks", wrong).status == 400
    internal("PUT", f"/v1/operators/{OPERATOR}/networks", {"networks": []})
    known = "SELECT prefix FROM brain_operatornetwork WHERE source = 'session'"
    assert cluster_rows.all(known) == []
    # His node connects from this machine, which says nothing here.
    nodes = "SELECT prefix FROM brain_operatornetwork WHERE source = 'node' AND operator_id = %s"
    assert cluster_rows.value(nodes, OPERATOR) == "127.0.0.0/24"
