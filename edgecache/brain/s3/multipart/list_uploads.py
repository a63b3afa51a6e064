"""ListMultipartUploads: unfinished uploads, grouped by a delimiter where one is given."""

from collections.abc import Sequence

from edgecache.brain.aws.xml import Node
from edgecache.brain.db.database import Row
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import (
    STORAGE_CLASS,
    ListingQuery,
    iso,
    owner_id,
    page_of,
    parse_query,
)
from edgecache.brain.s3.multipart import uploads


async def list_multipart_uploads(context: RequestContext) -> S3Response:
    bucket = await context.writable_bucket()
    request = context.request
    query = parse_query(request, limit_name="max-uploads")
    key_marker = request.query("key-marker")
    id_marker = request.query("upload-id-marker") if key_marker else ""
    found = await uploads.page(
        context.dependencies.database,
        bucket,
        prefix=query.prefix,
        delimiter=query.delimiter,
        key=key_marker,
        upload_id=id_marker,
        limit=query.max_keys + 1,
    )
    page = found[: query.max_keys]
    # The page's last upload, if more follow.
    last = page[-1] if page and len(found) > len(page) else None
    owner: list[Node] = [("ID", owner_id(context.tenant))]
    nodes: list[Node | None] = [
        ("Bucket", request.bucket),
        ("KeyMarker", query.name(key_marker)),
        ("UploadIdMarker", id_marker),
        ("NextKeyMarker", query.name(last.grouped or last.key)) if last else None,
        ("NextUploadIdMarker", "" if last.grouped else last.id) if last else None,
        ("Prefix", query.name(query.prefix)),
        ("Delimiter", query.name(query.delimiter)) if query.delimiter else None,
        ("MaxUploads", query.max_keys),
        ("EncodingType", "url") if query.encodes else None,
        ("IsTruncated", last is not None),
    ]
    rows = (_upload(query, row, owner) for row in page if row.grouped is None)
    prefixes = [row.grouped for row in page if row.grouped is not None]
    return await page_of("ListMultipartUploadsResult", nodes, query, rows, prefixes)


def _upload(query: ListingQuery, row: Row, owner: Sequence[Node]) -> Node:
    return "Upload", [
        ("Key", query.name(row.key)),
        ("UploadId", row.id),
        ("Initiator", owner),
        ("Owner", owner),
        ("StorageClass", STORAGE_CLASS),
        ("Initiated", iso(row.created_at)),
        ("ChecksumAlgorithm", row.checksum_algorithm.upper()) if row.checksum_algorithm else None,
        ("ChecksumType", row.checksum_type) if row.checksum_type else None,
    ]
