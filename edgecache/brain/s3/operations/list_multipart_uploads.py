"""ListMultipartUploads: what was begun and not completed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from edgecache.brain.database import Row
from edgecache.brain.s3 import uploads
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.listing import STORAGE_CLASS, Asked, asked, iso, owner_id
from edgecache.brain.s3.xml import Node, document
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


async def run(call: Call) -> Answer:
    """Answer with a page, grouped by a delimiter where one is given."""
    call.require_write()
    bucket = await call.bucket()
    request = call.request
    what = asked(request, limit_name="max-uploads")
    key_marker = request.query("key-marker")
    id_marker = request.query("upload-id-marker") if key_marker else ""
    page = await _page(call, bucket, what, key_marker, id_marker)
    owner: list[Node] = [("ID", owner_id(call.tenant))]
    nodes: list[Node | None] = [
        ("Bucket", request.bucket),
        ("KeyMarker", what.name(key_marker)),
        ("UploadIdMarker", id_marker),
        ("NextKeyMarker", what.name(page.next_key)) if page.is_truncated else None,
        ("NextUploadIdMarker", page.next_id) if page.is_truncated else None,
        ("Prefix", what.name(what.prefix)),
        ("Delimiter", what.name(what.delimiter)) if what.delimiter else None,
        ("MaxUploads", what.max_keys),
        ("EncodingType", "url") if what.encodes else None,
        ("IsTruncated", page.is_truncated),
        *(_upload(what, row, owner) for row in page.rows),
        *(("CommonPrefixes", [("Prefix", what.name(prefix))]) for prefix in page.prefixes),
    ]
    return Answer(body=document("ListMultipartUploadsResult", nodes))


async def _page(call: Call, bucket: BucketInfo, what: Asked, key: str, upload_id: str) -> _Page:
    page = _Page()
    if what.delimiter and key.endswith(what.delimiter) and key.startswith(what.prefix):
        key += LAST
    for _ in range(ROUNDS):
        rows = await uploads.page(
            call.parts.database,
            bucket,
            prefix=what.prefix,
            key=key,
            upload_id=upload_id,
            limit=what.max_keys - len(page) + 1,
        )
        for row in rows:
            if len(page) >= what.max_keys:
                page.is_truncated = what.max_keys > 0
                return page
            group = _group(row.key, what)
            if group:
                # The rest of the group is leapt over.
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


def _group(key: str, what: Asked) -> str:
    if not what.delimiter:
        return ""
    end = key.find(what.delimiter, len(what.prefix))
    return key[: end + len(what.delimiter)] if end >= 0 else ""


def _upload(what: Asked, row: Row, owner: Sequence[Node]) -> Node:
    return "Upload", [
        ("Key", what.name(row.key)),
        ("UploadId", row.id),
        ("Initiator", owner),
        ("Owner", owner),
        ("StorageClass", STORAGE_CLASS),
        ("Initiated", iso(row.created_at)),
        ("ChecksumAlgorithm", row.checksum_algorithm.upper()) if row.checksum_algorithm else None,
        ("ChecksumType", row.checksum_type) if row.checksum_type else None,
    ]
