"""How a version is delivered: which bytes, from which workers; ``streaming`` carries it out.

Named tuples, here and in the parsed request: several are made for each request, and a frozen
dataclass takes twice as long.
"""

from collections.abc import Sequence
from typing import NamedTuple

from edgecache.brain.core.values import (
    BucketInfo,
    EnvironmentKey,
    ObjectVersion,
    Span,
    WorkerSource,
)
from edgecache.brain.directory.versions import Directory
from edgecache.brain.nodes.known_nodes import KnownNodes


class DeliveryPlan(NamedTuple):
    """Respond with these bytes of this blob, from the first source that sends them correctly.

    sources: nearest first. A source that fails is reported to the nodes' health and the next one is
    asked, then the brain's own copy and the origin; the client notices nothing.
    is_verified: send only bytes that were verified against the manifest's digests.
    is_hit: for the metrics: the response did not need the origin. crc32: of the whole blob,
    unsigned; None where it is not known. is_stored: the built-in origin has the bytes.
    """

    tenant: EnvironmentKey
    bucket_id: int
    sha256: bytes
    size: int
    span: Span
    status: int
    headers: list[tuple[str, str]]
    sources: tuple[WorkerSource, ...] = ()
    is_verified: bool = False
    is_hit: bool = True
    crc32: int | None = None
    is_stored: bool = False

    @property
    def is_whole(self) -> bool:
        """True if it is a whole blob with a known hash."""
        return self.span.start == 0 and self.span.length == self.size and bool(self.sha256)

    def headers_with_length(self) -> list[tuple[str, str]]:
        """Return the headers, with the number of bytes that follow them."""
        return [*self.headers, ("content-length", str(self.span.length))]


async def sources_of(
    directory: Directory, nodes: KnownNodes, bucket: BucketInfo, version: ObjectVersion, region: str
) -> tuple[WorkerSource, ...]:
    """Return the workers that hold a version, nearest to the region first.

    Raises DatabaseUnavailable.
    """
    holders = await directory.locations(version.sha256)
    if not holders:
        return ()
    return nodes.sources(
        version.sha256,
        holders,
        region,
        organization_id=bucket.tenant.organization_id,
        is_public=nodes.may_use_operators_nodes(bucket),
    )


def delivery_of(
    bucket: BucketInfo,
    version: ObjectVersion,
    *,
    span: Span,
    status: int,
    headers: Sequence[tuple[str, str]],
    sources: tuple[WorkerSource, ...],
    is_hit: bool,
) -> DeliveryPlan:
    """Return the delivery of a span of a version."""
    return DeliveryPlan(
        tenant=bucket.tenant,
        bucket_id=bucket.id,
        sha256=version.sha256,
        size=version.size,
        span=span,
        status=status,
        headers=list(headers),
        sources=sources,
        is_verified=bucket.verifies_reads,
        is_hit=is_hit,
        crc32=version.crc32,
        is_stored=bucket.origin_id is None,
    )
