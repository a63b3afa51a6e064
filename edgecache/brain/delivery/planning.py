"""What the S3 API and the CDN deliver of a version, and the workers to take it from."""

from collections.abc import Sequence

from edgecache.brain.core.values import BucketInfo, ObjectVersion
from edgecache.brain.delivery.plan import DeliveryPlan, Span, WorkerSource
from edgecache.brain.directory.versions import Directory
from edgecache.brain.nodes.known_nodes import KnownNodes


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
    )
