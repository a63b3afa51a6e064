"""Repair with real workers that crash, stall, send wrong bytes, drain and return."""

import hashlib
import secrets
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from cryptography.fernet import Fernet

from edgecache.brain.delivery.hot_objects import HOT_READS
from edgecache.runtime.hot_cache import OBJECT_LIMIT_BYTES
from tests.edgecache.brain.support import (
    ClusterRows,
    Internal,
    RunningWorker,
    health_of,
    run_worker,
    start_again,
)
from tests.edgecache.cluster import Cluster
from tests.edgecache.databases import brain_database
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

OBJECTS = 12
# Smaller objects would soon be served from the brain's memory.
SIZE = OBJECT_LIMIT_BYTES + 1


@dataclass
class Site:
    """A brain with workers, and a bucket with fully replicated objects."""

    brain: Cluster
    workers: list[RunningWorker]
    rows: ClusterRows
    client: Any
    objects: dict[str, bytes]
    tenant: dict[str, int]

    def worker(self, node_id: UUID) -> RunningWorker:
        """Find a worker by its node."""
        return next(worker for worker in self.workers if worker.id == node_id)

    def read_all(self) -> None:
        """Read every object and check its bytes."""
        for key, data in self.objects.items():
            assert self.client.get_object(Bucket="docs", Key=key)["Body"].read() == data

    def holders(self) -> dict[str, set[UUID]]:
        """Return the nodes of each object."""
        return {
            key: self.rows.holders(hashlib.sha256(data).digest())
            for key, data in self.objects.items()
        }

    def settle(self, copies: int, *, but: UUID | None = None) -> None:
        """Wait until each object has this many copies, not counting those on ``but``."""

        def is_settled() -> bool:
            return all(len(nodes - {but}) == copies for nodes in self.holders().values())

        try:
            wait_until(is_settled)
        except AssertionError as late:
            jobs = self.rows.all("SELECT node_id, kind, sha256, not_before FROM brain_nodejob")
            events = [line for line in self.brain.log.splitlines() if "object_request" not in line]
            state = "\n".join(map(str, [self.holders(), jobs, *events]))
            raise AssertionError(state) from late

    def busiest(self) -> RunningWorker:
        """Return the worker that holds the most objects."""
        held = [node for nodes in self.holders().values() for node in nodes]
        return self.worker(max(set(held), key=held.count))

    def purge(self, key: str) -> None:
        """Purge an object from the cache; the built-in origin keeps it."""
        wanted = self.tenant | {"keys": [f"docs/{key}"]}
        assert self.brain.call("POST", "/v1/purge", wanted)["objects_purged"] == 1

    def keeps(self, worker: RunningWorker, data: bytes) -> bool:
        """True if a worker keeps some bytes; others are deleted after their lease."""
        folder = self.brain.folder / f"worker{self.workers.index(worker)}"
        with closing(sqlite3.connect(folder / "inventory.sqlite3")) as inventory:
            row = inventory.execute(
                "SELECT unlink_at FROM objects WHERE sha256 = ?", [hashlib.sha256(data).digest()]
            ).fetchone()
        return row is not None and row[0] is None


@contextmanager
def site_of(brain: Cluster) -> Iterator[Site]:
    """Yield three workers in three regions, and objects with two copies each."""
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
    made = Site(brain, workers, ClusterRows(brain.database_url), client, objects, tenant)
    made.settle(2)
    yield made
    client.close()


@pytest.fixture
def site(start: Callable[..., Cluster]) -> Iterator[Site]:
    """Return a site for one test."""
    with site_of(start()) as made:
        yield made


