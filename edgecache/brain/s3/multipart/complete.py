"""CompleteMultipartUpload: the parts become an object, or nothing changes."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Final

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error, from_brain_error
from edgecache.brain.aws.sigv4.canonical import encoded
from edgecache.brain.aws.xml import DECLARATION, Node, document
from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import BrainError, OriginMissing, PartMissing, UploadMissing
from edgecache.brain.core.values import BucketInfo, Conditions, ObjectVersion, WrittenFields
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.multipart import completion, uploads
from edgecache.brain.s3.multipart.completion import ListedPart, invalid_part
from edgecache.brain.s3.multipart.uploads import UnfinishedUpload
from edgecache.brain.s3.objects import conditions

# After this the response begins: clients time out after about a minute without a byte.
RESPONSE_AFTER_S: Final = 10.0
# They run to their end when their clients disconnect.
_RUNNING: Final = BackgroundTasks()


async def complete_multipart_upload(context: RequestContext) -> S3Response | None:
    """Write the object. After a while the response begins as a 200, which may contain an error.

    Raises S3Error: NoSuchUpload, MalformedXML, InvalidPart, InvalidPartOrder, EntityTooSmall, ….
    """
    bucket = await context.writable_bucket()
    listed = await completion.parse_parts(await read_xml(context, has_own_checksum=False))
    task = _RUNNING.add(_complete(context, bucket, listed), has_caller=True)
    done, _ = await asyncio.wait({task}, timeout=RESPONSE_AFTER_S)
    if done:
        return S3Response(body=_result(context, await task))
    await _respond_late(context, task)
    return None


async def _complete(
    context: RequestContext, bucket: BucketInfo, listed: list[ListedPart]
) -> ObjectVersion:
    """Write the object once; answer a repeated request with the existing object."""
    key, upload_id = context.request.key, context.request.query("uploadId")
    find = partial(uploads.find, context.dependencies.database, bucket, key, upload_id)
    try:
        upload = await find()
        async with context.dependencies.upload_parts.completing(bucket):
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
    parts = completion.select_parts(
        listed, await uploads.parts(context.dependencies.database, upload.id)
    )
    completion.check_size(parts, context.dependencies.upload_parts.max_object_bytes(bucket))
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
        checksums=completion.object_checksums(upload, parts, request),
        parts=tuple(part.size for part in parts),
        etag=completion.multipart_etag([part.etag for part in parts]),
    )
    wanted = replace(conditions.write_conditions(request), upload=upload.id)
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
    """Return the object that these parts have become already."""
    try:
        version = await context.dependencies.objects.head(bucket, context.request.key)
    except OriginMissing:
        return None
    etag = completion.multipart_etag([each.etag for each in listed])
    return version if version.etag == etag else None


async def _respond_late(context: RequestContext, task: asyncio.Task[ObjectVersion]) -> None:
    headers = [
        ("x-amz-request-id", context.request.request_id),
        ("content-type", "application/xml"),
    ]
    exchange = context.exchange
    exchange.response_stream(200, headers)
    await exchange.send_bytes(DECLARATION.encode())
    while not (await asyncio.wait({task}, timeout=RESPONSE_AFTER_S))[0]:
        await exchange.send_bytes(b" ")
    try:
        body = _result(context, task.result())
    except (S3Error, BrainError) as exc:
        error = exc if isinstance(exc, S3Error) else from_brain_error(exc)
        lines: list[Node] = [
            ("Code", error.code),
            ("Message", error.message),
            ("RequestId", context.request.request_id),
        ]
        body = document("Error", lines, namespace="")
    await exchange.send_bytes(body.removeprefix(DECLARATION.encode()))


def _result(context: RequestContext, version: ObjectVersion) -> bytes:
    request = context.request
    bucket = "" if request.is_host_style else f"/{request.bucket}"
    path = encoded(f"{bucket}/{request.key}", safe="/")
    nodes: list[Node] = [
        ("Location", f"http://{request.host}{path}"),
        ("Bucket", request.bucket),
        ("Key", request.key),
        ("ETag", f'"{version.etag}"'),
        *checksums.elements(version.checksums),
    ]
    return document("CompleteMultipartUploadResult", nodes)
