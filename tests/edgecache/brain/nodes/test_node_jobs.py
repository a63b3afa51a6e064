"""Jobs of nodes: issued, done, failed or not needed any more."""

import secrets

from edgecache.brain.nodes import node_jobs
from edgecache.brain.nodes.tickets import TicketSigner
from edgecache.protocol.tickets import TicketKind
from tests.edgecache.brain.support import (
    ClusterRows,
    Internal,
    Put,
    register,
    text_of,
)
from tests.edgecache.cluster import Cluster
from tests.waiting import wait_until


def test_a_job_is_issued_once_a_minute_until_it_is_done(
    bare_cluster: Cluster, cluster_rows: ClusterRows
) -> None:
    node = register(bare_cluster)
    blob = secrets.token_bytes(32)
    cluster_rows.run(
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'delete', %s)", node.id, blob
    )
    assert node.beat().body["jobs"] == 1

    (job,) = node.say("jobs", method="GET").body["jobs"]
    assert (job["kind"], job["sha256"], job["sources"]) == ("delete", text_of(blob), [])
    assert node.say("jobs", method="GET").body["jobs"] == []

    assert node.say("jobs/done", {"jobs": [{"id": job["id"], "ok": True}]}).status == 200
    assert cluster_rows.value("SELECT count(*) FROM brain_nodejob WHERE sha256 = %s", blob) == 0


def test_a_failing_job_is_retried_later_and_finally_dropped(
    bare_cluster: Cluster, cluster_rows: ClusterRows
) -> None:
    node = register(bare_cluster)
    cluster_rows.run(
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'delete', %s)",
        node.id,
        secrets.token_bytes(32),
    )
    waits = []
    while cluster_rows.value("SELECT count(*) FROM brain_nodejob"):
        cluster_rows.run("UPDATE brain_nodejob SET not_before = now()")
        (job,) = node.say("jobs", method="GET").body["jobs"]
        node.say("jobs/done", {"jobs": [{"id": job["id"], "ok": False, "error": "disk_full"}]})
        found = cluster_rows.all("SELECT extract(epoch FROM not_before - now()) FROM brain_nodejob")
        waits += [float(wait) for (wait,) in found]

    assert len(waits) == 6
    assert waits == sorted(waits)
    assert waits[0] < 6
    assert waits[-1] > 100


