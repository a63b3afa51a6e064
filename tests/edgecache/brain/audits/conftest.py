"""An operator's worker behind a proxy that alters bytes, and a brain's audits of it."""

import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from cryptography.fernet import Fernet

from common.ids import uuid7
from edgecache.brain.audits.node_checks import NodeChecker
from edgecache.brain.audits.rounds import Audits
from edgecache.brain.conf.operators import AuditSettings, Vantage
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory.versions import Directory
from edgecache.brain.nodes.client import WorkerClient
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.regions import RegionMap
from edgecache.brain.nodes.tickets import TicketSigner
from tests.edgecache.brain.delivery.faulty_workers import Proxy, healthy
from tests.edgecache.brain.support import ClusterRows
from tests.edgecache.cluster import Cluster, until
from tests.edgecache.conftest import connect
from tests.edgecache.databases import brain_database
from tests.ports import free_port

OPERATOR = 99
OBJECTS = 12
HOLD_ALL = (
    "INSERT INTO brain_location (blob_id, node_id) SELECT b.sha256, n.id"
    " FROM brain_blob b, brain_node n ON CONFLICT DO NOTHING"
)


@dataclass
class AuditedCluster:
    """A cluster with one worker, which is an operator's and holds public objects."""

    cluster: Cluster
    proxy: Proxy
    node_id: UUID
    rows: ClusterRows
    hashes: list[bytes] = field(default_factory=list)

    def outcomes(self) -> list[tuple[str, str, bool]]:
        """Return what was found, oldest first: path, outcome, and whether in quarantine."""
        return [
            tuple(row)
            for row in self.rows.all(
                "SELECT path, outcome, is_recheck FROM brain_look ORDER BY began_at"
            )
        ]

    @property
    def status(self) -> str:
        """Return the node's status."""
        return str(self.rows.value("SELECT status FROM brain_node WHERE id = %s", self.node_id))


@pytest.fixture(scope="session")
def shared_audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedCluster]:
    """Return a cluster to check; its own brain makes no checks."""
    with brain_database() as url:
        cluster = Cluster(
            tmp_path_factory.mktemp("audited"),
            url,
            Fernet.generate_key().decode(),
            variables={"ZCACHE_AUDIT_LOOKS": "0"},
            workers=0,
        )
        try:
            yield _filled(cluster.start())
        finally:
            cluster.end()


def _filled(cluster: Cluster) -> AuditedCluster:
    port = free_port()
    proxy = Proxy(port)
    node = cluster.add_worker("worker0", through=proxy.port, port=port)
    rows = ClusterRows(cluster.database_url)
    made = AuditedCluster(cluster, proxy, UUID(node["node_id"]), rows)
    until(lambda: bool(cluster.call("GET", "/v1/nodes")["nodes"][0]["health"] == "online"))
    keys = cluster.tenant()
    cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "docs", "is_public": True})
    s3 = connect(keys, cluster.url)
    for number in range(OBJECTS):
        # The last one is longer than a check reads.
        body = os.urandom(1000 if number < OBJECTS - 1 else 5 * 2**20 + 7)
        s3.put_object(Bucket="docs", Key=str(number), Body=body)
        made.hashes.append(hashlib.sha256(body).digest())
    s3.close()
    until(lambda: rows.value("SELECT count(*) FROM brain_location") == OBJECTS)
    rows.run("UPDATE brain_node SET organization_id = %s", OPERATOR)
    return made


@pytest.fixture
def audited(shared_audited: AuditedCluster) -> AuditedCluster:
    """Return the cluster, healthy, and without anything found."""
    shared_audited.proxy.fault = healthy
    for statement in (
        "DELETE FROM brain_look",
        "DELETE FROM brain_auditplan",
        "DELETE FROM brain_nodejob",
        "UPDATE brain_node SET status = 'active', status_at = now()",
        HOLD_ALL,
    ):
        shared_audited.rows.run(statement)
    return shared_audited


@pytest.fixture
async def audits(audited: AuditedCluster) -> AsyncIterator[Audits]:
    """Return audits as another brain makes them, only when a test asks for it."""
    database = BrainDatabase(audited.rows.url, max_connections=4)
    coherence = Coherence(database, uuid7())
    directory = Directory(database, coherence, index_bytes=2**20)
    nodes = KnownNodes(
        database,
        coherence,
        RegionMap({}),
        interval_s=60,
        guards_operators=False,
    )
    client = WorkerClient()
    signer = TicketSigner(audited.cluster.secret)
    checker = NodeChecker(signer, client, (Vantage("127.0.0.9", "203.0.113.7"),))
    settings = AuditSettings()
    made = Audits(database, directory, nodes, checker, settings)
    await database.start()
    await coherence.start()
    await nodes.start()
    yield made
    await checker.stop()
    await client.stop()
    await nodes.stop()
    await coherence.stop()
    await database.stop()
