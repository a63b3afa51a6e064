"""Nodes that wait for approval: few for each organization, and none for ever."""

from typing import Any

from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.nodes.registration import PENDING_LIMIT, remove_unproved
from tests.edgecache.brain.support import ApiAnswer, ClusterRows, Internal, register
from tests.edgecache.cluster import Cluster

WAITING = """
    INSERT INTO brain_node (id, organization_id, endpoint, region, capacity_bytes, status,
                            secret_hash)
    SELECT gen_random_uuid(), 5, 'http://203.0.113.1:' || n, 'eu-central', 1, 'pending', ''
    FROM generate_series(1, %s) AS n
"""


def registered(call: Internal, port: int, **changes: Any) -> ApiAnswer:
    """Register a node of an operator's."""
    endpoint = f"http://203.0.113.2:{port}"
    body = {"organization_id": 5, "region": "eu-central", "capacity_bytes": 1, "endpoint": endpoint}
    return call("POST", "/v1/nodes", body | changes)


def test_an_organization_has_a_limited_number_of_nodes_that_wait_for_approval(
    bare_cluster: Cluster, cluster_rows: ClusterRows
) -> None:
    call = Internal(bare_cluster)
    cluster_rows.run(WAITING, PENDING_LIMIT - 1)

    last, beyond = registered(call, 1), registered(call, 2)

    assert last.status == 201
    assert (beyond.status, beyond.code) == (409, "not_possible")
    assert registered(call, 3, organization_id=6).status == 201
    # Neither nodes in service nor removed ones count.
    cluster_rows.run("UPDATE brain_node SET status = 'active' WHERE id = %s", last.body["node_id"])
    another = registered(call, 4)
    assert another.status == 201
    assert registered(call, 5).status == 409
    assert call("DELETE", f"/v1/nodes/{another.body['node_id']}").status == 204
    assert registered(call, 6).status == 201


async def test_a_node_that_has_not_proved_its_endpoint_in_30_days_is_removed(
    bare_cluster: Cluster, cluster_rows: ClusterRows
) -> None:
    young, proved, approved, old = (
        register(bare_cluster, port=9101 + place, organization_id=5, is_trusted=False)
        for place in range(4)
    )
    cluster_rows.run(
        "UPDATE brain_node SET created_at = now() - interval '31 days' WHERE id <> %s", young.id
    )
    cluster_rows.run("UPDATE brain_node SET proved_at = now() WHERE id = %s", proved.id)
    cluster_rows.run("UPDATE brain_node SET status = 'active' WHERE id = %s", approved.id)

    database = BrainDatabase(bare_cluster.database_url, max_connections=2)
    await database.start()
    await remove_unproved(database)
    await database.stop()

    gone = cluster_rows.all("SELECT id FROM brain_node WHERE status = 'removed'")
    assert gone == [(old.id,)]
    # Its endpoint is free again, and its worker learns that it was removed.
    register(bare_cluster, port=9104, organization_id=5)
    assert old.beat().status == 410
