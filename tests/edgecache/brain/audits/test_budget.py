"""How many looks a node gets, and that they check like a client's and are not billed."""

import asyncio
import hashlib
import secrets
import time
from uuid import UUID, uuid4

import pytest

from edgecache.brain.audits import records
from edgecache.brain.audits.node_checks import (
    CheckOutcome,
    CheckRequest,
    CheckRoute,
    CheckTarget,
    NodeChecker,
    Path,
)
from edgecache.brain.conf.operators import Vantage
from edgecache.brain.core.values import BlobManifest, EnvironmentKey, Span
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.nodes.client import WorkerClient
from edgecache.brain.nodes.tickets import TicketSigner
from edgecache.http.client import ServerAddress
from tests.edgecache.brain.brains import Brain, Rows
from tests.edgecache.brain.support import FakeWorker, Internal, register
from tests.edgecache.cluster import Cluster

pytestmark = pytest.mark.anyio

BODY = b"what was stored" * 10
MANIFEST = BlobManifest(hashlib.sha256(BODY).digest(), len(BODY), b"", 0, b"")
VANTAGE = Vantage("127.0.0.9", "203.0.113.7")


def target(node_id: UUID, endpoint: str = "http://127.0.0.1:9") -> CheckTarget:
    """Return something to check at."""
    whole = Span(0, len(BODY))
    return CheckTarget(node_id, ServerAddress(endpoint), EnvironmentKey(3, 4), 5, MANIFEST, whole)


def due(rows: Rows) -> None:
    """Let every node be due."""
    rows.run("UPDATE brain_auditplan SET next_at = now() - interval '1 second'")


def looked(rows: Rows, node_id: UUID, size: int) -> None:
    """Record a check of an hour ago."""
    rows.run(
        "INSERT INTO brain_look (id, node_id, sha256, path, size, outcome, began_at) VALUES"
        " (%s, %s, %s, 'direct', %s, 'right', now() - interval '1 hour')",
        [uuid4(), node_id, secrets.token_bytes(32), size],
    )


async def test_looks_and_bytes_of_a_day_are_limited_for_each_node(brain: Brain, rows: Rows) -> None:
    node, other = rows.node(uuid4(), organization_id=9), rows.node(uuid4(), organization_id=9)
    rows.node(uuid4())

    async def taken(*, max_checks: int = 2, limit_bytes: int = 1000) -> set[UUID]:
        due(rows)
        return set(
            await records.take_due(brain.database, max_checks=max_checks, limit_bytes=limit_bytes)
        )

    assert await taken() == set()
    # Planned now; the platform's own node is not.
    assert await taken() == {node, other}
    # Not again immediately: the next time is random.
    assert await records.take_due(brain.database, max_checks=2, limit_bytes=1000) == []
    looked(rows, node, 400)
    assert await taken() == {node, other}
    looked(rows, node, 400)
    assert await taken() == {other}
    assert await taken(max_checks=3) == {node, other}
    looked(rows, other, 1000)
    assert await taken(max_checks=3) == {node}


async def test_brains_share_the_plan(brain: Brain, other: Brain, rows: Rows) -> None:
    node = rows.node(uuid4(), organization_id=9)
    await records.take_due(brain.database, max_checks=100, limit_bytes=1000)
    due(rows)

    async def taken(database: BrainDatabase) -> list[UUID]:
        return await records.take_due(database, max_checks=100, limit_bytes=1000)

    found = await asyncio.gather(*(taken(one.database) for one in (brain, other) * 4))
    assert [one for taken_by in found for one in taken_by] == [node]


async def test_a_look_comes_from_its_own_address_and_says_nothing_of_the_platform() -> None:
    seen: list[tuple[str, bytes]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append((writer.get_extra_info("peername")[0], head))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    signer = TicketSigner(secrets.token_urlsafe(32))
    checker = NodeChecker(signer, WorkerClient(), (VANTAGE,))
    for _ in range(12):
        request = await checker.prepare(
            CheckRoute(Path.DIRECT, VANTAGE), target(uuid4(), f"http://127.0.0.1:{port}")
        )
        assert await checker.check(request) is CheckOutcome.RIGHT
        ticket = signer.verify(request.ticket)
        assert (ticket.is_direct, ticket.client_prefix) == (True, "203.0.113.0/24")
        assert (ticket.start, ticket.length) == (0, len(BODY))
    await checker.stop()
    server.close()
    assert {address for address, _ in seen} == {"127.0.0.9"}
    for _, head in seen:
        _, _, fields = head.lower().partition(b"\r\n")
        assert not any(word in fields for word in (b"zonal", b"audit", b"brain", b"ticket"))
    agents = {line for _, head in seen for line in head.split(b"\r\n") if b"User-Agent" in line}
    assert len(agents) > 1


class Redeemer:
    """An operator's node that redeems what it was shown."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.node: FakeWorker = register(cluster, organization_id=9)
        self.signer = TicketSigner(cluster.secret)
        self.checker = NodeChecker(self.signer, WorkerClient(), (VANTAGE,))

    async def ticket(self) -> CheckRequest:
        """Return a check, which is a ticket for a direct read like any other."""
        return await self.checker.prepare(CheckRoute(Path.DIRECT, VANTAGE), target(self.node.id))

    def redeem(self, request: CheckRequest) -> list[str]:
        """Send the receipt; return the accepted tickets."""
        row = {
            "ticket": request.ticket,
            "bytes_served": len(BODY),
            "served_at": int(time.time()),
        }
        said = self.node.say("receipts", {"receipts": [row]})
        return [str(one) for one in said.body["accepted"]]

    def lines(self) -> list[tuple[int, bool]]:
        """Return hits and creditability of the billed usage."""
        lines = Internal(self.cluster)("GET", "/v1/usage").body["lines"]
        return [(line["hits"], line["is_creditable"]) for line in lines]


async def test_a_receipt_of_a_look_is_taken_like_any_other_and_not_billed(
    bare_cluster: Cluster,
) -> None:
    redeemer = Redeemer(bare_cluster)
    database = BrainDatabase(bare_cluster.database_url, max_connections=2)
    await database.start()
    one = await redeemer.ticket()
    await records.begin(database, one, is_recheck=False)
    assert redeemer.redeem(one) == [str(one.id)]
    assert redeemer.lines() == []
    assert redeemer.redeem(await redeemer.ticket())
    assert redeemer.lines() == [(1, True)]
    await database.stop()


async def test_reads_of_a_copy_that_was_found_wrong_earn_nothing(bare_cluster: Cluster) -> None:
    redeemer = Redeemer(bare_cluster)
    database = BrainDatabase(bare_cluster.database_url, max_connections=2)
    await database.start()
    one = await redeemer.ticket()
    await records.begin(database, one, is_recheck=False)
    await records.end(database, one.id, CheckOutcome.WRONG)
    redeemer.redeem(await redeemer.ticket())
    assert redeemer.lines() == [(1, False)]
    await database.stop()
