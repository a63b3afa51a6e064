"""Inventories: the disk decides what a node holds, the brain what it may hold."""

import time

import pytest

from tests.edgecache.brain.support import (
    ClusterRows,
    FakeWorker,
    Internal,
    Put,
    register,
    text_of,
)
from tests.edgecache.cluster import Cluster
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def test_an_inventory_records_locations_and_returns_unneeded_blobs(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    known, unknown = put(b"known bytes"), bytes(32)
    node = register(bare_cluster)
    node.beat()

    said = node.hold((known, 11), (unknown, 5))

    assert said.body == {"unknown": [text_of(unknown)]}
    assert node.id in cluster_rows.holders(known)


def test_a_blob_of_the_wrong_length_is_not_recorded(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    known = put(b"eleven byte")
    node = register(bare_cluster)
    node.beat()
    assert node.hold((known, 12)).body == {"unknown": [text_of(known)]}
    assert node.id not in cluster_rows.holders(known)


def test_a_full_inventory_removes_locations_that_it_does_not_name(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    first, second, third = put(b"1"), put(b"2"), put(b"3")
    node = register(bare_cluster)
    node.beat()
    node.hold((first, 1), (second, 1))

    # In two pages, with a change between them.
    node.hold((second, 1), page=0, last=False)
    node.hold((third, 1), full=False)
    node.hold(page=1)

    held = {blob for blob in (first, second, third) if node.id in cluster_rows.holders(blob)}
    assert held == {second, third}


def test_an_interrupted_inventory_removes_no_locations(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    first = put(b"still here")
    node = register(bare_cluster)
    node.beat()
    node.hold((first, 10))
    node.hold(page=0, last=False)
    assert node.id in cluster_rows.holders(first)
    assert node.beat().body["wants_inventory"] is True


def test_changes_add_and_remove_locations(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    first = put(b"comes and goes")
    node = register(bare_cluster)
    node.beat()
    node.hold((first, 14), full=False)
    assert node.id in cluster_rows.holders(first)
    node.hold(full=False, removed=[text_of(first)])
    assert node.id not in cluster_rows.holders(first)


def test_an_excess_copy_that_is_reported_late_is_deleted(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    nodes = [register(bare_cluster, port=9101 + number) for number in range(3)]
    blob = put(b"three times")
    for node in nodes:
        node.beat()
    for node in nodes[:2]:
        node.hold((blob, 11))
    _wait_for_repair(cluster_rows, nodes)

    # As after a fetch with an unreported completion.
    nodes[2].hold((blob, 11), full=False)

    wait_until(lambda: [node.beat() for node in nodes] and len(cluster_rows.holders(blob)) == 2)
    (job,) = cluster_rows.all("SELECT node_id, kind FROM brain_nodejob WHERE sha256 = %s", blob)
    assert job[0] not in cluster_rows.holders(blob)
    assert job[1] == "delete"


def test_a_copy_from_an_unneeded_fetch_is_deleted(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    nodes = [register(bare_cluster, port=9101 + number) for number in range(3)]
    blob = put(b"fetched in vain")
    for node in nodes:
        node.beat()
    for node in nodes[:2]:
        node.hold((blob, 15))
    _wait_for_repair(cluster_rows, nodes)
    cluster_rows.run(
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'replicate', %s)",
        nodes[2].id,
        blob,
    )

    (job,) = nodes[2].say("jobs", method="GET").body["jobs"]
    nodes[2].say("jobs/done", {"jobs": [{"id": job["id"], "ok": True}]})

    wait_until(lambda: [node.beat() for node in nodes] and len(cluster_rows.holders(blob)) == 2)


@pytest.mark.parametrize("how", ["reported", "full inventory", "late deletion"])
def test_a_copy_that_a_node_lost_is_made_again(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put, how: str
) -> None:
    nodes = [register(bare_cluster, port=9101 + number) for number in range(2)]
    blob = put(how.encode())
    for node in nodes:
        node.beat()
        node.hold((blob, len(how)))
    _wait_for_repair(cluster_rows, nodes)

    if how == "reported":
        nodes[0].hold(full=False, removed=[text_of(blob)])
    elif how == "full inventory":
        nodes[0].hold()
    else:
        # The node took the job, and got the bytes again, before it deleted them.
        cluster_rows.run("DELETE FROM brain_location WHERE node_id = %s", nodes[0].id)
        cluster_rows.run(
            "INSERT INTO brain_nodejob (sha256, node_id, kind) VALUES (%s, %s, 'delete')",
            blob,
            nodes[0].id,
        )
        (job,) = nodes[0].say("jobs", method="GET").body["jobs"]
        nodes[0].hold((blob, len(how)), full=False)
        nodes[0].say("jobs/done", {"jobs": [{"id": job["id"], "ok": True}]})

    query = "SELECT kind FROM brain_nodejob WHERE sha256 = %s AND node_id = %s"
    wait_until(
        lambda: (
            [node.beat() for node in nodes]
            and cluster_rows.all(query, blob, nodes[0].id) == [("replicate",)]
        )
    )


def test_a_foreign_node_is_asked_to_delete_private_bytes(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    private, public = put(b"private"), put(b"public", is_public=True)
    stranger = register(bare_cluster, organization_id=3)
    stranger.beat()

    said = stranger.hold((private, 7), (public, 6))

    assert said.body == {"unknown": [text_of(private)]}
    assert stranger.id not in cluster_rows.holders(private)
    assert stranger.id in cluster_rows.holders(public)


def test_an_object_that_becomes_private_is_deleted_from_a_foreign_node(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    blob = put(b"public no more", is_public=True)
    stranger = register(bare_cluster, organization_id=3)
    stranger.beat()
    stranger.hold((blob, 14))
    assert stranger.id in cluster_rows.holders(blob)
    number, organization_id, environment_pk = cluster_rows.all(
        "SELECT b.id, b.organization_id, b.environment_pk FROM brain_bucket b"
        " JOIN brain_cachedobject c ON c.bucket_id = b.id WHERE c.blob_id = %s",
        blob,
    )[0]

    scope = f"organization_id={organization_id}&environment_pk={environment_pk}"
    said = Internal(bare_cluster)("PATCH", f"/v1/buckets/{number}?{scope}", {"is_public": False})
    assert said.status == 200

    def is_gone() -> bool:
        stranger.beat()
        return stranger.id not in cluster_rows.holders(blob)

    wait_until(is_gone)
    (job,) = stranger.say("jobs", method="GET").body["jobs"]
    assert (job["kind"], job["sha256"]) == ("delete", text_of(blob))


def test_the_inventory_of_a_pending_node_is_ignored(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    public = put(b"public too", is_public=True)
    stranger = register(bare_cluster, organization_id=3, is_trusted=False)
    stranger.beat()
    stranger.hold((public, 10))
    assert stranger.id not in cluster_rows.holders(public)


def _wait_for_repair(rows: ClusterRows, nodes: list[FakeWorker]) -> None:
    """Wait for the end of the repair that new nodes trigger."""
    for _ in range(4):
        for node in nodes:
            node.beat()
        time.sleep(0.6)
    rows.run("DELETE FROM brain_nodejob")
