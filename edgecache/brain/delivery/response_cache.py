"""Decisions how GETs of popular objects are answered, reused while they are valid.

A request is parsed, authenticated and authorized first. Then the response to a plain GET of a whole
object depends only on the bucket, the version in the directory and the nodes that hold it. An entry
is used while all of these are the same. Requests with ranges, conditions or headers that override
the object's are not cached.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from edgecache.brain.core.values import BucketInfo, ObjectVersion, WorkerSource
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.delivery.streaming import Fallback
from edgecache.brain.directory.versions import Directory
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.objects.object_cache import ObjectCache
from edgecache.runtime.fair_cache import FairCache

# Each takes about 3 KiB; with a long key, or more headers than most, three times that.
ENTRY_LIMIT: Final = 4096
HEADERS_LIMIT_BYTES: Final = 2048


class ResponseKey(NamedTuple):
    """What a plain GET of an authorized client is for."""

    bucket_id: int
    key: str
    with_checksums: bool


@dataclass(slots=True)
class CachedPlan:
    """A decision, and what it depends on.

    holders: nodes that hold the bytes.
    region: the first client's.
    stamp: when the entry was last compared with the current state.
    """

    bucket: BucketInfo
    version: ObjectVersion
    delivery: DeliveryPlan
    fallback: Fallback
    region: str
    holders: tuple[Any, ...]
    sources: frozenset[WorkerSource]
    stamp: int


class ResponseCache:
    """The decisions of one brain, in fair parts for their organizations."""

    def __init__(self, directory: Directory, nodes: KnownNodes, objects: ObjectCache) -> None:
        self._directory = directory
        self._coherence = directory.coherence
        self._nodes = nodes
        self._flights = objects.singleflight.running
        self._entries: FairCache[ResponseKey, CachedPlan] = FairCache(ENTRY_LIMIT)

    def find(self, key: ResponseKey, bucket: BucketInfo) -> CachedPlan | None:
        """Return the entry if it is still what would be decided now.

        bucket: as this request's authorization found it.
        """
        entry = self._entries.get(key)
        # While a fetch is running, requests wait for its result.
        if entry is None or not self._coherence.is_current or _name(entry) in self._flights:
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
        """Store a decision about a whole object, unless the object has changed since."""
        headers_bytes = sum(len(name) + len(value) for name, value in delivery.headers)
        if not delivery.is_hit or headers_bytes > HEADERS_LIMIT_BYTES:
            return
        holders = self._directory.holders.get(delivery.sha256) or ()
        entry = CachedPlan(
            bucket,
            version,
            delivery,
            fallback,
            region,
            holders,
            frozenset(delivery.sources),
            self._stamp(),
        )
        if not self._is_valid(entry):
            return
        self._entries.put(bucket.tenant.organization_id, key, entry)

    def _stamp(self) -> int:
        # Both only rise.
        return self._coherence.changes + self._nodes.changes

    def _is_valid(self, entry: CachedPlan) -> bool:
        """True if the version and its sources are still the same."""
        sources = self._nodes.sources(
            entry.version.sha256,
            entry.holders,
            entry.region,
            organization_id=entry.bucket.tenant.organization_id,
            is_public=self._nodes.may_use_operators_nodes(entry.bucket),
        )
        return (
            self._directory.index.get(_name(entry)) == entry.version
            and (self._directory.holders.get(entry.version.sha256) or ()) == entry.holders
            and frozenset(sources) == entry.sources
        )


def _name(entry: CachedPlan) -> tuple[int, str, str]:
    return entry.version.bucket_id, entry.version.key, entry.version.variant
