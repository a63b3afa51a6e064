"""ListObjectVersions: each object has one version, ``null``."""

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.xml import Node
from edgecache.brain.core.values import ListedObject
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import (
    STORAGE_CLASS,
    ListingQuery,
    iso,
    list_page,
    owner_id,
    page_of,
    parse_query,
)

NULL = "null"


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
