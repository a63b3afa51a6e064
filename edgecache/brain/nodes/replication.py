"""Replication: the brain uploads new objects to the workers.

A fetch or an upload leaves a file with the brain, from which the first replicas are made. Later
ones the workers fetch from each other (``repair``).
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

import structlog

from edgecache.brain.background import BackgroundTasks
from edgecache.brain.directory.directory import Directory
from edgecache.brain.errors import BrainError, DatabaseAway
from edgecache.brain.nodes.client import WorkerClient
from edgecache.brain.nodes.placement import Candidate, choose
from edgecache.brain.nodes.registry import Nodes
from edgecache.brain.nodes.replica_plan import ReplicaCounts, ReplicaRequest, request_check
from edgecache.brain.nodes.tickets import TicketGrant, TicketSigner
from edgecache.brain.storage.staging import Staging
from edgecache.brain.values import BucketInfo, ObjectVersion
from edgecache.http.outgoing import RequestFailed
from edgecache.protocol.tickets import TicketKind

log = structlog.get_logger(__name__)

AT_ONCE: Final = 8
# Objects waiting for replication; further ones are found by repair.
WAITING: Final = 20_000
ATTEMPTS: Final = 2
RETRY_S: Final = 1.0


class Replication:
    """Uploads this brain's files to workers."""

    def __init__(
        self,
        directory: Directory,
        staging: Staging,
        nodes: Nodes,
        tickets: TicketSigner,
        client: WorkerClient,
        *,
        copies: ReplicaCounts,
    ) -> None:
        """copies: wanted numbers of replicas."""
        self.copies = copies
        self._directory = directory
        self._staging = staging
        self._nodes = nodes
        self._tickets = tickets
        self._client = client
        self._waiting: OrderedDict[bytes, ReplicaRequest] = OrderedDict()
        self._news = asyncio.Semaphore(0)
        self._tasks = BackgroundTasks()

    async def start(self) -> None:
        """Start uploading."""
        for _ in range(AT_ONCE):
            self._tasks.add(self._work())

    async def stop(self) -> None:
        """Stop; what is not uploaded yet is found by repair."""
        await self._tasks.stop()

    def kept(self, found: ObjectVersion) -> None:
        """Replicate an object that was stored (``ObjectCache``)."""
        self.want(ReplicaRequest(found.bucket_id, found.sha256, found.size, self.copies.usual))

    def want(self, request: ReplicaRequest) -> None:
        """Queue an upload; the same blob is queued once."""
        if not request.sha256 or request.sha256 in self._waiting or len(self._waiting) >= WAITING:
            return
        self._waiting[request.sha256] = request
        self._news.release()

    async def _work(self) -> None:
        while True:
            await self._news.acquire()
            _, request = self._waiting.popitem(last=False)
            try:
                await self._spread(request)
            except DatabaseAway:
                log.warning("replication_put_off", sha256=request.sha256.hex())
                self.want(request)
                await asyncio.sleep(RETRY_S)
            except BrainError as error:
                # Its bucket or its bytes were deleted meanwhile.
                log.info("replication_dropped", sha256=request.sha256.hex(), code=error.code)
            except Exception:
                log.exception("replication_failed", sha256=request.sha256.hex())

    async def _spread(self, request: ReplicaRequest) -> None:
        bucket = await self._directory.bucket_by_id(request.bucket_id)
        path = await self._staging.local(request.sha256)
        if path is None:
            return
        held = set(await self._directory.locations(request.sha256))
        failed: set[UUID] = set()
        for _ in range(ATTEMPTS):
            chosen = self._choose(bucket, request, held, failed)
            if not chosen:
                break
            stored = await self._store_on(bucket, request, path, chosen)
            if stored:
                await self._directory.add_locations(request.sha256, tuple(stored))
            held.update(stored)
            failed.update(row.node_id for row in chosen if row.node_id not in held)
        if len(held) < min(request.copies, self._places(bucket)):
            # Some node failed: repair makes the missing replica.
            async with self._directory.coherence.change(waits=False) as change:
                request_check(change, [request.sha256])

    def _places(self, bucket: BucketInfo) -> int:
        """Return the number of nodes that may hold a bucket's objects, failing ones included."""
        tenant = bucket.tenant
        return sum(
            row.status == "active"
            and row.may_hold(tenant.organization_id, is_public=bucket.is_public)
            for row in self._nodes.all()
        )

    def _choose(
        self, bucket: BucketInfo, request: ReplicaRequest, held: set[UUID], failed: set[UUID]
    ) -> list[Candidate]:
        rows = self._nodes.candidates(bucket.tenant.organization_id, is_public=bucket.is_public)
        able = [row for row in rows if row.node_id not in failed]
        return choose(request.sha256, able, request.copies, held_by=held)

    async def _store_on(
        self, bucket: BucketInfo, request: ReplicaRequest, path: Path, chosen: Sequence[Candidate]
    ) -> list[UUID]:
        grant = TicketGrant(bucket.tenant, bucket.id, request.sha256, request.size)

        async def one(node_id: UUID) -> UUID | None:
            address = self._nodes.address(node_id)
            if address is None:
                return None
            begun = time.monotonic()
            ticket = self._tickets.sign(TicketKind.STORE, node_id, grant, now=time.time())
            try:
                await self._client.store(
                    address, request.sha256, path, size=request.size, ticket=ticket
                )
            except RequestFailed as failure:
                self._nodes.failed(node_id, f"{failure.reason} {failure.status}")
                return None
            log.debug("stored", node_id=str(node_id), seconds=time.monotonic() - begun)
            return node_id

        done = await asyncio.gather(*(one(row.node_id) for row in chosen))
        return [node_id for node_id in done if node_id is not None]
