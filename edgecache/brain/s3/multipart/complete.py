"""CompleteMultipartUpload: the listed parts become an object, or nothing changes."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.sigv4.canonical import encoded
from edgecache.brain.aws.xml import DECLARATION, Element, Node, document, error_document, parse
from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import BrainError, OriginMissing, PartMissing, UploadMissing
from edgecache.brain.core.loop_steps import in_steps
from edgecache.brain.core.values import BucketInfo, Conditions, ObjectVersion, WrittenFields
from edgecache.brain.s3 import encryption
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.error_details import described
from edgecache.brain.s3.lifecycle import expiry_headers
from edgecache.brain.s3.multipart import uploads
from edgecache.brain.s3.multipart.uploads import Part, UnfinishedUpload
from edgecache.brain.s3.objects import conditions, version_ids
from edgecache.brain.s3.objects.selection import PART_LIMIT

# A number, an ETag and checksums of each part.
ELEMENT_LIMIT: Final = 120_000
MIN_PART_BYTES: Final = 5 * 2**20
OBJECT_LIMIT_BYTES: Final = 5 * 2**40
_CHECKSUMS: Final = tuple(map(checksums.element, checksums.SIZES))

# After this the response begins: clients time out after about a minute without a byte.
RESPONSE_AFTER_S: Final = 10.0
# They run to their end when their clients disconnect.
_RUNNING: Final = BackgroundTasks()


@dataclass(frozen=True, slots=True)
class ListedPart:
    """A part as the client lists it."""

    number: int
    etag: str
    checksums: Mapping[str, str]


async def complete_multipart_upload(context: RequestContext) -> S3Response | None:
    """Write the object. After a while the response begins as a 200, which may contain an error.

    Raises S3Error: NoSuchUpload, MalformedXML, InvalidPart, InvalidPartOrder, EntityTooSmall, ….
    """
    bucket = await context.writable_bucket()
    listed = await parse_parts(await read_xml(context, has_own_checksum=False))
    task = _RUNNING.add(_complete(context, bucket, listed), has_caller=True)
    done, _ = await asyncio.wait({task}, timeout=RESPONSE_AFTER_S)
    if done:
        version = await task
        headers = [
            *version_ids.of_write(version),
            *await expiry_headers(context, bucket, version),
            *encryption.headers(context, bucket),
        ]
        return S3Response(headers=headers, body=_result(context, version))
    await _respond_late(context, task, encryption.headers(context, bucket))
    return None


async def _complete(
    context: RequestContext, bucket: BucketInfo, listed: list[ListedPart]
) -> ObjectVersion:
    """Write the object once; answer a repeated request with the existing object."""
    key, upload_id = context.request.key, context.request.query("uploadId")
    find = partial(uploads.find, context.dependencies.database, bucket, key, upload_id)
    try:
        upload = await find()
        with context.dependencies.upload_parts.completing(bucket, len(listed)):
            return await _write(context, bucket, upload, listed)
    except (S3Error, UploadMissing):
        try:
            await find()
        except S3Error:
            # The client may repeat a request whose response it did not receive.
            version = await _completed(context, bucket, listed)
            if version is None:
                raise
            return version
        raise


async def _write(
    context: RequestContext, bucket: BucketInfo, upload: UnfinishedUpload, listed: list[ListedPart]
) -> ObjectVersion:
    request = context.request
    parts = select_parts(listed, await uploads.parts(context.dependencies.database, upload.id))
    check_size(parts, context.dependencies.upload_parts.max_object_bytes(bucket))
    size = request.header("x-amz-mp-object-size")
    if size and size != str(sum(part.size for part in parts)):
        raise S3Error(
            "InvalidRequest",
            "The provided 'x-amz-mp-object-size' header does not match what was computed.",
        )
    fields = WrittenFields(
        content_type=upload.content_type,
        headers=upload.headers,
        metadata=upload.metadata,
        checksums={**object_checksums(upload, parts, request), checksums.UPLOAD: upload.id},
        parts=tuple(part.size for part in parts),
        etag=multipart_etag([part.etag for part in parts]),
    )
    wanted = replace(conditions.write_conditions(request, bucket), upload=upload.id)
    try:
        return await _join(context, bucket, upload.key, parts, fields, wanted)
    except PartMissing as exc:
        # If the upload still exists, only another upload of the part helps.
        raise invalid_part(parts[exc.index].number, parts[exc.index].etag) from None


async def _join(
    context: RequestContext,
    bucket: BucketInfo,
    key: str,
    parts: list[uploads.Part],
    fields: WrittenFields,
    wanted: Conditions,
) -> ObjectVersion:
    """Write the object that parts make. Raises PartMissing."""
    objects, upload_parts = context.dependencies.objects, context.dependencies.upload_parts
    stored, size = [part.stored for part in parts], sum(part.size for part in parts)
    if upload_parts.is_streamed(bucket, size):
        pieces = upload_parts.read(stored)
        return await objects.put_pieces(bucket, key, pieces, size, fields, conditions=wanted)
    staged = await upload_parts.join(stored)
    return await objects.put(bucket, key, staged, fields, conditions=wanted)


async def _completed(
    context: RequestContext, bucket: BucketInfo, listed: list[ListedPart]
) -> ObjectVersion | None:
    """Return the object that this upload, with these parts, has become already."""
    try:
        version = await context.dependencies.objects.head(bucket, context.request.key)
    except OriginMissing:
        return None
    is_same = version.checksums.get(checksums.UPLOAD) == context.request.query("uploadId")
    etag = multipart_etag([each.etag for each in listed])
    return version if is_same and version.etag == etag else None


async def _respond_late(
    context: RequestContext,
    task: asyncio.Task[ObjectVersion],
    encrypted: Sequence[tuple[str, str]] = (),
) -> None:
    headers = [
        ("x-amz-request-id", context.request.request_id),
        ("content-type", "application/xml"),
        *encrypted,
    ]
    exchange = context.exchange
    exchange.response_stream(200, headers)
    await exchange.send_bytes(DECLARATION.encode())
    while not (await asyncio.wait({task}, timeout=RESPONSE_AFTER_S))[0]:
        await exchange.send_bytes(b" ")
    try:
        body = _result(context, task.result())
    except (S3Error, BrainError) as exc:
        request = context.request
        error = exc if isinstance(exc, S3Error) else described(exc, request)
        body = error_document(error, f"/{request.bucket}/{request.key}", request.request_id)
    await exchange.send_bytes(body.removeprefix(DECLARATION.encode()))


def _result(context: RequestContext, version: ObjectVersion) -> bytes:
    request = context.request
    bucket = "" if request.is_host_style else f"/{request.bucket}"
    path = encoded(f"{bucket}/{request.key}", safe="/")
    scheme = context.dependencies.proxies.scheme_of(context.exchange.scope)
    nodes: list[Node] = [
        ("Location", f"{scheme}://{request.host}{path}"),
        ("Bucket", request.bucket),
        ("Key", request.key),
        ("ETag", f'"{version.etag}"'),
        *checksums.elements(version.checksums),
    ]
    return document("CompleteMultipartUploadResult", nodes)


async def parse_parts(body: bytes) -> list[ListedPart]:
    """Parse the client's list. Raises S3Error: MalformedXML, InvalidPartOrder."""
    root = await parse(body, "CompleteMultipartUpload", limit=ELEMENT_LIMIT)
    root.check("Part")
    rows = root.children
    if not 0 < len(rows) <= PART_LIMIT:
        raise S3Error("MalformedXML")
    found = await in_steps(_parse_part, rows)
    numbers = [each.number for each in found]
    if numbers != sorted(set(numbers)):
        raise S3Error("InvalidPartOrder")
    return found


