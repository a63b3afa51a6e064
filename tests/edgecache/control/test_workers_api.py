"""What nodes say to the brain, and what of it counts."""

import hashlib
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config

from edgecache.brain.delivery import Tenant
from edgecache.brain.tickets import Leave, TicketSigner
from edgecache.protocol.tickets import LIFETIME_LIMIT_S, Kind
from tests.edgecache.control.support import (
    FakeWorker,
    Internal,
    Rows,
    register,
    run_worker,
    wait_until,
)
from tests.edgecache.s3.cluster import Cluster


@pytest.fixture
def rows(brain: Cluster) -> Rows:
    """Give the brain's tables."""
    return Rows(brain.database_url)


Put = Callable[..., bytes]


@pytest.fixture
def put(brain: Cluster) -> Put:
    """Give a way to have an object: some bytes in a new bucket of a new tenant; their hash."""

    def write(data: bytes = b"", *, is_public: bool = False) -> bytes:
        data = data or secrets.token_bytes(100)
        keys = brain.tenant()
        made = brain.call(
            "POST", f"/v1/buckets?{keys.scope}", {"name": "docs", "is_public": is_public}
        )
        assert made["id"]
        client = boto3.client(
            "s3",
            endpoint_url=brain.url,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 1}),
        )
        client.put_object(Bucket="docs", Key="key", Body=data)
        client.close()
        return hashlib.sha256(data).digest()

    return write


def test_a_node_speaks_for_itself_alone(brain: Cluster) -> None:
    one, other = register(brain, port=9101), register(brain, port=9102)
    other.id = one.id
    assert other.beat().status == 401
    assert one.beat().status == 200


@pytest.mark.parametrize("secret", ["", "x", "x" * 43, "ключ-ключ-ключ-ключ"])
def test_a_wrong_credential_is_refused(brain: Cluster, secret: str) -> None:
    node = register(brain)
    node.secret = secret.encode().decode("latin-1")
    said = node.beat()
    assert (said.status, said.code) == (401, "not_authenticated")


def test_the_platforms_secret_opens_nothing_here(brain: Cluster) -> None:
    node = register(brain)
    node.secret = brain.secret
    assert node.beat().status == 401


def test_a_removed_node_hears_that_it_is_gone_and_nobody_else_does(brain: Cluster) -> None:
    node = register(brain)
    Internal(brain)("POST", f"/v1/nodes/{node.id}/quarantine")
    Internal(brain)("DELETE", f"/v1/nodes/{node.id}")

    said = node.beat()
    assert (said.status, said.code) == (410, "node_removed")
    node.secret = "x" * 43
    assert node.beat().status == 401


def test_a_heartbeat_is_answered_with_what_a_worker_has_to_know(brain: Cluster) -> None:
    node = register(brain)
    said = node.beat().body

    assert abs(said["now"] - time.time()) < 5
    assert said["status"] == "active"
    assert said["interval_s"] == 1
    assert said["jobs"] == 0
    assert said["wants_inventory"] is True
    assert len(said["keys"]) == 1


def test_after_a_full_inventory_none_is_wanted_until_the_next_incarnation(brain: Cluster) -> None:
    node = register(brain)
    node.beat()
    node.hold()
    assert node.beat().body["wants_inventory"] is False

    node.incarnation, node.sequence = "second", 0
    assert node.beat().body["wants_inventory"] is True


def test_a_late_heartbeat_means_nothing(brain: Cluster) -> None:
    node = register(brain)
    node.sequence = 10
    node.beat(used_bytes=100)
    node.sequence = 5
    assert node.beat(used_bytes=7).status == 200
    assert Internal(brain)("GET", f"/v1/nodes/{node.id}").body["used_bytes"] == 100


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"used_bytes": -1}, "used_bytes"),
        ({"sequence": "1"}, "sequence"),
        ({"load": None}, "load"),
        ({"capacity_bytes": 0}, "capacity_bytes"),
        ({"endpoint": "nowhere"}, "endpoint"),
        ({"extra": 1}, "extra"),
        ({"used_bytes": 2**63}, "used_bytes"),
    ],
)
def test_a_wrong_heartbeat_names_its_field(
    brain: Cluster, changes: dict[str, Any], field: str
) -> None:
    said = register(brain).beat(**changes)
    assert (said.status, said.fields) == (400, {field})


