"""Blobs that wait to be uploaded: bounded, each once, buckets in turn."""

import asyncio
from collections import OrderedDict
from typing import Final

from edgecache.brain.nodes.replica_plan import ReplicaRequest

# Objects waiting for replication; further ones are found by repair. One bucket has half of it.
WAITING: Final = 20_000
SHARES: Final = 2


class ReplicaQueue:
    """Requests by bucket. Several tasks may take from it."""

    def __init__(self) -> None:
        self._by_bucket: OrderedDict[int, OrderedDict[bytes, ReplicaRequest]] = OrderedDict()
        self._count = 0
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return self._count

    def add(self, request: ReplicaRequest) -> bool:
        """Add a request; False if there is no room. The same blob of a bucket waits once."""
        waiting = self._by_bucket.get(request.bucket_id) or OrderedDict()
        if request.sha256 in waiting:
            return True
        if self._count >= WAITING or len(waiting) >= WAITING // SHARES:
            return False
        waiting[request.sha256] = request
        self._by_bucket[request.bucket_id] = waiting
        self._count += 1
        self._news.set()
        return True

    async def take(self, *, limit: int, limit_bytes: int) -> list[ReplicaRequest]:
        """Wait for requests; return the oldest of one bucket, at least one."""
        while not self._by_bucket:
            self._news.clear()
            await self._news.wait()
        bucket_id, by_hash = self._by_bucket.popitem(last=False)
        taken: list[ReplicaRequest] = []
        size = 0
        while by_hash and len(taken) < limit:
            request = next(iter(by_hash.values()))
            size += request.size
            if taken and size > limit_bytes:
                break
            taken.append(by_hash.pop(request.sha256))
        if by_hash:
            # Behind the other buckets.
            self._by_bucket[bucket_id] = by_hash
        self._count -= len(taken)
        return taken
