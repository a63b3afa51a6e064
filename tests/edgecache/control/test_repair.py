"""Real workers that die, stall, lie, drain and come back: every object has its copies again."""

import hashlib
import secrets
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from edgecache.brain.nodes.hot_objects import HOT_READS
from edgecache.protocol.hot import OBJECT_LIMIT_BYTES
from tests.edgecache.control.support import (
    Internal,
    Rows,
    RunningWorker,
    health_of,
    run_worker,
    start_again,
)
from tests.edgecache.s3.cluster import Cluster
from tests.waiting import wait_until

OBJECTS = 12
# What is smaller is soon answered from the brain's memory.
SIZE = OBJECT_LIMIT_BYTES + 1


@dataclass
class Site:
    """A brain with workers, and a bucket with objects that have their copies."""

    brain: Cluster
    workers: list[RunningWorker]
    rows: Rows
    client: Any
    objects: dict[str, bytes]
    tenant: dict[str, int]

    def worker(self, node_id: UUID) -> RunningWorker:
        """Find a worker by its node."""
        return next(worker for worker in self.workers if worker.id == node_id)

    def read_all(self) -> None:
        """Read every object; each has the right bytes."""
        for key, data in self.objects.items():
            assert self.client.get_object(Bucket="docs", Key=key)["Body"].read() == data

    def holders(self) -> dict[str, set[UUID]]:
        """Return each object's nodes."""
        return {
            key: self.rows.holders(hashlib.sha256(data).digest())
            for key, data in self.objects.items()
        }

    def settle(self, copies: int, *, but: UUID | None = None) -> None:
        """Wait until each object has so many copies, that node's not counted."""

        def is_settled() -> bool:
            return all(len(nodes - {but}) == copies for nodes in self.holders().values())

        try:
            wait_until(is_settled)
        except AssertionError as late:
            jobs = self.rows.all("SELECT node_id, kind, sha256, not_before FROM brain_nodejob")
            events = [line for line in self.brain.log.splitlines() if "object_request" not in line]
            told = "\n".join(map(str, [self.holders(), jobs, *events]))
            raise AssertionError(told) from late

    def busiest(self) -> RunningWorker:
        """Return the worker that holds the most."""
        held = [node for nodes in self.holders().values() for node in nodes]
        return self.worker(max(set(held), key=held.count))

    def purge(self, key: str) -> None:
        """Take an object out of the cache; the built-in origin keeps it."""
        wanted = self.tenant | {"keys": [f"docs/{key}"]}
        assert self.brain.call("POST", "/v1/purge", wanted)["objects_purged"] == 1

    def keeps(self, worker: RunningWorker, data: bytes) -> bool:
        """True if a worker means to keep some bytes; what it does not goes after its lease."""
        folder = self.brain.folder / f"worker{self.workers.index(worker)}"
        with closing(sqlite3.connect(folder / "inventory.sqlite3")) as inventory:
            row = inventory.execute(
                "SELECT unlink_at FROM objects WHERE sha256 = ?", [hashlib.sha256(data).digest()]
            ).fetchone()
        return row is not None and row[0] is None


@pytest.fixture
def site(start: Callable[..., Cluster], database_url: str) -> Iterator[Site]:
    """Return three workers in three regions, and objects with two copies each."""
    brain = start()
    workers = [
        run_worker(brain, f"worker{number}", region=region)
        for number, region in enumerate(("eu-central", "us-east", "ap-south"))
    ]
    wait_until(lambda: all(health_of(brain, worker) == "online" for worker in workers))
    keys = brain.tenant()
    client = boto3.client(
        "s3",
        endpoint_url=brain.url,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=30),
    )
    client.create_bucket(Bucket="docs")
    objects = {f"key{number}": secrets.token_bytes(SIZE + number) for number in range(OBJECTS)}
    for key, data in objects.items():
        client.put_object(Bucket="docs", Key=key, Body=data)
    tenant = {"organization_id": keys.organization_id, "environment_pk": keys.environment_pk}
    made = Site(brain, workers, Rows(database_url), client, objects, tenant)
    made.settle(2)
    yield made
    client.close()


def test_a_killed_workers_objects_get_their_second_copy_again(site: Site) -> None:
    lost = site.busiest()
    lost.kill()
    # The client does not notice: another node or the brain answers.
    site.read_all()

    wait_until(lambda: health_of(site.brain, lost) == "offline")
    site.settle(2, but=lost.id)
    site.read_all()


def test_a_stalled_worker_delays_nobody_for_long_and_is_taken_back(site: Site) -> None:
    stalled = site.busiest()
    stalled.send(signal.SIGSTOP)
    try:
        begun = time.monotonic()
        site.read_all()
        assert time.monotonic() - begun < OBJECTS * 6
        wait_until(lambda: health_of(site.brain, stalled) == "offline")
        site.settle(2, but=stalled.id)
    finally:
        stalled.send(signal.SIGCONT)

    wait_until(lambda: health_of(site.brain, stalled) == "online")
    # It comes back with what it had: the third copies go.
    site.settle(2)
    site.read_all()


