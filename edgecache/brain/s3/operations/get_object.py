"""GetObject and HeadObject: from the nearest worker that holds the object, else from its origin."""

from collections.abc import Sequence

from edgecache.brain.delivery.delivery import Delivery, Source
from edgecache.brain.delivery.response_cache import ResponseKey
from edgecache.brain.errors import OriginMissing
from edgecache.brain.fetch.objects import Opened
from edgecache.brain.s3 import checksums, conditions, directly
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.reading import check_version, describe, head, overrides_of
from edgecache.brain.s3.selection import Selection
from edgecache.brain.values import BucketInfo, Found

REQUEST_ID_HEADER = "x-amz-request-id"


async def run(call: Call) -> Answer | None:
    """Send the object, or the part that the request is for. None once it is sent.

    Raises S3Error: NoSuchKey, PreconditionFailed, InvalidRange, …; Unchanged.
    """
    bucket = await call.readable_bucket()
    key = check_version(call)
    overrides = overrides_of(call)
    cache_key = _cache_key(call, bucket, key, overrides)
    if cache_key is not None and await _sent_again(call, bucket, cache_key):
        return None
    opened = await _open(call, bucket, key)
    version = opened.found if opened.found.size >= 0 else await opened.whole()
    selection, headers = describe(call, version, overrides)
    call.is_hit = opened.is_hit
    region = call.parts.locator.region_of(call.request.client, call.request.headers)
    sources = await _sources(call, bucket, version, region) if opened.is_hit else ()
    redirect = directly.redirect(call, bucket, version, selection, sources)
    if redirect is not None:
        return redirect
    delivery = _delivery(bucket, version, selection, headers, sources, is_hit=opened.is_hit)
    needed_no_worker = await call.parts.streamer.deliver(
        _with_request_id(delivery, call), call.exchange, opened.body
    )
    if needed_no_worker and cache_key is not None:
        call.parts.responses.keep(cache_key, bucket, version, delivery, opened.body, region=region)
    return None


async def run_head(call: Call) -> Answer:
    """Respond with the object's headers alone."""
    bucket = await call.readable_bucket()
    key = check_version(call)
    overrides = overrides_of(call)
    found = await head(call, bucket, key)
    selection, headers = describe(call, found, overrides)
    length = ("content-length", str(selection.span.length))
    return Answer(selection.status, [*headers, *selection.headers, length])


def _cache_key(
    call: Call, bucket: BucketInfo, key: str, overrides: dict[str, str]
) -> ResponseKey | None:
    """Return the response's key; None where the request says more than that."""
    request = call.request
    is_plain = (
        not overrides
        and not request.has("partNumber")
        and not conditions.has_any(request)
        and "range" not in request.headers
        and not directly.is_possible(request, bucket)
    )
    return ResponseKey(bucket.id, key, checksums.are_wanted(request)) if is_plain else None


async def _sent_again(call: Call, bucket: BucketInfo, key: ResponseKey) -> bool:
    """Send what an earlier request was sent, if that is still right and needs no worker."""
    cached = call.parts.responses.find(key, bucket)
    if cached is None or not call.parts.streamer.is_at_hand(cached.delivery, call.exchange):
        return False
    call.is_hit = True
    call.parts.meters.repeated += 1
    delivery = _with_request_id(cached.delivery, call)
    await call.parts.streamer.deliver(delivery, call.exchange, cached.fallback)
    return True


def _delivery(
    bucket: BucketInfo,
    version: Found,
    selection: Selection,
    headers: Sequence[tuple[str, str]],
    sources: tuple[Source, ...],
    *,
    is_hit: bool,
) -> Delivery:
    return Delivery(
        tenant=bucket.tenant,
        bucket_id=bucket.id,
        key=version.key,
        generation=version.generation,
        sha256=version.sha256,
        size=version.size,
        span=selection.span,
        status=selection.status,
        headers=[*headers, *selection.headers],
        sources=sources,
        is_verified=bucket.verifies_reads,
        is_hit=is_hit,
        crc32=version.crc32,
    )


def _with_request_id(delivery: Delivery, call: Call) -> Delivery:
    request_id = (REQUEST_ID_HEADER, call.request.request_id)
    return delivery._replace(headers=[request_id, *delivery.headers])


async def _open(call: Call, bucket: BucketInfo, key: str) -> Opened:
    try:
        return await call.parts.fills.open(bucket, key)
    except OriginMissing:
        raise S3Error("NoSuchKey", extra={"Key": key}) from None


async def _sources(call: Call, bucket: BucketInfo, found: Found, region: str) -> tuple[Source, ...]:
    holders = await call.parts.directory.locations(found.sha256)
    if not holders:
        return ()
    return call.parts.nodes.sources(
        holders,
        region,
        organization_id=bucket.tenant.organization_id,
        is_public=bucket.is_public,
    )