def select_parts(listed: Sequence[ListedPart], parts: Sequence[Part]) -> list[Part]:
    """Return the parts that the client lists.

    Raises S3Error: InvalidPart, EntityTooSmall, EntityTooLarge.
    """
    by_number = {part.number: part for part in parts}
    found = []
    for each in listed:
        part = by_number.get(each.number)
        if part is None or part.etag != each.etag or not _has_same_checksums(each, part):
            raise invalid_part(each.number, each.etag)
        found.append(part)
    for part in found[:-1]:
        if part.size < MIN_PART_BYTES:
            raise S3Error(
                "EntityTooSmall",
                extra={
                    "ProposedSize": str(part.size),
                    "MinSizeAllowed": str(MIN_PART_BYTES),
                    "PartNumber": str(part.number),
                    "ETag": part.etag,
                },
            )
    if sum(part.size for part in found) > OBJECT_LIMIT_BYTES:
        raise S3Error("EntityTooLarge")
    return found


def check_size(parts: Sequence[Part], limit_bytes: int) -> None:
    """Check that an object of these parts is not too large for its bucket.

    limit_bytes: the bucket's limit. Raises S3Error EntityTooLarge, which names the limit.
    """
    size = sum(part.size for part in parts)
    if size > limit_bytes:
        raise S3Error(
            "EntityTooLarge",
            f"An object of this bucket has at most {limit_bytes:,} bytes: its parts are joined on "
            "the cache's disk (ZBRAIN_STAGING_MIB), or the store takes no more.",
            extra={"ProposedSize": str(size), "MaxSizeAllowed": str(limit_bytes)},
        )


