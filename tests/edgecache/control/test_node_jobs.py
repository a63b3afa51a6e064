"""Jobs of nodes: issued, done, failed or not needed any more."""

import secrets

from edgecache.brain.nodes.tickets import TicketSigner
from edgecache.protocol.tickets import TicketKind
from tests.edgecache.control.support import (
    Put,
    Rows,
    register,
)
from tests.edgecache.s3.cluster import Cluster


def test_a_job_is_issued_once_a_minute_until_it_is_done(brain: Cluster, rows: Rows) -> None:
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


def test_a_failing_job_is_retried_later_and_finally_dropped(brain: Cluster, rows: Rows) -> None:
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


def test_a_node_cannot_end_another_node_s_job(brain: Cluster, rows: Rows) -> None:
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


def test_a_copy_is_fetched_with_a_ticket_from_a_holder(
    brain: Cluster, rows: Rows, put: Put
) -> None:
    blob = put(b"copy me")
    holder, asker = register(brain, port=9101), register(brain, port=9102)
    holder.beat()
    asker.beat()
    holder.hold((blob, 7))
    rows.run(
        # The repair may have come first: the blob has one copy and needs two.
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'replicate', %s)"
        " ON CONFLICT DO NOTHING",
        asker.id,
        blob,
    )

    (job,) = asker.say("jobs", method="GET").body["jobs"]

    assert (job["size"], job["sources"][0]["url"]) == (7, "http://127.0.0.1:9101")
    ticket = TicketSigner(brain.secret).verify(job["sources"][0]["ticket"])
    assert (ticket.kind, ticket.node_id, ticket.sha256) == (TicketKind.REPLICATE, holder.id, blob)
    asker.say(f"jobs/{job['id']}/done", {"ok": True})
    assert asker.id in rows.holders(blob)


def test_a_copy_without_a_source_is_not_requested(brain: Cluster, rows: Rows) -> None:
    node = register(brain)
    node.beat()
    rows.run(
        "INSERT INTO brain_nodejob (node_id, kind, sha256) VALUES (%s, 'replicate', %s)",
        node.id,
        secrets.token_bytes(32),
    )
    assert node.say("jobs", method="GET").body["jobs"] == []
    assert rows.value("SELECT count(*) FROM brain_nodejob") == 0
