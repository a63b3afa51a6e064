"""ListMultipartUploads: unfinished uploads, grouped by a delimiter where one is given."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from edgecache.brain.database import Row
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listings.query import (
    STORAGE_CLASS,
    ListingQuery,
    iso,
    owner_id,
    page_of,
    parse_query,
)
from edgecache.brain.s3.multipart import uploads
from edgecache.brain.s3.xml import Node
from edgecache.brain.storage.listings import LAST
from edgecache.brain.values import BucketInfo

ROUNDS: Final = 1000


@dataclass(slots=True)
class _Page:
    rows: list[Row] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    is_truncated: bool = False
    next_key: str = ""
    next_id: str = ""

    def __len__(self) -> int:
        return len(self.rows) + len(self.prefixes)


async def list_multipart_uploads(context: RequestContext) -> S3Response:
    """Return a page."""
    bucket = await context.writable_bucket()
    request = context.request
    query = parse_query(request, limit_name="max-uploads")
    key_marker = request.query("key-marker")
    id_marker = request.query("upload-id-marker") if key_marker else ""
    page = await _page(context, bucket, query, key_marker, id_marker)
    owner: list[Node] = [("ID", owner_id(context.tenant))]
    nodes: list[Node | None] = [
        ("Bucket", request.bucket),
        ("KeyMarker", query.name(key_marker)),
        ("UploadIdMarker", id_marker),
        ("NextKeyMarker", query.name(page.next_key)) if page.is_truncated else None,
        ("NextUploadIdMarker", page.next_id) if page.is_truncated else None,
        ("Prefix", query.name(query.prefix)),
        ("Delimiter", query.name(query.delimiter)) if query.delimiter else None,
        ("MaxUploads", query.max_keys),
        ("EncodingType", "url") if query.encodes else None,
        ("IsTruncated", page.is_truncated),
    ]
    rows = (_upload(query, row, owner) for row in page.rows)
    return await page_of("ListMultipartUploadsResult", nodes, query, rows, page.prefixes)


async def _page(
    context: RequestContext, bucket: BucketInfo, query: ListingQuery, key: str, upload_id: str
) -> _Page:
    page = _Page()
    if query.delimiter and key.endswith(query.delimiter) and key.startswith(query.prefix):
        key += LAST
    for _ in range(ROUNDS):
        rows = await uploads.page(
            context.parts.database,
            bucket,
            prefix=query.prefix,
            key=key,
            upload_id=upload_id,
            limit=query.max_keys - len(page) + 1,
        )
        for row in rows:
            if len(page) >= query.max_keys:
                page.is_truncated = query.max_keys > 0
                return page
            group = _group(row.key, query)
            if group:
                # Skip the rest of the group.
                page.prefixes.append(group)
                key, upload_id = group + LAST, ""
                page.next_key, page.next_id = group, ""
                break
            page.rows.append(row)
            key, upload_id = row.key, row.id
            page.next_key, page.next_id = key, upload_id
        else:
            return page
    return page


def _group(key: str, query: ListingQuery) -> str:
    if not query.delimiter:
        return ""
    end = key.find(query.delimiter, len(query.prefix))
    return key[: end + len(query.delimiter)] if end >= 0 else ""


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