def test_a_platforms_node_may_move_and_a_strangers_may_not(brain: Cluster) -> None:
    ours = register(brain, port=9101)
    stranger = register(brain, port=9102, organization_id=3, is_trusted=False)

    for node, port in ((ours, 9201), (stranger, 9202)):
        node.beat(endpoint=f"http://127.0.0.1:{port}")

    shown = {
        node["node_id"]: node["endpoint"]
        for node in Internal(brain)("GET", "/v1/nodes").body["nodes"]
    }
    assert shown[str(ours.id)] == "http://127.0.0.1:9201"
    assert shown[str(stranger.id)] == "http://127.0.0.1:9102"


def test_a_node_cannot_move_to_where_another_one_is(brain: Cluster) -> None:
    one, other = register(brain, port=9101), register(brain, port=9102)
    assert other.beat(endpoint="http://127.0.0.1:9101").status == 200
    assert Internal(brain)("GET", f"/v1/nodes/{other.id}").body["endpoint"].endswith(":9102")
    assert one.beat().status == 200


def test_a_stranger_cannot_claim_more_capacity_than_it_registered(brain: Cluster) -> None:
    node = register(brain, organization_id=3)
    node.beat(capacity_bytes=2**60)
    call = Internal(brain)
    assert call("GET", f"/v1/nodes/{node.id}").body["capacity_bytes"] == 2**30
    node.beat(capacity_bytes=1000)
    assert call("GET", f"/v1/nodes/{node.id}").body["capacity_bytes"] == 1000


def test_a_worker_that_says_goodbye_is_offline_at_once(brain: Cluster) -> None:
    node = register(brain)
    node.beat()
    assert Internal(brain)("GET", f"/v1/nodes/{node.id}").body["health"] == "online"
    node.beat(problems=["draining"])
    assert Internal(brain)("GET", f"/v1/nodes/{node.id}").body["health"] == "offline"


def test_an_inventory_tells_where_bytes_are_and_hears_what_nobody_needs(
    brain: Cluster, rows: Rows, put: Put
) -> None:
    known, unknown = put(b"known bytes"), bytes(32)
    node = register(brain)
    node.beat()

    said = node.hold((known, 11), (unknown, 5))

    assert said.body == {"unknown": [unknown.hex()]}
    assert node.id in rows.holders(known)


def test_bytes_of_another_length_are_not_the_bytes(brain: Cluster, rows: Rows, put: Put) -> None:
    known = put(b"eleven byte")
    node = register(brain)
    node.beat()
    assert node.hold((known, 12)).body == {"unknown": [known.hex()]}
    assert node.id not in rows.holders(known)


def test_a_full_inventory_takes_out_what_it_does_not_name(
    brain: Cluster, rows: Rows, put: Put
) -> None:
    first, second, third = put(b"1"), put(b"2"), put(b"3")
    node = register(brain)
    node.beat()
    node.hold((first, 1), (second, 1))

    # In two pages, with a change in between.
    node.hold((second, 1), page=0, last=False)
    node.hold((third, 1), full=False)
    node.hold(page=1)

    held = {blob for blob in (first, second, third) if node.id in rows.holders(blob)}
    assert held == {second, third}


def test_an_interrupted_inventory_takes_nothing_out(brain: Cluster, rows: Rows, put: Put) -> None:
    first = put(b"still here")
    node = register(brain)
    node.beat()
    node.hold((first, 10))
    node.hold(page=0, last=False)
    assert node.id in rows.holders(first)
    assert node.beat().body["wants_inventory"] is True


