"""The listings of a bucket: ListObjects, ListObjectsV2 and ListObjectVersions.

Pages of the first follow a marker, those of the second a token. Each object has one version,
``null``.
"""

from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.xml import Node
from edgecache.brain.core.values import ListedObject
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import (
    STORAGE_CLASS,
    ListingQuery,
    decode_token,
    encode_token,
    iso,
    list_page,
    object_node,
    owner_id,
    page_of,
    parse_query,
)

NULL = "null"


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
        ("ContinuationToken", token) if token else None,
        ("KeyCount", len(listing.objects) + len(listing.prefixes)),
        ("IsTruncated", listing.next is not None),
        ("NextContinuationToken", encode_token(listing.next)) if listing.next else None,
    ]
    rows = (object_node(query, row, owner=owner) for row in listing.objects)
    return await page_of("ListBucketResult", nodes, query, rows, listing.prefixes)


async def list_object_versions(context: RequestContext) -> S3Response:
    request = context.request
    query = parse_query(request)
    marker = request.query("key-marker")
    if request.has("version-id-marker") and not marker:
        raise S3Error(
            "InvalidArgument", "A version-id marker cannot be specified without a key marker."
        )
    listing = await list_page(context, query, start_after=marker)
    owner = owner_id(context.tenant)
    nodes: list[Node | None] = [
        ("Name", request.bucket),
        ("KeyMarker", query.name(marker)),
        ("VersionIdMarker", request.query("version-id-marker")),
        *query.nodes(),
        ("IsTruncated", listing.next is not None),
        ("NextKeyMarker", query.name(listing.next)) if listing.next else None,
        ("NextVersionIdMarker", NULL) if listing.next else None,
    ]
    rows = (_version(query, row, owner) for row in listing.objects)
    return await page_of("ListVersionsResult", nodes, query, rows, listing.prefixes)


def _version(query: ListingQuery, row: ListedObject, owner: str) -> Node:
    children: list[Node | None] = [
        ("Key", query.name(row.key)),
        ("VersionId", NULL),
        ("IsLatest", True),
        ("LastModified", iso(row.last_modified)),
        ("ETag", f'"{row.etag}"'),
        ("Size", row.size),
        ("StorageClass", STORAGE_CLASS),
        ("Owner", [("ID", owner)]),
    ]
    return "Version", children
