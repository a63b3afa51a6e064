"""Receipts of workers: each ticket counts at most once, those of an hour together or not."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.nodes.tickets import TicketGrant, TicketSigner
from edgecache.protocol.tickets import LIFETIME_LIMIT_S, TicketKind
from tests.edgecache.brain.support import (
    FakeWorker,
    Internal,
    register,
)
from tests.edgecache.cluster import Cluster


class Direct:
    """Tickets of clients that read directly from a worker."""

    def __init__(self, brain: Cluster, node: FakeWorker) -> None:
        self.signer = TicketSigner(brain.secret)
        self.node = node

    def ticket(
        self, *, now: float = 0.0, kind: TicketKind = TicketKind.READ, **changes: Any
    ) -> str:
        """Return a ticket for a thousand bytes."""
        node_id = changes.pop("node_id", self.node.id)
        prefix = changes.pop("client_prefix", "203.0.113.0/24")
        leave = TicketGrant(EnvironmentKey(3, 4), 5, bytes(32), 1000)
        return self.signer.sign(kind, node_id, leave, now=now or time.time(), client_prefix=prefix)

    def redeem(self, *lines: tuple[str, int], served_at: float = 0.0) -> Any:
        """Send receipts."""
        moment = int(served_at or time.time())
        return self.send(*((ticket, size, moment) for ticket, size in lines))

    def send(self, *lines: tuple[str, int, int]) -> Any:
        """Send receipts, each with its moment."""
        receipts = [
            {"ticket": ticket, "bytes_served": size, "served_at": served_at}
            for ticket, size, served_at in lines
        ]
        return self.node.say("receipts", {"receipts": receipts})

    def id(self, ticket: str) -> str:
        """Return a ticket's id."""
        return str(self.signer.verify(ticket).id)


@pytest.fixture
def direct(bare_cluster: Cluster) -> Direct:
    """Return tickets for a node in direct mode."""
    return Direct(bare_cluster, register(bare_cluster))


def test_a_receipt_counts_once(bare_cluster: Cluster, direct: Direct) -> None:
    tickets = [direct.ticket(), direct.ticket()]
    batch = [(ticket, 400) for ticket in tickets]

    first = direct.redeem(*batch)
    again = direct.redeem(*batch, batch[0])

    wanted = {direct.id(ticket) for ticket in tickets}
    assert set(first.body["accepted"]) == set(again.body["accepted"]) == wanted
    (line,) = Internal(bare_cluster)("GET", "/v1/usage").body["lines"]
    assert (line["organization_id"], line["environment_pk"], line["bucket_id"]) == (3, 4, 5)
    assert (line["hits"], line["misses"], line["bytes_served"]) == (2, 0, 800)
    assert line["node_id"] == str(direct.node.id)
    metrics = Internal(bare_cluster)("GET", "/v1/metrics").body
    assert (metrics["total_hits"], metrics["bytes_served"]) == (2, 800)


def test_concurrent_receipts_of_one_ticket_count_once(
    bare_cluster: Cluster, direct: Direct
) -> None:
    batch = [(direct.ticket(), 10) for _ in range(20)]
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: direct.redeem(*batch), range(8)))

    assert {answer.status for answer in said} == {200}
    lines = Internal(bare_cluster)("GET", "/v1/usage").body["lines"]
    assert sum(line["hits"] for line in lines) == 20


def test_a_refused_receipt_has_a_reason(direct: Direct) -> None:
    now = time.time()
    refused = {
        direct.ticket(node_id=uuid4()): "receipt_of_another_node",
        direct.ticket(client_prefix=""): "receipt_not_of_a_direct_read",
        direct.ticket(kind=TicketKind.STORE): "receipt_not_of_a_direct_read",
        direct.ticket(now=now - 31 * 86400): "receipt_too_old",
    }
    for ticket, code in refused.items():
        served_at = direct.signer.verify(ticket).issued_at
        said = direct.redeem((ticket, 10), served_at=served_at).body
        assert said["accepted"] == []
        assert said["refused"] == [{"place": 0, "code": code, "id": direct.id(ticket)}]


def test_bytes_over_the_ticket_s_cap_do_not_count(direct: Direct) -> None:
    said = direct.redeem((direct.ticket(), 1001)).body
    assert said["refused"][0]["code"] == "receipt_exceeds_the_ticket"


@pytest.mark.parametrize("late_s", [-3600, LIFETIME_LIMIT_S + 60])
def test_a_read_outside_the_ticket_s_lifetime_does_not_count(direct: Direct, late_s: int) -> None:
    said = direct.redeem((direct.ticket(), 10), served_at=time.time() + late_s).body
    assert said["refused"][0]["code"] == "receipt_not_within_the_ticket"


def test_a_forged_ticket_is_refused_by_its_place(bare_cluster: Cluster, direct: Direct) -> None:
    right = direct.ticket()
    direct.signer = TicketSigner("a secret that a worker made up for itself")
    forged = direct.ticket()
    said = direct.redeem((forged, 10), (right[:-4] + "AAAA", 10), ("nonsense", 10)).body
    codes = ("ticket_key_unknown", "ticket_signature_wrong", "ticket_malformed")
    # What such a ticket says of itself is not repeated.
    nobody = str(UUID(int=0))
    assert said["refused"] == [
        {"place": place, "code": code, "id": nobody} for place, code in enumerate(codes)
    ]
    assert said["accepted"] == []
    assert counted(bare_cluster) == []


def test_one_refused_ticket_keeps_its_hour_from_counting_until_it_is_left_out(
    bare_cluster: Cluster, direct: Direct
) -> None:
    hour = int(time.time()) // 3600 * 3600
    # Two past hours, so that none ends during the test.
    early, late = (
        [(direct.ticket(now=moment), 10, moment) for _ in range(2)]
        for moment in (hour - 7200, hour - 3600)
    )
    wrong = (direct.ticket(now=hour - 3600), 1001, hour - 3600)

    said = direct.send(early[0], late[0], wrong, late[1], early[1]).body

    assert set(said["accepted"]) == {direct.id(one[0]) for one in early}
    (refused,) = said["refused"]
    assert refused == {
        "place": 2,
        "code": "receipt_exceeds_the_ticket",
        "id": direct.id(wrong[0]),
    }
    assert counted(bare_cluster) == [(hour - 7200, 2, 20)]
    assert set(direct.send(*late).body["accepted"]) == {direct.id(one[0]) for one in late}
    assert counted(bare_cluster) == [(hour - 7200, 2, 20), (hour - 3600, 2, 20)]


def counted(cluster: Cluster) -> list[tuple[int, int, int]]:
    """Return hour, hits and bytes of each usage line."""
    lines = Internal(cluster)("GET", "/v1/usage").body["lines"]
    return sorted(
        (int(datetime.fromisoformat(one["used_at"]).timestamp()), one["hits"], one["bytes_served"])
        for one in lines
    )


def test_a_batch_over_the_limit_is_refused(direct: Direct) -> None:
    said = direct.redeem(*[("x", 1)] * 501)
    assert (said.status, said.fields) == (400, {"receipts"})
