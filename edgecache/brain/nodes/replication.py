"""Replication: the brain uploads new objects to the workers.

After a fetch or an upload the brain has a file, from which the first replicas are made. Workers
fetch later ones from each other (``repair``). Blobs wait in a bounded queue, each once,
organizations and their buckets in turn. Small objects are sent together: while one message is sent
the next one collects.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final
from uuid import UUID

import structlog

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import BrainError, DatabaseUnavailable
from edgecache.brain.core.values import BucketInfo, ObjectVersion
from edgecache.brain.directory.versions import Directory
from edgecache.brain.nodes.client import WorkerClient
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.placement import choose
from edgecache.brain.nodes.replica_plan import ReplicaCounts, ReplicaRequest, request_check
from edgecache.brain.nodes.tickets import TicketGrant, TicketSigner
from edgecache.brain.stores.managed import LocalBodies
from edgecache.http.client import ConnectionShareExhausted, ServerAddress
from edgecache.http.outgoing import RequestFailed
from edgecache.protocol import batches
from edgecache.protocol.batches import BATCH_BLOBS, BATCH_BYTES, BATCHED_BYTES
from edgecache.protocol.tickets import TicketKind

log = structlog.get_logger(__name__)

# Objects waiting for replication; further ones are found by repair.
WAITING: Final = 20_000
# An organization has one in this many of the waiting objects and of the uploads.
PARTS: Final = 4

MAX_CONCURRENT_UPLOADS: Final = 16
# Large objects that are uploaded one after another with one query and one update of the database.
LARGE_BLOBS: Final = 8
LARGE_BYTES: Final = 8 << 20
# Fewer of these, so that each has more in it, and a pause in which the next one collects: a batch
# costs about the same for one object as for many.
CONCURRENT_BATCHES: Final = 8
PAUSE_S: Final = 0.2
ATTEMPTS: Final = 2
RETRY_S: Final = 1.0

ByHash = OrderedDict[bytes, ReplicaRequest]


class ReplicaQueue:
    """Requests by organization and bucket. Several tasks may take from it.

    An organization's uploads may be slow, because they may go to its own node.
    """

    def __init__(self, *, uploads: int) -> None:
        """uploads: how many tasks take requests."""
        self._by_organization: OrderedDict[int, OrderedDict[int, ByHash]] = OrderedDict()
        self._count = 0
        self._uploads_of_one = max(1, uploads // PARTS)
        # The organization of each upload that runs.
        self._uploading: list[int] = []
        self._wakeup = asyncio.Event()

    def __len__(self) -> int:
        return self._count

    def add(self, request: ReplicaRequest) -> bool:
        """Add a request; False if there is no room. A blob of a bucket waits once."""
        by_bucket = self._by_organization.get(request.organization_id, OrderedDict())
        waiting = by_bucket.get(request.bucket_id, OrderedDict())
        if request.sha256 in waiting:
            return True
        own = sum(len(by_hash) for by_hash in by_bucket.values())
        if own >= WAITING // PARTS or self._count >= WAITING:
            return False
        self._count += 1
        waiting[request.sha256] = request
        by_bucket[request.bucket_id] = waiting
        self._by_organization[request.organization_id] = by_bucket
        self._wakeup.set()
        return True

    @asynccontextmanager
    async def next_requests(
        self, *, limit: int, limit_bytes: int
    ) -> AsyncIterator[Sequence[ReplicaRequest]]:
        """Wait for requests; the block uploads the oldest of one bucket, at least one."""
        while True:
            organization_id = self._next()
            if organization_id is not None:
                break
            self._wakeup.clear()
            await self._wakeup.wait()
        self._uploading.append(organization_id)
        try:
            yield self._take(organization_id, limit, limit_bytes)
        finally:
            self._uploading.remove(organization_id)
            self._wakeup.set()

    def _next(self) -> int | None:
        """Return the next organization that may upload; None if none may."""
        for organization_id in self._by_organization:
            if self._uploading.count(organization_id) < self._uploads_of_one:
                return organization_id
        return None

    def _take(self, organization_id: int, limit: int, limit_bytes: int) -> list[ReplicaRequest]:
        by_bucket = self._by_organization.pop(organization_id)
        bucket_id, by_hash = by_bucket.popitem(last=False)
        taken: list[ReplicaRequest] = []
        size = 0
        while by_hash and len(taken) < limit:
            request = next(iter(by_hash.values()))
            size += request.size
            if taken and size > limit_bytes:
                break
            taken.append(by_hash.pop(request.sha256))
        # After the other buckets, and after the other organizations.
        if by_hash:
            by_bucket[bucket_id] = by_hash
        if by_bucket:
            self._by_organization[organization_id] = by_bucket
        self._count -= len(taken)
        return taken


class Replication:
    """Uploads this brain's files to workers."""

    def __init__(
        self,
        directory: Directory,
        bodies: LocalBodies,
        nodes: KnownNodes,
        tickets: TicketSigner,
        client: WorkerClient,
        *,
        copies: ReplicaCounts,
    ) -> None:
        """copies: wanted numbers of replicas."""
        self.copies = copies
        self._directory = directory
        self._local = bodies
        self._nodes = nodes
        self._tickets = tickets
        self._client = client
        self._large = ReplicaQueue(uploads=MAX_CONCURRENT_UPLOADS)
        self._small = ReplicaQueue(uploads=CONCURRENT_BATCHES)
        self._tasks = BackgroundTasks()

    async def start(self) -> None:
        for _ in range(MAX_CONCURRENT_UPLOADS):
            self._tasks.add(self._work(self._large, LARGE_BLOBS, LARGE_BYTES))
        for _ in range(CONCURRENT_BATCHES):
            self._tasks.add(self._work(self._small, BATCH_BLOBS, BATCH_BYTES, pause_s=PAUSE_S))

    async def stop(self) -> None:
        """Stop; repair finds the objects that are not uploaded yet."""
        await self._tasks.stop()

    def stored(self, bucket: BucketInfo, found: ObjectVersion) -> None:
        """Replicate an object of a bucket that was stored."""
        owner = bucket.tenant.organization_id
        self.want(ReplicaRequest(owner, bucket.id, found.sha256, found.size, self.copies.usual))

    def want(self, request: ReplicaRequest) -> None:
        """Queue an upload; repair finds those for which the queue has no room."""
        if request.sha256:
            queue = self._small if request.size <= BATCHED_BYTES else self._large
            queue.add(request)

    def is_possible(self, bucket: BucketInfo) -> bool:
        """True if some node can store a bucket's objects now."""
        tenant = bucket.tenant
        return bool(self._nodes.candidates(tenant.organization_id, is_public=bucket.is_public))

    async def _work(
        self, queue: ReplicaQueue, limit: int, limit_bytes: int, *, pause_s: float = 0
    ) -> None:
        while True:
            async with queue.next_requests(limit=limit, limit_bytes=limit_bytes) as requests:
                await self._upload(requests)
            if pause_s and len(queue) < limit:
                await asyncio.sleep(pause_s)

    async def _upload(self, requests: Sequence[ReplicaRequest]) -> None:
        try:
            await self._spread(requests)
        except DatabaseUnavailable:
            log.warning("replication_put_off", blobs=len(requests))
            for request in requests:
                self.want(request)
            await asyncio.sleep(RETRY_S)
        except BrainError as error:
            # Their bucket has been deleted.
            log.info("replication_dropped", blobs=len(requests), problem=error.code)
        except Exception:
            log.exception("replication_failed", blobs=len(requests))

    async def _spread(self, requests: Sequence[ReplicaRequest]) -> None:
        """Upload blobs of one bucket."""
        bucket = await self._directory.bucket_by_id(requests[0].bucket_id)
        bodies = await self._bodies(bucket, requests)
        missing = {one.sha256: one for one in requests if one.sha256 in bodies}
        held = await self._directory.all_locations(list(missing))
        failed: set[UUID] = set()
        for _ in range(ATTEMPTS):
            readable = [missing[sha256] for sha256 in bodies]
            chosen = self._choose(bucket, readable, held, failed)
            if not chosen:
                break
            stored = await self._store_on(bucket, chosen, missing, bodies)
            await self._directory.add_locations(stored)
            for sha256, nodes in stored.items():
                held[sha256].update(nodes)
            failed |= {
                node_id
                for node_id, hashes in chosen.items()
                if any(node_id not in held[sha256] for sha256 in bodies.keys() & hashes)
            }
        possible = self._possible_holders(bucket)
        few = [
            sha256 for sha256 in bodies if len(held[sha256]) < min(missing[sha256].copies, possible)
        ]
        if few:
            # Some node failed: repair makes the missing replicas.
            async with self._directory.coherence.transaction(wait_for_acks=False) as change:
                request_check(change, few)

    async def _bodies(
        self, bucket: BucketInfo, requests: Sequence[ReplicaRequest]
    ) -> dict[bytes, Path | bytes]:
        """Return the bytes of small blobs, and the files of others; missing ones are left out."""
        found = await self._local.read(bucket, [(one.sha256, one.size) for one in requests])
        # Workers compare a larger body with its hash; a batch has no wrong bytes.
        return {
            sha256: body
            for sha256, body in found.items()
            if isinstance(body, Path) or hashlib.sha256(body).digest() == sha256
        }

    def _possible_holders(self, bucket: BucketInfo) -> int:
        """Return the number of nodes that may hold a bucket's objects, failing ones included."""
        tenant = bucket.tenant
        return sum(
            row.status == "active"
            and row.may_hold(tenant.organization_id, is_public=bucket.is_public)
            for row in self._nodes.nodes()
        )

    def _choose(
        self,
        bucket: BucketInfo,
        requests: Iterable[ReplicaRequest],
        held: Mapping[bytes, set[UUID]],
        failed: set[UUID],
    ) -> dict[UUID, list[bytes]]:
        """Return what to store on which node."""
        rows = self._nodes.candidates(bucket.tenant.organization_id, is_public=bucket.is_public)
        able = [row for row in rows if row.id not in failed]
        chosen: dict[UUID, list[bytes]] = {}
        for request in requests:
            before = held[request.sha256]
            for row in choose(request.sha256, able, request.copies, held_by=before):
                chosen.setdefault(row.id, []).append(request.sha256)
        return chosen

    async def _store_on(
        self,
        bucket: BucketInfo,
        chosen: Mapping[UUID, Sequence[bytes]],
        requests: Mapping[bytes, ReplicaRequest],
        bodies: dict[bytes, Path | bytes],
    ) -> dict[bytes, list[UUID]]:
        """Upload; return the nodes that took each blob. bodies: loses those found damaged."""
        stored: dict[bytes, list[UUID]] = {}

        async def one(node_id: UUID, hashes: Sequence[bytes]) -> None:
            address = self._nodes.address(node_id)
            if address is None:
                return
            wanted = [requests[name] for name in hashes]
            try:
                async for sha256 in self._send(node_id, address, bucket, wanted, bodies):
                    stored.setdefault(sha256, []).append(node_id)
            except RequestFailed as failure:
                # A share that is in use, here or there, is not the node's failure.
                is_busy = failure.status == HTTPStatus.SERVICE_UNAVAILABLE
                if not is_busy and not isinstance(failure, ConnectionShareExhausted):
                    self._nodes.failed(node_id, f"{failure.reason} {failure.status}")

        await asyncio.gather(*(one(*each) for each in chosen.items()))
        return stored

    async def _send(
        self,
        node_id: UUID,
        address: ServerAddress,
        bucket: BucketInfo,
        requests: Sequence[ReplicaRequest],
        bodies: dict[bytes, Path | bytes],
    ) -> AsyncIterator[bytes]:
        """Upload blobs to one node: small ones together, others one after another.

        Yields those that the node has. Raises RequestFailed for a failure that is the node's.
        """
        small: dict[bytes, bytes] = {}
        for request in requests:
            body = bodies.get(request.sha256)
            if body is None:
                continue
            if isinstance(body, bytes):
                small[request.sha256] = body
                continue
            grant = TicketGrant(bucket.tenant, bucket.id, request.sha256, request.size)
            ticket = self._tickets.sign(TicketKind.STORE, node_id, grant, now=time.time())
            try:
                await self._client.store(
                    address, request.sha256, body, size=request.size, ticket=ticket
                )
            except RequestFailed as failure:
                # It has another hash, or is gone.
                may_be_ours = failure.status == HTTPStatus.UNPROCESSABLE_ENTITY
                may_be_ours |= failure.reason == "file_gone"
                if not may_be_ours or await self._local.has_hash(body, request.sha256):
                    raise
            else:
                yield request.sha256
                continue
            # Nothing can be stored from it, however often and wherever.
            log.error("local_file_damaged", sha256=request.sha256.hex())
            bodies.pop(request.sha256, None)
        if small:
            index, message = batches.encode(small)
            grant = TicketGrant(bucket.tenant, bucket.id, batches.name_of(index), len(message))
            ticket = self._tickets.sign(TicketKind.STORE_BATCH, node_id, grant, now=time.time())
            await self._client.store_batch(address, message, ticket=ticket)
            for sha256 in small:
                yield sha256
