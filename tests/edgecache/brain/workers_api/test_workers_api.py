"""The workers API: credentials, heartbeats and proofs of endpoints."""

import time
from collections.abc import Callable
from typing import Any

from tests.edgecache.brain.support import (
    FakeWorker,
    Internal,
    register,
    run_worker,
)
from tests.edgecache.cluster import Cluster
from tests.waiting import wait_until


def test_a_node_cannot_send_messages_for_another_one(bare_cluster: Cluster) -> None:
    one, other = register(bare_cluster, port=9101), register(bare_cluster, port=9102)
    other.id = one.id
    assert other.beat().status == 401
    assert one.beat().status == 200


def test_a_wrong_credential_is_refused(bare_cluster: Cluster) -> None:
    node = register(bare_cluster)
    for secret in ["", "x", "x" * 43, "ключ-ключ-ключ-ключ"]:
        node.secret = secret.encode().decode("latin-1")
        said = node.beat()
        assert (said.status, said.code) == (401, "not_authenticated")


def test_the_platform_s_secret_is_refused(bare_cluster: Cluster) -> None:
    node = register(bare_cluster)
    node.secret = bare_cluster.secret
    assert node.beat().status == 401


def test_only_the_removed_node_itself_gets_410(bare_cluster: Cluster) -> None:
    node = register(bare_cluster)
    Internal(bare_cluster)("POST", f"/v1/nodes/{node.id}/quarantine")
    Internal(bare_cluster)("DELETE", f"/v1/nodes/{node.id}")

    said = node.beat()
    assert (said.status, said.code) == (410, "node_removed")
    node.secret = "x" * 43
    assert node.beat().status == 401


def test_the_response_to_a_heartbeat_has_the_worker_s_configuration(bare_cluster: Cluster) -> None:
    node = register(bare_cluster)
    said = node.beat().body

    assert abs(said["now"] - time.time()) < 5
    assert said["status"] == "active"
    assert said["interval_s"] == 1
    assert said["jobs"] == 0
    assert said["wants_inventory"] is True
    assert len(said["keys"]) == 1


def test_a_full_inventory_is_requested_once_per_incarnation(bare_cluster: Cluster) -> None:
    node = register(bare_cluster)
    node.beat()
    node.hold()
    assert node.beat().body["wants_inventory"] is False

    node.incarnation, node.sequence = "second", 0
    assert node.beat().body["wants_inventory"] is True


def test_a_late_heartbeat_is_ignored(bare_cluster: Cluster) -> None:
    node = register(bare_cluster)
    node.sequence = 10
    node.beat(used_bytes=100)
    node.sequence = 5
    assert node.beat(used_bytes=7).status == 200
    assert Internal(bare_cluster)("GET", f"/v1/nodes/{node.id}").body["used_bytes"] == 100


def test_a_wrong_heartbeat_is_refused_with_its_field(bare_cluster: Cluster) -> None:
    node = register(bare_cluster)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"used_bytes": -1}, "used_bytes"),
        ({"sequence": "1"}, "sequence"),
        ({"load": None}, "load"),
        ({"capacity_bytes": 0}, "capacity_bytes"),
        ({"endpoint": "nowhere"}, "endpoint"),
        ({"extra": 1}, "extra"),
        ({"used_bytes": 2**63}, "used_bytes"),
    ]
    for changes, field in cases:
        said = node.beat(**changes)
        assert (said.status, said.fields) == (400, {field})


def test_a_platform_node_may_change_its_endpoint_and_a_foreign_one_may_not(
    bare_cluster: Cluster,
) -> None:
    ours = register(bare_cluster, port=9101)
    stranger = register(bare_cluster, port=9102, organization_id=3, is_trusted=False)

    for node, port in ((ours, 9201), (stranger, 9202)):
        node.beat(endpoint=f"http://127.0.0.1:{port}")

    shown = {
        node["node_id"]: node["endpoint"]
        for node in Internal(bare_cluster)("GET", "/v1/nodes").body["nodes"]
    }
    assert shown[str(ours.id)] == "http://127.0.0.1:9201"
    assert shown[str(stranger.id)] == "http://127.0.0.1:9102"


def test_a_node_cannot_take_another_node_s_endpoint(bare_cluster: Cluster) -> None:
    one, other = register(bare_cluster, port=9101), register(bare_cluster, port=9102)
    assert other.beat(endpoint="http://127.0.0.1:9101").status == 200
    assert Internal(bare_cluster)("GET", f"/v1/nodes/{other.id}").body["endpoint"].endswith(":9102")
    assert one.beat().status == 200


def test_a_foreign_node_cannot_claim_more_capacity_than_it_registered(
    bare_cluster: Cluster,
) -> None:
    node = register(bare_cluster, organization_id=3)
    node.beat(capacity_bytes=2**60)
    call = Internal(bare_cluster)
    assert call("GET", f"/v1/nodes/{node.id}").body["capacity_bytes"] == 2**30
    node.beat(capacity_bytes=1000)
    assert call("GET", f"/v1/nodes/{node.id}").body["capacity_bytes"] == 1000


def test_a_worker_that_signs_off_is_offline_immediately(bare_cluster: Cluster) -> None:
    node = register(bare_cluster)
    node.beat()
    assert Internal(bare_cluster)("GET", f"/v1/nodes/{node.id}").body["health"] == "online"
    node.beat(problems=["draining"])
    assert Internal(bare_cluster)("GET", f"/v1/nodes/{node.id}").body["health"] == "offline"


def test_a_foreign_node_is_approved_after_it_proved_its_endpoint(
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


def test_a_node_that_is_not_at_its_endpoint_is_never_verified(
    start: Callable[..., Cluster],
) -> None:
    brain = start()
    call = Internal(brain)
    victim = run_worker(brain, "victim")
    # The attacker registers another name of the endpoint and sends its own heartbeats.
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