def invalid_part(number: int, etag: str) -> S3Error:
    """Return the error for a part that is not there as the client lists it."""
    return S3Error("InvalidPart", extra={"PartNumber": str(number), "ETag": etag[:100]})


def multipart_etag(etags: Sequence[str]) -> str:
    """Return the ETag of an object made of parts: the MD5 of their MD5s, and their number.

    Raises S3Error InvalidPart for an ETag that is not an MD5.
    """
    try:
        joined = b"".join(bytes.fromhex(etag) for etag in etags)
    except ValueError:
        raise S3Error("InvalidPart") from None
    return f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(etags)}"


def object_checksums(
    upload: UnfinishedUpload, parts: Sequence[Part], request: S3Request
) -> dict[str, str]:
    """Return the object's checksum, made of its parts' checksums and compared with the client's.

    The checksum in the request's headers is the object's, not that of the list of parts.
    Raises S3Error: BadDigest; InvalidRequest for one that the upload does not have.
    """
    claimed = checksums.object_checksum(request)
    name = upload.algorithm or claimed.name or checksums.DEFAULT
    kind = _kind(upload, claimed, name)
    values = [part.checksums.get(name, "") for part in parts]
    if claimed.name not in {"", name} or claimed.kind not in {"", kind}:
        raise S3Error("InvalidRequest", f"The upload has a {kind} checksum of {name.upper()}.")
    if not all(values):
        if claimed.value:
            raise S3Error("InvalidRequest", f"Not every part has a checksum of {name.upper()}.")
        return {}
    if kind == checksums.COMPOSITE:
        value = checksums.composite(name, values)
    else:
        value = checksums.combined(
            name, [(text, part.size) for text, part in zip(values, parts, strict=True)]
        )
    # AWS takes a composite one with and without the number of parts.
    if claimed.value and claimed.value not in {value, value.partition("-")[0]}:
        raise S3Error("BadDigest", f"The {name.upper()} you specified did not match.")
    found = {name: value, "type": kind}
    return found | {checksums.PARTS: ",".join(values)} if upload.algorithm else found


def _kind(upload: UnfinishedUpload, claimed: checksums.ObjectChecksum, name: str) -> str:
    if upload.checksum_type:
        return upload.checksum_type
    if name not in checksums.COMBINES:
        return checksums.COMPOSITE
    return claimed.kind or checksums.FULL


def _parse_part(row: Element) -> ListedPart:
    row.check("PartNumber", "ETag", *_CHECKSUMS, are_texts=True)
    number = row.value("PartNumber")
    etag = row.value("ETag").strip('"')
    if not (number.isascii() and number.isdigit() and len(number) <= 5) or not etag:
        raise S3Error("MalformedXML")
    if not 1 <= int(number) <= PART_LIMIT:
        raise S3Error("InvalidArgument", "PartNumber must be >= 1 and <= 10000")
    given = {name: row.value(checksums.element(name)) for name in checksums.SIZES}
    return ListedPart(int(number), etag, {name: value for name, value in given.items() if value})


def _has_same_checksums(listed: ListedPart, part: Part) -> bool:
    return all(part.checksums.get(name) == value for name, value in listed.checksums.items())
