"""Multipart uploads: create and abort one, upload or copy its parts, list uploads and parts."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.xml import Node, document, long_document
from edgecache.brain.core.values import Span, StagedFile
from edgecache.brain.db.database import Row
from edgecache.brain.objects import upload_rows
from edgecache.brain.s3 import bodies, encryption
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
from edgecache.brain.s3.multipart.uploads import Part
from edgecache.brain.s3.objects import conditions
from edgecache.brain.s3.objects import headers as object_headers
from edgecache.brain.s3.objects.copy import CopySource, copied
from edgecache.brain.s3.objects.selection import part_number

_RANGE: Final = re.compile(r"bytes=([0-9]{1,19})-([0-9]{1,19})", re.ASCII)

PAGE_LIMIT: Final = 1000


async def create_multipart_upload(context: RequestContext) -> S3Response:
    """Create an upload.

    Raises S3Error: NoSuchBucket, AccessDenied, InvalidRequest (an impossible checksum type).
    """
    bucket = await context.writable_bucket()
    request, dependencies = context.request, context.dependencies
    encryption.check(context, bucket)
    fields = object_headers.upload_fields(request, bucket)
    algorithm = checksums.requested_algorithm(request)
    checksum_type = _checksum_type(request, algorithm)
    upload_id = await uploads.create(
        dependencies.database,
        bucket,
        request.key,
        fields,
        algorithm=algorithm,
        checksum_type=checksum_type,
    )
    nodes: list[Node] = [
        ("Bucket", request.bucket),
        ("Key", request.key),
        ("UploadId", upload_id),
    ]
    headers = [*encryption.headers(context, bucket)]
    if algorithm:
        headers += [
            ("x-amz-checksum-algorithm", algorithm.upper()),
            ("x-amz-checksum-type", checksum_type),
        ]
    return S3Response(headers=headers, body=document("InitiateMultipartUploadResult", nodes))


def _checksum_type(request: S3Request, algorithm: str) -> str:
    """Return the type of the object's checksum, by AWS's defaults and restrictions."""
    kind = request.header(checksums.TYPE_HEADER).upper()
    if kind not in {"", checksums.FULL, checksums.COMPOSITE}:
        raise S3Error("InvalidRequest", "Value for x-amz-checksum-type header is invalid.")
    if not algorithm:
        if kind:
            raise S3Error(
                "InvalidRequest",
                "The x-amz-checksum-type header can only be used with the "
                "x-amz-checksum-algorithm header.",
            )
        return ""
    can_be_full = algorithm in checksums.COMBINES
    can_be_composite = algorithm != "crc64nvme"
    kind = kind or (checksums.COMPOSITE if can_be_composite else checksums.FULL)
    if not (can_be_full if kind == checksums.FULL else can_be_composite):
        raise S3Error(
            "InvalidRequest",
            f"The {kind} checksum type cannot be used with the {algorithm} checksum algorithm.",
        )
    return kind


async def upload_part(context: RequestContext) -> S3Response:
    """Store a part.

    Raises S3Error: NoSuchUpload, InvalidArgument, EntityTooLarge, what ``bodies.receive`` raises.
    Raises TooManyParts.
    """
    bucket = await context.writable_bucket()
    request, dependencies = context.request, context.dependencies
    number = part_number(request)
    upload = await uploads.find(
        dependencies.database, bucket, request.key, request.query("uploadId")
    )
    named = checksums.declared_digests(request).name
    if upload.algorithm and named and named != upload.algorithm:
        raise S3Error(
            "InvalidRequest",
            f"Checksum Type mismatch occurred, expected checksum Type: {upload.algorithm}, "
            f"actual checksum Type: {named}",
        )
    await dependencies.upload_parts.check_room(bucket.tenant, bodies.body_length(context))
    received = await bodies.receive(context, keep=upload.algorithm or checksums.DEFAULT)
    part = await uploads.write_part(
        dependencies.database,
        dependencies.upload_parts,
        upload,
        number,
        received.body,
        received.checksums,
    )
    name = named or upload.algorithm or checksums.DEFAULT
    checksum = (checksums.HEADER + name, received.checksums[name])
    encrypted = encryption.headers(context, bucket)
    return S3Response(headers=[("etag", f'"{part.etag}"'), checksum, *encrypted])


async def upload_part_copy(context: RequestContext) -> S3Response:
    """Store bytes of the source as a part.

    Raises S3Error: NoSuchUpload, NoSuchKey, PreconditionFailed, InvalidArgument, EntityTooLarge.
    """
    bucket = await context.writable_bucket()
    request, dependencies = context.request, context.dependencies
    number = part_number(request)
    upload = await uploads.find(
        dependencies.database, bucket, request.key, request.query("uploadId")
    )

    async def received(
        source: CopySource,
    ) -> tuple[StagedFile, dict[str, str], list[tuple[str, str]]]:
        opened = await dependencies.objects.open_source(
            source.bucket, source.key, source.version_id
        )
        found = opened.version if opened.version.size >= 0 else await opened.whole()
        conditions.check_copy(request, found.etag, found.last_modified)
        span = _span(request.header("x-amz-copy-source-range"), found.size)
        running = bodies.BodyChecksums(upload.algorithm or checksums.DEFAULT)
        staged = await dependencies.data_directory.take(running.over(opened.body(span)))
        of_source = replace(source, version=found).headers
        return staged, running.values(staged.manifest), of_source

    staged, computed, of_source = await copied(context, received)
    part = await uploads.write_part(
        dependencies.database, dependencies.upload_parts, upload, number, staged, computed
    )
    nodes: list[Node] = [
        ("LastModified", iso(part.created_at)),
        ("ETag", f'"{part.etag}"'),
        *((checksums.element(name), value) for name, value in computed.items()),
    ]
    headers = [*of_source, *encryption.headers(context, bucket)]
    return S3Response(headers=headers, body=document("CopyPartResult", nodes))


def _span(text: str, size: int) -> Span:
    if not text:
        span = Span(0, size)
    else:
        match = _RANGE.fullmatch(text)
        if match is None or int(match[2]) < int(match[1]):
            raise S3Error(
                "InvalidArgument",
                "The x-amz-copy-source-range value must be of the form bytes=first-last where "
                "first and last are the zero-based offsets of the first and last bytes to copy",
            )
        if int(match[2]) >= size:
            raise S3Error(
                "InvalidRange",
                f"Range specified is not valid for source object of size: {size}",
                extra={"RangeRequested": text[:100], "ActualObjectSize": str(size)},
            )
        span = Span(int(match[1]), int(match[2]) - int(match[1]) + 1)
    if span.length > bodies.UPLOAD_LIMIT_BYTES:
        raise S3Error("EntityTooLarge")
    return span


async def abort_multipart_upload(context: RequestContext) -> S3Response:
    """Delete the upload. Raises S3Error NoSuchUpload, UploadMissing, UploadBusy."""
    bucket = await context.writable_bucket()
    request, dependencies = context.request, context.dependencies
    upload = await uploads.find(
        dependencies.database, bucket, request.key, request.query("uploadId")
    )
    await upload_rows.remove(dependencies.database, upload.id)
    return S3Response(204)


async def list_parts(context: RequestContext) -> S3Response:
    """Return a page of parts. Raises S3Error NoSuchUpload."""
    bucket = await context.writable_bucket()
    request, dependencies = context.request, context.dependencies
    upload = await uploads.find(
        dependencies.database, bucket, request.key, request.query("uploadId")
    )
    marker = request.integer("part-number-marker", 0, maximum=2**31 - 1)
    limit = request.integer("max-parts", PAGE_LIMIT, maximum=PAGE_LIMIT)
    rows = await uploads.parts(dependencies.database, upload.id, after=marker, limit=limit + 1)
    page = rows[:limit]
    owner: list[Node] = [("ID", owner_id(context.tenant))]
    nodes: list[Node | None] = [
        ("Bucket", request.bucket),
        ("Key", request.key),
        ("UploadId", upload.id),
        ("Initiator", owner),
        ("Owner", owner),
        ("StorageClass", STORAGE_CLASS),
        ("PartNumberMarker", marker),
        ("NextPartNumberMarker", page[-1].number if page else 0),
        ("MaxParts", limit),
        ("IsTruncated", len(rows) > limit > 0),
        ("ChecksumAlgorithm", upload.algorithm.upper()) if upload.algorithm else None,
        ("ChecksumType", upload.checksum_type) if upload.checksum_type else None,
    ]
    elements = (_part(part) for part in page)
    return S3Response(body=await long_document("ListPartsResult", nodes, elements))


def _part(part: Part) -> Node:
    values = [(checksums.element(n), v) for n, v in part.checksums.items() if n in checksums.SIZES]
    return "Part", [
        ("PartNumber", part.number),
        ("LastModified", iso(part.created_at)),
        ("ETag", f'"{part.etag}"'),
        ("Size", part.size),
        *values,
    ]


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
