"""CompleteMultipartUpload: the parts become an object, or nothing happens."""

import asyncio
from typing import Final

from edgecache.brain.errors import BrainError, OriginMissing
from edgecache.brain.s3 import checksums, completion, conditions, uploads
from edgecache.brain.s3.auth.sigv4.canonical import encoded
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.completion import Named
from edgecache.brain.s3.errors import S3Error, of_the_brain
from edgecache.brain.s3.uploads import Upload
from edgecache.brain.s3.xml import DECLARATION, Node, document
from edgecache.brain.values import BucketInfo, Fields, Found

# Then the client is told that somebody is there: its read timeout is a minute or so.
PATIENCE_S: Final = 10.0
# They go on though their clients leave.
_UNDER_WAY: Final[set[asyncio.Task[Found]]] = set()


async def run(call: Call) -> Answer | None:
    """Write the object. What takes long begins its 200 before it knows: an error may follow in it.

    Raises S3Error: NoSuchUpload, MalformedXML, InvalidPart, InvalidPartOrder, EntityTooSmall, ….
    """
    call.require_write()
    bucket = await call.bucket()
    request, parts = call.request, call.parts
    named = completion.listed(await read_xml(call))
    try:
        upload = await uploads.find(parts.database, bucket, request.key, request.query("uploadId"))
    except S3Error:
        # Somebody who did not hear the answer asks again.
        found = await _completed(call, bucket, named)
        if found is None:
            raise
        return Answer(body=_result(call, found))
    task = asyncio.create_task(_complete(call, bucket, upload, named))
    _UNDER_WAY.add(task)
    task.add_done_callback(_ended)
    done, _ = await asyncio.wait({task}, timeout=PATIENCE_S)
    if done:
        return Answer(body=_result(call, await task))
    await _answer_late(call, task)
    return None


async def _complete(call: Call, bucket: BucketInfo, upload: Upload, named: list[Named]) -> Found:
    brain, request = call.parts, call.request
    parts = await _chosen(call, bucket, upload, named)
    size = request.header("x-amz-mp-object-size")
    if size and size != str(sum(part.size for part in parts)):
        raise S3Error(
            "InvalidRequest",
            "The provided 'x-amz-mp-object-size' header does not match what was computed.",
        )
    fields = Fields(
        content_type=upload.content_type,
        headers=upload.headers,
        metadata=upload.metadata,
        checksums=completion.checksums_of(upload, parts, request),
        parts=tuple(part.size for part in parts),
        etag=completion.etag_of([part.etag for part in parts]),
    )
    wanted = conditions.of_write(request)
    try:
        staged = await brain.staging.join_parts([part.file for part in parts])
    except FileNotFoundError:
        # Aborted, or a part replaced, in this very moment.
        raise S3Error("NoSuchUpload", extra={"UploadId": upload.id}) from None
    try:
        found = await brain.fills.put(bucket, upload.key, staged, fields, conditions=wanted)
    except OriginMissing:
        raise S3Error("NoSuchKey", extra={"Key": upload.key}) from None
    await uploads.remove(brain.database, brain.staging, upload.id)
    return found


async def _chosen(
    call: Call, bucket: BucketInfo, upload: Upload, named: list[Named]
) -> list[uploads.Part]:
    try:
        return completion.chosen(named, await uploads.parts(call.parts.database, upload.id))
    except S3Error:
        # Parts that are missing because the upload was aborted meanwhile are no client's mistake.
        await uploads.find(call.parts.database, bucket, upload.key, upload.id)
        raise


async def _completed(call: Call, bucket: BucketInfo, named: list[Named]) -> Found | None:
    """Give the object that these parts have become already."""
    try:
        found = await call.parts.fills.head(bucket, call.request.key)
    except OriginMissing:
        return None
    etag = completion.etag_of([each.etag for each in named])
    return found if found.etag == etag else None


def _ended(task: asyncio.Task[Found]) -> None:
    _UNDER_WAY.discard(task)
    if not task.cancelled():
        # Looked at, so that a failure that nobody waits for is not an unheard one.
        task.exception()


async def _answer_late(call: Call, task: asyncio.Task[Found]) -> None:
    headers = [
        ("x-amz-request-id", call.request.request_id),
        ("content-type", "application/xml"),
    ]
    stream = call.exchange.response_stream(200, headers)
    await stream.send_bytes(DECLARATION.encode())
    while not (await asyncio.wait({task}, timeout=PATIENCE_S))[0]:
        await stream.send_bytes(b" ")
    try:
        body = _result(call, task.result())
    except (S3Error, BrainError) as exc:
        error = exc if isinstance(exc, S3Error) else of_the_brain(exc)
        lines: list[Node] = [
            ("Code", error.code),
            ("Message", error.message),
            ("RequestId", call.request.request_id),
        ]
        body = document("Error", lines, namespace="")
    await stream.send_bytes(body.removeprefix(DECLARATION.encode()))


def _result(call: Call, found: Found) -> bytes:
    request = call.request
    path = encoded(f"/{request.bucket}/{request.key}", safe="/")
    nodes: list[Node] = [
        ("Location", f"http://{request.host}{path}"),
        ("Bucket", request.bucket),
        ("Key", request.key),
        ("ETag", f'"{found.etag}"'),
        *checksums.elements(found.checksums),
    ]
    return document("CompleteMultipartUploadResult", nodes)
