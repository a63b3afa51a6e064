"""The listings of a bucket's objects: ListObjects and ListObjectsV2.

Pages of the first follow a marker, those of the second a token.
"""

from edgecache.brain.aws.errors import not_implemented
from edgecache.brain.aws.xml import Node
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import (
    decode_token,
    encode_token,
    list_page,
    object_node,
    owner_id,
    page_of,
    parse_query,
)


async def list_objects(context: RequestContext) -> S3Response:
    """Return a page; NextMarker is set where the last key alone is not enough."""
    query = parse_query(context.request)
    marker = context.request.query("marker")
    listing = await list_page(context, query, start_after=marker)
    owner = owner_id(context.tenant)
    next_marker = listing.next if query.delimiter else None
    nodes: list[Node | None] = [
        ("Name", context.request.bucket),
        ("Marker", query.name(marker)),
        *query.nodes(),
        ("IsTruncated", listing.next is not None),
        ("NextMarker", query.name(next_marker)) if next_marker else None,
    ]
    rows = (object_node(query, row, owner=owner) for row in listing.objects)
    return await page_of("ListBucketResult", nodes, query, rows, listing.prefixes)


async def list_objects_v2(context: RequestContext) -> S3Response:
    request = context.request
    if request.query("list-type") != "2":
        raise not_implemented(f"list-type={request.query('list-type')[:100]}")
    query = parse_query(request)
    token = request.query("continuation-token")
    start_after = request.query("start-after")
    listing = await list_page(
        context, query, start_after=decode_token(token) if token else start_after
    )
    owner = owner_id(context.tenant) if request.query("fetch-owner") == "true" else ""
    nodes: list[Node | None] = [
        ("Name", request.bucket),
        *query.nodes(),
        ("StartAfter", query.name(start_after)) if start_after else None,
        ("ContinuationToken", token) if request.has("continuation-token") else None,
        ("KeyCount", len(listing.objects) + len(listing.prefixes)),
        ("IsTruncated", listing.next is not None),
        ("NextContinuationToken", encode_token(listing.next)) if listing.next else None,
    ]
    rows = (object_node(query, row, owner=owner) for row in listing.objects)
    return await page_of("ListBucketResult", nodes, query, rows, listing.prefixes)
