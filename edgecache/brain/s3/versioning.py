"""GetBucketVersioning, PutBucketVersioning and ListObjectVersions."""

from typing import Final

from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.xml import Node, document, parse
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.objects import version_listing
from edgecache.brain.objects.object_versions import (
    ENABLED,
    SUSPENDED,
    VERSION_ID,
    position_of,
)
from edgecache.brain.objects.version_listing import ListedVersion, VersionPage
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import (
    STORAGE_CLASS,
    ListingQuery,
    iso,
    owner_id,
    page_of,
    parse_query,
)
from edgecache.brain.s3.objects import version_ids

OF_DELETES: Final = "MfaDelete"


async def get_bucket_versioning(context: RequestContext) -> S3Response:
    """Return whether versions are kept; an empty document if they never were."""
    bucket = await context.bucket()
    status: list[Node] = [("Status", bucket.versioning)] if bucket.versioning else []
    return S3Response(body=document("VersioningConfiguration", status))


async def put_bucket_versioning(context: RequestContext) -> S3Response:
    """Enable or suspend versions.

    Raises S3Error: MalformedXML; IllegalVersioningConfigurationException without a status;
    NotImplemented for MFA deletes, and in a bucket with its own origin.
    """
    bucket = await context.writable_bucket()
    root = await parse(await read_xml(context), "VersioningConfiguration")
    root.check("Status", OF_DELETES, are_texts=True)
    if root.value(OF_DELETES, "Disabled") != "Disabled":
        raise not_implemented(f"{OF_DELETES} of PutBucketVersioning")
    status = root.value("Status")
    if status not in {"", ENABLED, SUSPENDED}:
        raise S3Error("MalformedXML")
    if not status:
        raise S3Error("IllegalVersioningConfigurationException")
    if bucket.origin_id is not None:
        raise not_implemented("PutBucketVersioning of a bucket with an origin of its own")
    await context.dependencies.buckets.change(context.tenant, bucket.id, {"versioning": status})
    return S3Response()


async def list_object_versions(context: RequestContext) -> S3Response:
    """Return a page of versions and delete markers, of each key the newest first.

    Raises S3Error InvalidArgument.
    """
    request = context.request
    query = parse_query(request)
    marker, version_marker = request.query("key-marker"), request.query("version-id-marker")
    if request.has("version-id-marker") and not marker:
        raise S3Error(
            "InvalidArgument", "A version-id marker cannot be specified without a key marker."
        )
    bucket = await context.bucket()
    position = await _position(context, bucket, marker, version_marker)
    page = await _page(context, bucket, query, marker, position)
    owner = owner_id(context.tenant)
    if isinstance(page.last, ListedVersion):
        last, next_version = page.last.key, version_ids.shown(page.last.marker)
    else:
        last, next_version = page.last or "", ""
    nodes: list[Node | None] = [
        ("Name", request.bucket),
        ("KeyMarker", query.name(marker)),
        ("VersionIdMarker", version_marker),
        *query.nodes(),
        ("IsTruncated", page.last is not None),
        ("NextKeyMarker", query.name(last)) if last else None,
        ("NextVersionIdMarker", next_version) if next_version else None,
    ]
    rows = (_version(query, row, owner) for row in page.versions)
    return await page_of("ListVersionsResult", nodes, query, rows, page.prefixes)


async def _position(context: RequestContext, bucket: BucketInfo, key: str, marker: str) -> int:
    """Return the position that a version-id-marker stands for; 0 behind all versions of the key.

    Raises S3Error InvalidArgument.
    """
    if marker == version_ids.NULL and bucket.versioning:
        return await version_listing.null_position(context.dependencies.database, bucket.id, key)
    if marker in {"", version_ids.NULL}:
        return 0
    if VERSION_ID.fullmatch(marker) is None:
        raise S3Error(
            "InvalidArgument",
            "Invalid version id specified",
            extra={"ArgumentName": "version-id-marker", "ArgumentValue": marker[:100]},
        )
    return position_of(marker)


async def _page(
    context: RequestContext, bucket: BucketInfo, query: ListingQuery, marker: str, position: int
) -> VersionPage:
    if query.max_keys == 0:
        return VersionPage((), (), None)
    return await context.dependencies.objects.list_versions(
        bucket, query.prefix, marker, position, query.delimiter, query.max_keys
    )


def _version(query: ListingQuery, row: ListedVersion, owner: str) -> Node:
    is_marker = row.size is None
    children: list[Node | None] = [
        ("Key", query.name(row.key)),
        ("VersionId", version_ids.shown(row.version_id)),
        ("IsLatest", row.is_latest),
        ("LastModified", iso(row.last_modified)),
        None if is_marker else ("ETag", f'"{row.etag}"'),
        None if row.size is None else ("Size", row.size),
        None if is_marker else ("StorageClass", STORAGE_CLASS),
        ("Owner", [("ID", owner)]),
    ]
    return "DeleteMarker" if is_marker else "Version", children
