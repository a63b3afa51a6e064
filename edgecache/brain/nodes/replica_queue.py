"""Blobs that wait to be uploaded: bounded, each once, organizations and their buckets in turn."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from edgecache.brain.core.errors import Overloaded
from edgecache.brain.nodes.replica_plan import ReplicaRequest
from edgecache.runtime.shares import ShareKey, Shares

# Objects waiting for replication; further ones are found by repair.
WAITING: Final = 20_000
# One organization gets two thirds of the queue and of the uploads, one bucket half of the queue.
SPARE: Final = 0.5

ByHash = OrderedDict[bytes, ReplicaRequest]


class ReplicaQueue:
    """Requests by organization and bucket. Several tasks may take from it.

    An organization's uploads may be slow, because they may go to its own node.
    """

    def __init__(self, *, uploads: int) -> None:
        """uploads: how many tasks take requests."""
        self._by_organization: OrderedDict[int, OrderedDict[int, ByHash]] = OrderedDict()
        self._room = Shares(WAITING, refusal=Overloaded, spare=SPARE)
        self._uploads = Shares(uploads, refusal=Overloaded, spare=SPARE)
        self._wakeup = asyncio.Event()

    def __len__(self) -> int:
        return self._room.taken

    def add(self, request: ReplicaRequest) -> bool:
        """Add a request; False if there is no room. A blob of a bucket waits once."""
        by_bucket = self._by_organization.get(request.organization_id, OrderedDict())
        waiting = by_bucket.get(request.bucket_id, OrderedDict())
        if request.sha256 in waiting:
            return True
        if not self._room.try_take(_share_key(request)):
            return False
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
        try:
            yield self._take(organization_id, limit, limit_bytes)
        finally:
            self._uploads.give_back((organization_id,))
            self._wakeup.set()

    def _next(self) -> int | None:
        """Return the next organization, with a place among the uploads; None if none may go."""
        for organization_id in self._by_organization:
            if self._uploads.try_take((organization_id,)):
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
        self._room.give_back(_share_key(taken[0]), len(taken))
        return taken


def _share_key(request: ReplicaRequest) -> ShareKey:
    return request.organization_id, request.bucket_id