def test_changes_come_and_go(brain: Cluster, rows: Rows, put: Put) -> None:
    first = put(b"comes and goes")
    node = register(brain)
    node.beat()
    node.hold((first, 14), full=False)
    assert node.id in rows.holders(first)
    node.hold(full=False, removed=[first.hex()])
    assert node.id not in rows.holders(first)


def test_a_stranger_is_told_to_drop_private_bytes(brain: Cluster, rows: Rows, put: Put) -> None:
    private, public = put(b"private"), put(b"public", is_public=True)
    stranger = register(brain, organization_id=3)
    stranger.beat()

    said = stranger.hold((private, 7), (public, 6))

    assert said.body == {"unknown": [private.hex()]}
    assert stranger.id not in rows.holders(private)
    assert stranger.id in rows.holders(public)


def test_what_becomes_private_leaves_a_strangers_node(brain: Cluster, rows: Rows, put: Put) -> None:
    blob = put(b"public no more", is_public=True)
    stranger = register(brain, organization_id=3)
    stranger.beat()
    stranger.hold((blob, 14))
    assert stranger.id in rows.holders(blob)
    number, organization_id, environment_pk = rows.all(
        "SELECT b.id, b.organization_id, b.environment_pk FROM brain_bucket b"
        " JOIN brain_cachedobject c ON c.bucket_id = b.id WHERE c.blob_id = %s",
        blob,
    )[0]

    scope = f"organization_id={organization_id}&environment_pk={environment_pk}"
    said = Internal(brain)("PATCH", f"/v1/buckets/{number}?{scope}", {"is_public": False})
    assert said.status == 200

    def is_gone() -> bool:
        stranger.beat()
        return stranger.id not in rows.holders(blob)

    wait_until(is_gone)
    (job,) = stranger.say("jobs", method="GET").body["jobs"]
    assert (job["kind"], job["sha256"]) == ("delete", blob.hex())


def test_a_pending_nodes_inventory_does_not_count(brain: Cluster, rows: Rows, put: Put) -> None:
    public = put(b"public too", is_public=True)
    stranger = register(brain, organization_id=3, is_trusted=False)
    stranger.beat()
    stranger.hold((public, 10))
    assert stranger.id not in rows.holders(public)


def test_a_job_comes_once_a_minute_until_it_is_done(brain: Cluster, rows: Rows) -> None:
    node = register(brain)
    blob = secrets.token_bytes(32)
    rows.run(
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'delete', %s)", node.id, blob
    )
    assert node.beat().body["jobs"] == 1

    (job,) = node.say("jobs", method="GET").body["jobs"]
    assert (job["kind"], job["sha256"], job["sources"]) == ("delete", blob.hex(), [])
    assert node.say("jobs", method="GET").body["jobs"] == []

    assert node.say(f"jobs/{job['id']}/done", {"ok": True}).status == 200
    assert rows.value("SELECT count(*) FROM brain_nodejob WHERE sha256 = %s", blob) == 0


def test_a_job_that_fails_waits_and_is_given_up_in_the_end(brain: Cluster, rows: Rows) -> None:
    node = register(brain)
    rows.run(
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'delete', %s)",
        node.id,
        secrets.token_bytes(32),
    )
    waits = []
    while rows.value("SELECT count(*) FROM brain_nodejob"):
        rows.run("UPDATE brain_nodejob SET not_before = now()")
        (job,) = node.say("jobs", method="GET").body["jobs"]
        node.say(f"jobs/{job['id']}/done", {"ok": False, "error": "disk_full"})
        found = rows.all("SELECT extract(epoch FROM not_before - now()) FROM brain_nodejob")
        waits += [float(wait) for (wait,) in found]

    assert len(waits) == 6
    assert waits == sorted(waits)
    assert waits[0] < 6
    assert waits[-1] > 100


