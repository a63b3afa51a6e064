"""Deliveries of whole objects that are in memory, used again while they are what would be decided.

A request is parsed, authenticated and authorized first. Then the response to a plain GET depends
only on the bucket, the version in the directory and the workers that have its bytes.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from edgecache.brain.core.values import BucketInfo, ObjectVersion
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.delivery.streaming import Fallback
from edgecache.brain.directory.versions import Directory
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.objects.object_cache import ObjectCache
from edgecache.runtime.bounded_cache import BoundedCache

LIMIT_BYTES: Final = 16 * 2**20
# Of an entry without its texts.
ENTRY_BYTES: Final = 3072


class ResponseKey(NamedTuple):
    """What a plain GET asks for: without range, condition, override or redirect."""

    bucket_id: int
    key: str
    with_checksums: bool


@dataclass(slots=True)
class CachedResponse:
    """A delivery without the request's id, and what it depends on.

    region: of the first client, which orders the sources. stamp: of the last comparison.
    """

    bucket: BucketInfo
    version: ObjectVersion
    delivery: DeliveryPlan
    fallback: Fallback
    region: str
    holders: tuple[UUID, ...]
    stamp: int


class ResponseCache:
    """The responses of one brain."""

    def __init__(self, directory: Directory, nodes: KnownNodes, objects: ObjectCache) -> None:
        self._directory = directory
        self._coherence = directory.coherence
        self._nodes = nodes
        self._fetches = objects.singleflight.running
        self._entries: BoundedCache[ResponseKey, CachedResponse] = BoundedCache(LIMIT_BYTES, _cost)

    def find(self, key: ResponseKey, bucket: BucketInfo) -> CachedResponse | None:
        """Return a response that is still right. bucket: as the request was authorized for."""
        entry = self._entries.get(key)
        # While a fetch is running, requests wait for its result.
        if entry is None or not self._coherence.is_current or _name(entry) in self._fetches:
            return None
        stamp = self._stamp()
        is_same_bucket = entry.bucket is bucket or entry.bucket == bucket
        if not is_same_bucket or (entry.stamp != stamp and not self._is_valid(entry)):
            self._entries.pop(key)
            return None
        entry.stamp = stamp
        return entry

    def keep(
        self,
        key: ResponseKey,
        bucket: BucketInfo,
        version: ObjectVersion,
        delivery: DeliveryPlan,
        fallback: Fallback,
        *,
        region: str,
    ) -> None:
        """Store a delivery of a whole object, unless something has changed since."""
        holders = self._directory.holders.get(version.sha256) or ()
        entry = CachedResponse(bucket, version, delivery, fallback, region, holders, self._stamp())
        if delivery.is_hit and self._is_valid(entry):
            self._entries.put(key, entry)

    def _stamp(self) -> int:
        # Both only rise.
        return self._coherence.changes + self._nodes.changes

    def _is_valid(self, entry: CachedResponse) -> bool:
        sha256, bucket = entry.version.sha256, entry.bucket
        sources = self._nodes.sources(
            sha256,
            entry.holders,
            entry.region,
            organization_id=bucket.tenant.organization_id,
            is_public=self._nodes.may_use_operators_nodes(bucket),
        )
        return (
            self._directory.index.get(_name(entry)) == entry.version
            and (self._directory.holders.get(sha256) or ()) == entry.holders
            and set(sources) == set(entry.delivery.sources)
        )


def _name(entry: CachedResponse) -> tuple[int, str, str]:
    return entry.version.bucket_id, entry.version.key, entry.version.variant


def _cost(key: ResponseKey, entry: CachedResponse) -> int:
    headers = sum(len(name) + len(value) for name, value in entry.delivery.headers)
    return ENTRY_BYTES + len(key.key) + headers
