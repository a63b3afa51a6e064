"""GetObject and HeadObject: from the nearest worker that holds the object, or from its origin.

A plain HTTP client may be redirected to the worker itself. SDKs do not follow redirects, so a
request that is signed in its header gets one only on demand.
"""

import time
from collections.abc import Sequence
from typing import Final

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.core.errors import OriginChanged, OriginMissing, StoreMissing
from edgecache.brain.core.values import BucketInfo, ObjectVersion, WorkerSource
from edgecache.brain.delivery.plan import DeliveryPlan, delivery_of, sources_of
from edgecache.brain.delivery.response_cache import ResponseKey
from edgecache.brain.delivery.streaming import READ_ATTEMPTS
from edgecache.brain.nodes.tickets import TicketGrant, client_prefix
from edgecache.brain.objects.open_object import OpenObject
from edgecache.brain.origins.driver import ranged_of
from edgecache.brain.s3 import encryption
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.lifecycle import expiry_headers
from edgecache.brain.s3.objects import conditions
from edgecache.brain.s3.objects.conditions import NotModified
from edgecache.brain.s3.objects.first_steps import (
    find_object,
    find_version,
    no_such_key,
    response_overrides,
    select_and_describe,
    wanted_version,
)
from edgecache.brain.s3.objects.selection import ObjectSelection
from edgecache.protocol.names import TICKET_PARAMETER, object_path
from edgecache.protocol.tickets import TicketKind

OPT_IN: Final = "x-zonal-redirect"

REQUEST_ID_HEADER = "x-amz-request-id"


async def get_object(context: RequestContext) -> S3Response | None:
    """Send the object, or the part that the request is for. None once it is sent.

    Raises S3Error: NoSuchKey, PreconditionFailed, InvalidRange, …; NotModified.
    """
    bucket = await context.readable_bucket()
    key = context.request.key
    overrides = response_overrides(context)
    cache_key = _cache_key(context.request, bucket, key, overrides)
    if cache_key is not None and await _sent_from_cache(context, bucket, cache_key):
        return None
    opened = await _open(context, bucket, key, _ranged(context.request))
    for _ in range(READ_ATTEMPTS - 1):
        try:
            return await _respond(context, bucket, opened, overrides, cache_key)
        except (OriginChanged, StoreMissing):
            if context.exchange.is_answered or wanted_version(context, bucket) is not None:
                raise
            # An overwrite may have deleted the bytes of the version that was opened; this brain may
            # not have heard of it yet.
            opened = await context.dependencies.objects.fetch(bucket, key)
            context.is_hit = opened.is_hit
    return await _respond(context, bucket, opened, overrides, cache_key)


async def _respond(
    context: RequestContext,
    bucket: BucketInfo,
    opened: OpenObject,
    overrides: dict[str, str],
    cache_key: ResponseKey | None,
) -> S3Response | None:
    """Send what was opened. Raises as ``get_object``, and what the delivery raises."""
    key = context.request.key
    try:
        selection, headers = select_and_describe(context, bucket, opened.version, overrides)
        if not opened.covers(selection.span):
            # The origin sent another part than it was asked for.
            opened = await _open(context, bucket, key)
            selection, headers = select_and_describe(context, bucket, opened.version, overrides)
    except (NotModified, S3Error):
        context.count_empty(bucket, is_hit=opened.is_hit)
        raise
    version = opened.version
    dependencies = context.dependencies
    if version.size < 0:
        head = (selection.status, [(REQUEST_ID_HEADER, context.request.request_id), *headers])
        await dependencies.streamer.pass_through(bucket, context.exchange, head, opened.body())
        return None
    expiry = await expiry_headers(context, bucket, version)
    region = dependencies.locator.region_of(
        context.request.client,
        context.request.headers,
        peer=context.exchange.scope.client_address,
    )
    sources: tuple[WorkerSource, ...] = ()
    if opened.is_hit:
        sources = await sources_of(
            dependencies.directory, dependencies.nodes, bucket, version, region
        )
    redirect = redirect_to_worker(context, bucket, version, selection, sources)
    if redirect is not None:
        return redirect
    delivery = delivery_of(
        bucket,
        version,
        span=selection.span,
        status=selection.status,
        headers=[*headers, *selection.headers, *expiry, *encryption.headers(context, bucket)],
        sources=sources,
        is_hit=opened.is_hit,
    )
    streamer = dependencies.streamer
    if cache_key is not None and streamer.is_in_memory(delivery):
        dependencies.responses.keep(
            cache_key, bucket, version, delivery, opened.body, region=region
        )
    await streamer.deliver(_with_request_id(delivery, context), context.exchange, opened.body)
    return None


