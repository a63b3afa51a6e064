"""ListObjectVersions: every object has one version, ``null``."""

from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.listing import (
    STORAGE_CLASS,
    Asked,
    asked,
    common_prefixes,
    iso,
    owner_id,
    page,
)
from edgecache.brain.s3.xml import Node, document
from edgecache.brain.values import Listed

NULL = "null"


async def run(call: Call) -> Answer:
    """Answer with a page."""
    request = call.request
    what = asked(request)
    marker = request.query("key-marker")
    if request.has("version-id-marker") and not marker:
        raise S3Error(
            "InvalidArgument", "A version-id marker cannot be specified without a key marker."
        )
    listing = await page(call, what, start_after=marker)
    owner = owner_id(call.tenant)
    nodes: list[Node | None] = [
        ("Name", request.bucket),
        ("KeyMarker", what.name(marker)),
        ("VersionIdMarker", request.query("version-id-marker")),
        *what.nodes(),
        ("IsTruncated", listing.next is not None),
        ("NextKeyMarker", what.name(listing.next)) if listing.next else None,
        ("NextVersionIdMarker", NULL) if listing.next else None,
        *(_version(what, row, owner) for row in listing.objects),
        *common_prefixes(what, listing.prefixes),
    ]
    return Answer(body=document("ListVersionsResult", nodes))


def _version(what: Asked, row: Listed, owner: str) -> Node:
    children: list[Node | None] = [
        ("Key", what.name(row.key)),
        ("VersionId", NULL),
        ("IsLatest", True),
        ("LastModified", iso(row.last_modified)),
        ("ETag", f'"{row.etag}"'),
        ("Size", row.size),
        ("StorageClass", STORAGE_CLASS),
        ("Owner", [("ID", owner)]),
    ]
    return "Version", children