def test_a_copy_that_a_node_never_fetches_is_fetched_by_another(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    """The node lives and takes its jobs, and says nothing of them."""
    blob = put(b"two copies")
    holder, silent = register(bare_cluster, port=9101), register(bare_cluster, port=9102)
    holder.beat()
    silent.beat()
    holder.hold((blob, 10))
    for _ in range(3):
        cluster_rows.run("UPDATE brain_nodejob SET not_before = now()")
        wait_until(lambda: silent.say("jobs", method="GET").body["jobs"])

    other = register(bare_cluster, port=9103)

    def is_asked() -> bool:
        for node in (holder, silent, other):
            node.beat()
        return bool(other.say("jobs", method="GET").body["jobs"])

    wait_until(is_asked)


def test_no_more_is_given_out_than_the_tickets_last_for(
    bare_cluster: Cluster, cluster_rows: ClusterRows
) -> None:
    node = register(bare_cluster)
    node.beat()
    for size in (1, node_jobs.TAKEN_BYTES, 1, 1):
        blob = secrets.token_bytes(32)
        cluster_rows.run(
            "INSERT INTO brain_blob (sha256, size, md5, crc32, chunks) VALUES (%s, %s, '', 0, '')",
            blob,
            size,
        )
        cluster_rows.run(
            "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'verify', %s)",
            node.id,
            blob,
        )

    sizes = [[job["size"] for job in node.say("jobs", method="GET").body["jobs"]] for _ in range(3)]

    assert sizes == [[1, node_jobs.TAKEN_BYTES], [1, 1], []]


def test_a_node_that_never_fetches_does_not_delay_the_removal_of_others(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    blob = put(b"two copies")
    leaving, silent = register(bare_cluster, port=9101), register(bare_cluster, port=9102)
    for node in (leaving, silent):
        node.beat()
    leaving.hold((blob, 10))
    for _ in range(3):
        cluster_rows.run("UPDATE brain_nodejob SET not_before = now()")
        wait_until(lambda: silent.say("jobs", method="GET").body["jobs"])
    others = [register(bare_cluster, port=port) for port in (9103, 9104)]
    Internal(bare_cluster)("DELETE", f"/v1/nodes/{leaving.id}")

    def is_removed() -> bool:
        for node in (leaving, silent, *others):
            node.beat()
        for node in others:
            jobs = node.say("jobs", method="GET").body["jobs"]
            node.say("jobs/done", {"jobs": [{"id": job["id"], "ok": True} for job in jobs]})
        status = "SELECT status FROM brain_node WHERE id = %s"
        return bool(cluster_rows.value(status, leaving.id) == "removed")

    wait_until(is_removed)
    assert {node.id for node in others} <= cluster_rows.holders(blob)


def test_a_node_cannot_end_another_node_s_job(
    bare_cluster: Cluster, cluster_rows: ClusterRows
) -> None:
    node, other = register(bare_cluster, port=9101), register(bare_cluster, port=9102)
    cluster_rows.run(
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'delete', %s)",
        node.id,
        secrets.token_bytes(32),
    )
    number = cluster_rows.value("SELECT id FROM brain_nodejob")
    for ok in (True, False):
        other.say("jobs/done", {"jobs": [{"id": number, "ok": ok}]})
    assert cluster_rows.all("SELECT attempts FROM brain_nodejob") == [(0,)]
    wrong = other.say("jobs/done", {"jobs": [{"id": "x", "ok": True}]})
    assert (wrong.status, wrong.fields) == (400, {"jobs[0].id"})


def test_many_jobs_are_ended_by_one_message(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    node, other = register(bare_cluster, port=9101), register(bare_cluster, port=9102)
    node.beat()
    blob = put(b"verified")
    node.hold((blob, 8))
    made = [(node.id, "delete", secrets.token_bytes(32)) for _ in range(5)]
    made += [(node.id, "verify", blob), (node.id, "replicate", blob)]
    made += [(other.id, "delete", secrets.token_bytes(32))]
    cluster_rows.run("DELETE FROM brain_nodejob")
    for row in made:
        cluster_rows.run(
            "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, %s, %s)", *row
        )
    ids = [number for (number,) in cluster_rows.all("SELECT id FROM brain_nodejob ORDER BY id")]

    said = [{"id": number, "ok": True} for number in (2**62, *ids)]
    said[1] |= {"ok": False, "error": "disk_full"}
    assert node.say("jobs/done", {"jobs": said}).status == 200

    left = "SELECT id, not_before > now() FROM brain_nodejob WHERE kind <> 'replicate' ORDER BY id"
    assert cluster_rows.all(left) == [(ids[0], True), (ids[-1], False)]
    assert node.id in cluster_rows.holders(blob)
    # To say it again is harmless.
    assert node.say("jobs/done", {"jobs": said}).status == 200


def test_a_copy_is_fetched_with_a_ticket_from_a_holder(
    bare_cluster: Cluster, cluster_rows: ClusterRows, put: Put
) -> None:
    blob = put(b"copy me")
    holder, asker = register(bare_cluster, port=9101), register(bare_cluster, port=9102)
    holder.beat()
    asker.beat()
    holder.hold((blob, 7))
    cluster_rows.run(
        # The repair may have come first: the blob has one copy and needs two.
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'replicate', %s)"
        " ON CONFLICT DO NOTHING",
        asker.id,
        blob,
    )

    (job,) = asker.say("jobs", method="GET").body["jobs"]

    assert (job["size"], job["sources"][0]["url"]) == (7, "http://127.0.0.1:9101")
    assert job["sources"][0]["is_guarded"] is False
    ticket = TicketSigner(bare_cluster.secret).verify(job["sources"][0]["ticket"])
    assert (ticket.kind, ticket.node_id, ticket.sha256) == (TicketKind.REPLICATE, holder.id, blob)
    asker.say("jobs/done", {"jobs": [{"id": job["id"], "ok": True}]})
    assert asker.id in cluster_rows.holders(blob)


def test_a_copy_without_a_source_is_not_requested(
    bare_cluster: Cluster, cluster_rows: ClusterRows
) -> None:
    node = register(bare_cluster)
    node.beat()
    cluster_rows.run(
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'replicate', %s)",
        node.id,
        secrets.token_bytes(32),
    )
    assert node.say("jobs", method="GET").body["jobs"] == []
    assert cluster_rows.value("SELECT count(*) FROM brain_nodejob") == 0