@pytest.fixture(scope="module")
def lasting_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a site that the tests share which bring all of its workers back."""
    with brain_database() as url:
        folder = tmp_path_factory.mktemp("site")
        brain = Cluster(folder, url, Fernet.generate_key().decode(), workers=0)
        try:
            with site_of(brain.start()) as made:
                yield made
        finally:
            brain.end()


def test_objects_of_a_killed_worker_are_replicated_again(site: Site) -> None:
    lost = site.busiest()
    lost.kill()
    # Another node or the brain serves the client.
    site.read_all()

    wait_until(lambda: health_of(site.brain, lost) == "offline")
    site.settle(2, but=lost.id)
    site.read_all()


def test_a_stalled_worker_delays_clients_only_briefly_and_may_return(lasting_site: Site) -> None:
    stalled = lasting_site.busiest()
    stalled.send(signal.SIGSTOP)
    try:
        started = time.monotonic()
        lasting_site.read_all()
        assert time.monotonic() - started < OBJECTS * 6
        wait_until(lambda: health_of(lasting_site.brain, stalled) == "offline")
        lasting_site.settle(2, but=stalled.id)
    finally:
        stalled.send(signal.SIGCONT)

    wait_until(lambda: health_of(lasting_site.brain, stalled) == "online")
    # It returns with its objects: the third copies are deleted.
    lasting_site.settle(2)
    lasting_site.read_all()


def test_the_inventory_of_a_returning_worker_is_accepted(lasting_site: Site) -> None:
    node = lasting_site.busiest()
    held = [key for key, nodes in lasting_site.holders().items() if node.id in nodes]
    node.kill()
    # Its files were deleted in the meantime.
    gone = lasting_site.objects[held[0]]
    name = hashlib.sha256(gone).hexdigest()
    store = lasting_site.brain.folder / f"worker{lasting_site.workers.index(node)}"
    (found,) = store.rglob(name)
    found.unlink()

    start_again(lasting_site.brain, node)
    wait_until(lambda: health_of(lasting_site.brain, node) == "online")

    lasting_site.settle(2)
    lasting_site.read_all()


def test_a_returning_worker_does_not_bring_back_purged_objects(lasting_site: Site) -> None:
    cut_off = lasting_site.busiest()
    held = [key for key, nodes in lasting_site.holders().items() if cut_off.id in nodes]
    purged, replaced, removed = held[:3]
    old = {key: lasting_site.objects[key] for key in (replaced, removed)}
    assert all(lasting_site.keeps(cut_off, data) for data in old.values())
    cut_off.send(signal.SIGSTOP)
    try:
        wait_until(lambda: health_of(lasting_site.brain, cut_off) == "offline")
        lasting_site.purge(purged)
        lasting_site.objects[replaced] = b"written while it was unreachable"
        lasting_site.client.put_object(
            Bucket="docs", Key=replaced, Body=lasting_site.objects[replaced]
        )
        lasting_site.client.delete_object(Bucket="docs", Key=removed)
        del lasting_site.objects[removed]
        lasting_site.read_all()
    finally:
        cut_off.send(signal.SIGCONT)

    wait_until(lambda: health_of(lasting_site.brain, cut_off) == "online")
    lasting_site.read_all()
    with pytest.raises(ClientError, match="NoSuchKey"):
        lasting_site.client.get_object(Bucket="docs", Key=removed)
    # Unreferenced bytes are deleted from its disk.
    wait_until(
        lambda: not any(lasting_site.keeps(cut_off, old[key]) for key in (replaced, removed))
    )
    lasting_site.settle(2)
    lasting_site.read_all()


def test_an_object_altered_on_all_workers_is_replaced_and_they_stay_in_service(
    site: Site,
) -> None:
    key, nodes = next(iter(site.holders().items()))
    name = hashlib.sha256(site.objects[key]).hexdigest()

    def files() -> list[Path]:
        return [
            found
            for number in range(len(site.workers))
            for found in (site.brain.folder / f"worker{number}").rglob(name)
        ]

    for file in files():
        file.chmod(0o600)
        file.write_bytes(bytes(len(site.objects[key])))
    assert len(files()) == 2

    site.read_all()

    def is_replaced() -> bool:
        try:
            copies = [file.read_bytes() for file in files()]
        except FileNotFoundError:
            return False
        return len(copies) >= 2 and set(copies) == {site.objects[key]}

    wait_until(is_replaced)
    site.settle(2)
    site.read_all()
    assert all(health_of(site.brain, site.worker(node)) == "online" for node in nodes)


def test_replications_pending_at_a_brain_s_death_are_done_by_the_next_one(
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


def test_a_drained_node_stays_registered_and_a_removed_node_is_drained_first(site: Site) -> None:
    node = site.busiest()
    call = Internal(site.brain)
    call("POST", f"/v1/nodes/{node.id}/drain")
    site.settle(2, but=node.id)
    assert call("GET", f"/v1/nodes/{node.id}").body["status"] == "draining"
    call("POST", f"/v1/nodes/{node.id}/approve")
    site.settle(2)

    leaving = site.busiest()
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


def test_a_new_node_gets_its_share_and_a_hot_object_a_third_copy(site: Site) -> None:
    fresh = run_worker(site.brain, "worker3", region="sa-east")
    site.workers.append(fresh)
    wait_until(lambda: health_of(site.brain, fresh) == "online")
    for number in range(40):
        data = secrets.token_bytes(500)
        site.objects[f"more{number}"] = data
        site.client.put_object(Bucket="docs", Key=f"more{number}", Body=data)
    site.settle(2)
    assert any(fresh.id in nodes for nodes in site.holders().values())

    data = site.objects["key0"]

    def is_read_and_copied() -> bool:
        # Read repeatedly: the ten-second window of the counter may end during the first reads.
        for _ in range(HOT_READS // 4):
            assert site.client.get_object(Bucket="docs", Key="key0")["Body"].read() == data
        return len(site.holders()["key0"]) == 3

    wait_until(is_read_and_copied)
    assert len(site.holders()["key1"]) == 2