def test_a_worker_that_returns_is_believed_about_its_disk(site: Site) -> None:
    node = site.busiest()
    held = [key for key, nodes in site.holders().items() if node.id in nodes]
    node.kill()
    # Somebody tidied up meanwhile.
    gone = site.objects[held[0]]
    name = hashlib.sha256(gone).hexdigest()
    store = site.brain.folder / f"worker{site.workers.index(node)}"
    (found,) = store.rglob(name)
    found.unlink()

    start_again(site.brain, node)
    wait_until(lambda: health_of(site.brain, node) == "online")

    site.settle(2)
    site.read_all()


def test_a_worker_that_was_cut_off_brings_nothing_back_that_changed_meanwhile(site: Site) -> None:
    cut_off = site.busiest()
    held = [key for key, nodes in site.holders().items() if cut_off.id in nodes]
    purged, replaced, removed = held[:3]
    old = {key: site.objects[key] for key in (replaced, removed)}
    assert all(site.keeps(cut_off, data) for data in old.values())
    cut_off.send(signal.SIGSTOP)
    try:
        wait_until(lambda: health_of(site.brain, cut_off) == "offline")
        site.purge(purged)
        site.objects[replaced] = b"written while it was away"
        site.client.put_object(Bucket="docs", Key=replaced, Body=site.objects[replaced])
        site.client.delete_object(Bucket="docs", Key=removed)
        del site.objects[removed]
        site.read_all()
    finally:
        cut_off.send(signal.SIGCONT)

    wait_until(lambda: health_of(site.brain, cut_off) == "online")
    site.read_all()
    with pytest.raises(ClientError, match="NoSuchKey"):
        site.client.get_object(Bucket="docs", Key=removed)
    # What nobody names any more leaves its disk.
    wait_until(lambda: not any(site.keeps(cut_off, old[key]) for key in (replaced, removed)))
    site.settle(2)
    site.read_all()


def test_a_node_drains_before_it_is_gone(site: Site) -> None:
    leaving = site.busiest()
    call = Internal(site.brain)

    assert call("DELETE", f"/v1/nodes/{leaving.id}").status == 204

    assert call("GET", "/v1/status").body["total_nodes"] == 2
    assert call("GET", f"/v1/nodes/{leaving.id}").status == 404
    wait_until(
        lambda: (
            site.rows.value("SELECT status FROM brain_node WHERE id = %s", leaving.id) == "removed"
        )
    )
    assert all(len(nodes - {leaving.id}) == 2 for nodes in site.holders().values())
    site.settle(2)
    site.read_all()


def test_a_drained_node_stays_registered(site: Site) -> None:
    node = site.busiest()
    call = Internal(site.brain)
    call("POST", f"/v1/nodes/{node.id}/drain")
    site.settle(2, but=node.id)
    assert call("GET", f"/v1/nodes/{node.id}").body["status"] == "draining"

    call("POST", f"/v1/nodes/{node.id}/approve")
    site.settle(2)


def test_a_worker_that_gives_wrong_bytes_is_barred_and_nobody_gets_them(site: Site) -> None:
    liar = site.busiest()
    for key, nodes in site.holders().items():
        if liar.id in nodes:
            name = hashlib.sha256(site.objects[key]).hexdigest()
            store = site.brain.folder / f"worker{site.workers.index(liar)}"
            (found,) = store.rglob(name)
            found.chmod(0o600)
            found.write_bytes(bytes(len(site.objects[key])))

    call = Internal(site.brain)

    def is_barred() -> bool:
        # Each read may be another node's to answer.
        site.read_all()
        return bool(call("GET", f"/v1/nodes/{liar.id}").body["status"] == "quarantined")

    wait_until(is_barred)
    assert "wrong bytes" in call("GET", f"/v1/nodes/{liar.id}").body["status_reason"]
    site.settle(2, but=liar.id)
    site.read_all()


def test_a_new_node_takes_its_share_of_what_comes(site: Site) -> None:
    fresh = run_worker(site.brain, "worker3", region="sa-east")
    site.workers.append(fresh)
    wait_until(lambda: health_of(site.brain, fresh) == "online")
    for number in range(40):
        data = secrets.token_bytes(500)
        site.objects[f"more{number}"] = data
        site.client.put_object(Bucket="docs", Key=f"more{number}", Body=data)
    site.settle(2)
    assert any(fresh.id in nodes for nodes in site.holders().values())


def test_copies_that_a_dead_brain_owed_are_made_by_the_next(
    site: Site, start: Callable[..., Cluster]
) -> None:
    # As if it had died after the commit and before the copies.
    site.rows.run("DELETE FROM brain_location")
    site.brain.brain.kill()
    site.brain.brain.wait(10)

    again = start(
        worker_port=site.brain.worker_port,
        port=site.brain.port,
        internal_port=site.brain.internal_port,
        variables={"ZDATA_DIR": str(site.brain.folder), "ZSECRET_KEYS": site.brain.secret_keys},
    )

    wait_until(lambda: all(health_of(again, worker) == "online" for worker in site.workers))
    site.settle(2)
    site.read_all()


def test_an_object_that_is_asked_for_often_gets_a_third_copy(site: Site) -> None:
    data = site.objects["key0"]

    def is_read_and_copied() -> bool:
        # Time and again: so many within ten seconds count, which may end amid the first ones.
        for _ in range(HOT_READS // 4):
            assert site.client.get_object(Bucket="docs", Key="key0")["Body"].read() == data
        return len(site.holders()["key0"]) == 3

    wait_until(is_read_and_copied)
    assert len(site.holders()["key1"]) == 2
