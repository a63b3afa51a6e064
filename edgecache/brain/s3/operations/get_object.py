"""GetObject and HeadObject: from the nearest worker that holds it, else from where it came."""

from edgecache.brain.delivery.delivery import Delivery, Source
from edgecache.brain.errors import OriginMissing
from edgecache.brain.fetch.objects import Opened
from edgecache.brain.s3 import directly
from edgecache.brain.s3.calls import Answer, Call, Decision
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.reading import check_version, describe, head, overrides_of
from edgecache.brain.values import BucketInfo, Found


async def run(call: Call) -> Answer | None:
    """Have the object's bytes delivered; None once they are.

    Raises S3Error: NoSuchKey, PreconditionFailed, InvalidRange, …; Unchanged.
    """
    bucket = await call.readable_bucket()
    key = check_version(call)
    overrides = overrides_of(call)
    opened = await _open(call, bucket, key)
    found = opened.found if opened.found.size >= 0 else await opened.whole()
    selection, headers = describe(call, found, overrides)
    call.is_hit = opened.is_hit
    sources = await _sources(call, bucket, found) if opened.is_hit else ()
    redirect = directly.redirect(call, bucket, found, selection, sources)
    if redirect is not None:
        return redirect
    delivery = Delivery(
        tenant=bucket.tenant,
        bucket_id=bucket.id,
        key=key,
        generation=found.generation,
        sha256=found.sha256,
        size=found.size,
        span=selection.span,
        status=selection.status,
        headers=[("x-amz-request-id", call.request.request_id), *headers, *selection.headers],
        sources=sources,
        is_verified=bucket.verifies_reads,
        is_hit=opened.is_hit,
        crc32=found.crc32,
    )
    without = await call.parts.mover.deliver(delivery, call.exchange, opened.body)
    if without is not None:
        call.decision = Decision(bucket, found, delivery, without.beside)
    return None


async def run_head(call: Call) -> Answer:
    """Answer with the object's headers alone."""
    bucket = await call.readable_bucket()
    key = check_version(call)
    overrides = overrides_of(call)
    found = await head(call, bucket, key)
    selection, headers = describe(call, found, overrides)
    length = ("content-length", str(selection.span.length))
    return Answer(selection.status, [*headers, *selection.headers, length])


async def _open(call: Call, bucket: BucketInfo, key: str) -> Opened:
    try:
        return await call.parts.fills.open(bucket, key)
    except OriginMissing:
        raise S3Error("NoSuchKey", extra={"Key": key}) from None


async def _sources(call: Call, bucket: BucketInfo, found: Found) -> tuple[Source, ...]:
    holders = await call.parts.directory.locations(found.sha256)
    if not holders:
        return ()
    request = call.request
    return call.parts.nodes.sources(
        holders,
        call.parts.locator.region_of(request.client, request.headers),
        organization_id=bucket.tenant.organization_id,
        is_public=bucket.is_public,
    )