def test_nobody_ends_another_nodes_job(brain: Cluster, rows: Rows) -> None:
    node, other = register(brain, port=9101), register(brain, port=9102)
    rows.run(
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'delete', %s)",
        node.id,
        secrets.token_bytes(32),
    )
    number = rows.value("SELECT id FROM brain_nodejob")
    for ok in (True, False):
        other.say(f"jobs/{number}/done", {"ok": ok})
    assert rows.all("SELECT attempts FROM brain_nodejob") == [(0,)]
    assert other.say("jobs/x/done", {"ok": True}).status == 404


def test_a_copy_is_fetched_with_a_ticket_from_a_node_that_has_it(
    brain: Cluster, rows: Rows, put: Put
) -> None:
    blob = put(b"copy me")
    holder, asker = register(brain, port=9101), register(brain, port=9102)
    holder.beat()
    asker.beat()
    holder.hold((blob, 7))
    rows.run(
        # Healing may have come first: the blob has one copy, and two are wanted.
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'replicate', %s)"
        " ON CONFLICT DO NOTHING",
        asker.id,
        blob,
    )

    (job,) = asker.say("jobs", method="GET").body["jobs"]

    assert (job["size"], job["sources"][0]["url"]) == (7, "http://127.0.0.1:9101")
    ticket = TicketSigner(brain.secret).verify(job["sources"][0]["ticket"])
    assert (ticket.kind, ticket.node_id, ticket.sha256) == (Kind.REPLICATE, holder.id, blob)
    asker.say(f"jobs/{job['id']}/done", {"ok": True})
    assert asker.id in rows.holders(blob)


def test_a_copy_that_nobody_can_give_is_not_asked_for(brain: Cluster, rows: Rows) -> None:
    node = register(brain)
    node.beat()
    rows.run(
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'replicate', %s)",
        node.id,
        secrets.token_bytes(32),
    )
    assert node.say("jobs", method="GET").body["jobs"] == []
    assert rows.value("SELECT count(*) FROM brain_nodejob") == 0


class Direct:
    """Tickets of clients that read from a worker themselves."""

    def __init__(self, brain: Cluster, node: FakeWorker) -> None:
        self.signer = TicketSigner(brain.secret)
        self.node = node

    def ticket(self, *, now: float = 0.0, kind: Kind = Kind.READ, **changes: Any) -> str:
        """Give one for a thousand bytes."""
        node_id = changes.pop("node_id", self.node.id)
        prefix = changes.pop("client_prefix", "203.0.113.0/24")
        leave = Leave(Tenant(3, 4), 5, bytes(32), 1000)
        return self.signer.sign(kind, node_id, leave, now=now or time.time(), client_prefix=prefix)

    def redeem(self, *lines: tuple[str, int], served_at: float = 0.0) -> Any:
        """Send receipts."""
        receipts = [
            {"ticket": ticket, "bytes_served": size, "served_at": int(served_at or time.time())}
            for ticket, size in lines
        ]
        return self.node.say("receipts", {"receipts": receipts})

    def id(self, ticket: str) -> str:
        """Give a ticket's id."""
        return str(self.signer.verify(ticket).id)


@pytest.fixture
def direct(brain: Cluster) -> Direct:
    """Give a node in direct mode."""
    return Direct(brain, register(brain))


def test_a_receipt_counts_once(brain: Cluster, direct: Direct) -> None:
    tickets = [direct.ticket(), direct.ticket()]
    batch = [(ticket, 400) for ticket in tickets]

    first = direct.redeem(*batch)
    again = direct.redeem(*batch, batch[0])

    wanted = {direct.id(ticket) for ticket in tickets}
    assert set(first.body["accepted"]) == set(again.body["accepted"]) == wanted
    (line,) = Internal(brain)("GET", "/v1/usage").body["lines"]
    assert (line["organization_id"], line["environment_pk"], line["bucket_id"]) == (3, 4, 5)
    assert (line["hits"], line["misses"], line["bytes_served"]) == (2, 0, 800)
    assert line["node_id"] == str(direct.node.id)
    metrics = Internal(brain)("GET", "/v1/metrics").body
    assert (metrics["total_hits"], metrics["bytes_served"]) == (2, 800)