async def head_object(context: RequestContext) -> S3Response:
    """Return the object's headers only."""
    bucket = await context.readable_bucket()
    overrides = response_overrides(context)
    named = wanted_version(context, bucket)
    try:
        version = await find_object(context, bucket, context.request.key, named)
    except S3Error:
        if bucket.origin_id is not None:
            context.count_empty(bucket, is_hit=False)
        raise
    is_hit = bool(context.is_hit)
    try:
        selection, headers = select_and_describe(context, bucket, version, overrides)
    except (NotModified, S3Error):
        context.count_empty(bucket, is_hit=is_hit)
        raise
    context.count_empty(bucket, is_hit=is_hit)
    length = [("content-length", str(selection.span.length))] if version.size >= 0 else []
    expiry = await expiry_headers(context, bucket, version)
    more = [*expiry, *encryption.headers(context, bucket), *length]
    return S3Response(selection.status, [*headers, *selection.headers, *more])


def redirect_to_worker(
    context: RequestContext,
    bucket: BucketInfo,
    version: ObjectVersion,
    selection: ObjectSelection,
    sources: Sequence[WorkerSource],
) -> S3Response | None:
    """Return a 307 with a ticket for these bytes; None where the brain sends them itself."""
    request = context.request
    if not sources or version.size == 0 or not may_redirect(request, bucket):
        return None
    if context.exchange.added:
        # A browser follows it only to a server with CORS headers, which workers do not send.
        return None
    source = sources[0]
    grant = TicketGrant(
        bucket.tenant, bucket.id, version.sha256, selection.span.length, selection.span.start
    )
    ticket = context.dependencies.tickets.sign(
        TicketKind.READ,
        source.node_id,
        grant,
        now=time.time(),
        client_prefix=client_prefix(request.client),
    )
    location = f"{source.endpoint}{object_path(version.sha256)}?{TICKET_PARAMETER}={ticket}"
    return S3Response(307, [("location", location), ("cache-control", "no-store")])


def may_redirect(request: S3Request, bucket: BucketInfo) -> bool:
    """True if the request asks for redirects, or its bucket allows them for plain clients."""
    if bucket.verifies_reads:
        return False
    is_sdk = bool(request.header("authorization"))
    return request.header(OPT_IN) == "1" or (bucket.allows_redirect and not is_sdk)


async def _open(
    context: RequestContext, bucket: BucketInfo, key: str, ranged: tuple[tuple[str, str], ...] = ()
) -> OpenObject:
    """Open the object, of which a cold one's origin is asked for a part."""
    named = wanted_version(context, bucket)
    if named is not None:
        found = await find_version(context, bucket, key, named)
        return context.dependencies.objects.open_version(bucket, found)
    client = "" if context.identity is not None else context.request.client
    try:
        opened = await context.dependencies.objects.open(bucket, key, client=client, ranged=ranged)
    except OriginMissing as missing:
        if bucket.origin_id is not None:
            context.count_empty(bucket, is_hit=missing.is_remembered)
        if bucket.versioning:
            raise await no_such_key(context, bucket, key) from None
        raise
    context.is_hit = opened.is_hit
    return opened


def _ranged(request: S3Request) -> tuple[tuple[str, str], ...]:
    if request.has("partNumber"):
        return ()
    return ranged_of(request.header("range"), request.header("if-range"))


def _cache_key(
    request: S3Request, bucket: BucketInfo, key: str, overrides: dict[str, str]
) -> ResponseKey | None:
    """Return the response's key; None if the response depends on more of the request."""
    depends_on_more = (
        overrides
        or request.has("partNumber")
        or request.has("versionId")
        or "range" in request.headers
        or conditions.has_any(request)
        or may_redirect(request, bucket)
    )
    return None if depends_on_more else ResponseKey(bucket.id, key, checksums.are_wanted(request))


async def _sent_from_cache(context: RequestContext, bucket: BucketInfo, key: ResponseKey) -> bool:
    """Send the response that is cached, if there is one, and its bytes are in memory."""
    dependencies = context.dependencies
    cached = dependencies.responses.find(key, bucket)
    if cached is None or not dependencies.streamer.is_in_memory(cached.delivery):
        return False
    context.is_hit = True
    delivery = _with_request_id(cached.delivery, context)
    await dependencies.streamer.deliver(delivery, context.exchange, cached.fallback)
    return True


def _with_request_id(delivery: DeliveryPlan, context: RequestContext) -> DeliveryPlan:
    request_id = (REQUEST_ID_HEADER, context.request.request_id)
    return delivery._replace(headers=[request_id, *delivery.headers])