def test_the_same_ticket_sent_by_many_at_once_counts_once(brain: Cluster, direct: Direct) -> None:
    batch = [(direct.ticket(), 10) for _ in range(20)]
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: direct.redeem(*batch), range(8)))

    assert {answer.status for answer in said} == {200}
    lines = Internal(brain)("GET", "/v1/usage").body["lines"]
    assert sum(line["hits"] for line in lines) == 20


def test_what_does_not_count_says_why(direct: Direct) -> None:
    now = time.time()
    refused = {
        direct.ticket(node_id=uuid4()): "receipt_of_another_node",
        direct.ticket(client_prefix=""): "receipt_not_of_a_direct_read",
        direct.ticket(kind=Kind.STORE): "receipt_not_of_a_direct_read",
        direct.ticket(now=now - 31 * 86400): "receipt_too_old",
    }
    for ticket, code in refused.items():
        served_at = direct.signer.verify(ticket).issued_at
        said = direct.redeem((ticket, 10), served_at=served_at).body
        assert said["accepted"] == []
        assert said["refused"] == [{"id": direct.id(ticket), "code": code}]


def test_more_than_the_ticket_allows_does_not_count(direct: Direct) -> None:
    said = direct.redeem((direct.ticket(), 1001)).body
    assert said["refused"][0]["code"] == "receipt_exceeds_the_ticket"


@pytest.mark.parametrize("late_s", [-3600, LIFETIME_LIMIT_S + 60])
def test_a_read_outside_the_tickets_life_does_not_count(direct: Direct, late_s: int) -> None:
    said = direct.redeem((direct.ticket(), 10), served_at=time.time() + late_s).body
    assert said["refused"][0]["code"] == "receipt_not_within_the_ticket"


def test_a_forged_ticket_is_not_even_answered(brain: Cluster, direct: Direct) -> None:
    right = direct.ticket()
    direct.signer = TicketSigner("a secret that a worker made up for itself")
    forged = direct.ticket()
    said = direct.redeem((forged, 10), (right[:-4] + "AAAA", 10), ("nonsense", 10)).body
    assert said == {"accepted": [], "refused": []}
    assert Internal(brain)("GET", "/v1/usage").body["lines"] == []


def test_a_batch_beyond_the_limit_is_refused(direct: Direct) -> None:
    said = direct.redeem(*[("x", 1)] * 501)
    assert (said.status, said.fields) == (400, {"receipts"})


def test_a_strangers_node_proves_its_endpoint_and_is_then_approved(
    start: Callable[..., Cluster],
) -> None:
    brain = start()
    call = Internal(brain)
    node = run_worker(brain, "stranger", organization_id=3, is_trusted=False)
    path = f"/v1/nodes/{node.id}"
    assert call("GET", path).body["status"] == "pending"

    wait_until(lambda: call("GET", path).body["is_proved"])
    assert call("GET", path).body["health"] == "pending"

    approved = call("POST", f"{path}/approve")
    assert (approved.status, approved.body["status"]) == (200, "active")
    wait_until(lambda: call("GET", path).body["health"] == "online")


def test_a_node_that_is_not_at_its_endpoint_is_never_proved(start: Callable[..., Cluster]) -> None:
    brain = start()
    call = Internal(brain)
    victim = run_worker(brain, "victim")
    # The thief registers the endpoint's other name, and speaks to the brain as itself.
    thief = FakeWorker(
        brain,
        call(
            "POST",
            "/v1/nodes",
            {
                "endpoint": f"http://localhost:{victim.port}",
                "region": "eu-central",
                "capacity_bytes": 2**30,
                "organization_id": 3,
            },
        ).body,
    )
    thief.beat()
    wait_until(lambda: "proof_wrong" in brain.log or "node_not_proved" in brain.log)
    assert call("GET", f"/v1/nodes/{thief.id}").body["is_proved"] is False
