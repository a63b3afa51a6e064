"""CopyObject: within the built-in origin without moving a byte."""

from dataclasses import replace

from edgecache.brain.errors import OriginChanged, OriginMissing
from edgecache.brain.s3 import checksums, conditions, object_headers
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.copying import Source, source_of
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.listing import iso
from edgecache.brain.s3.requests import S3Request
from edgecache.brain.s3.xml import Node, document
from edgecache.brain.values import Fields


async def run(call: Call) -> Answer:
    """Write an object with another one's bytes, and its headers unless they are replaced.

    Raises S3Error: NoSuchBucket, NoSuchKey, PreconditionFailed, InvalidRequest, InvalidArgument.
    """
    call.require_write()
    bucket = await call.bucket()
    source = await source_of(call)
    fields = await _fields(call, source)
    wanted = conditions.of_write(call.request)
    try:
        found = await call.parts.fills.copy(
            (source.bucket, source.key),
            bucket,
            call.request.key,
            fields,
            source_etag=source.found.etag,
            conditions=wanted,
        )
    except OriginMissing:
        raise S3Error("NoSuchKey", extra={"Key": source.key}) from None
    except OriginChanged:
        raise S3Error("ConditionalRequestConflict") from None
    nodes: list[Node] = [
        ("LastModified", iso(found.last_modified)),
        ("ETag", f'"{found.etag}"'),
        *checksums.elements(found.checksums),
    ]
    return Answer(body=document("CopyObjectResult", nodes))


async def _fields(call: Call, source: Source) -> Fields:
    request, found = call.request, source.found
    directive = _directive(request)
    object_headers.check_offered(request)
    is_itself = source.is_named(request.bucket, request.key)
    if directive == "COPY":
        if is_itself:
            raise S3Error(
                "InvalidRequest",
                "This copy request is illegal because it is trying to copy an object to itself "
                "without changing the object's metadata, storage class, website redirect location "
                "or encryption attributes.",
            )
        fields = Fields(found.content_type, found.headers, found.metadata)
    else:
        fields = object_headers.fields_of(request)
    return replace(fields, checksums=await _checksums(call, source))


def _directive(request: S3Request) -> str:
    directive = request.header("x-amz-metadata-directive") or "COPY"
    if directive not in {"COPY", "REPLACE"}:
        raise S3Error(
            "InvalidArgument",
            "Unknown metadata directive.",
            extra={"ArgumentName": "x-amz-metadata-directive", "ArgumentValue": directive[:100]},
        )
    return directive


async def _checksums(call: Call, source: Source) -> dict[str, str]:
    """Give the checksums of the copy, which is one part whatever its source was."""
    kept = dict(source.found.checksums)
    wanted = checksums.algorithm(call.request)
    if kept.get("type", checksums.FULL) == checksums.FULL and (not wanted or wanted in kept):
        return kept
    manifest = await call.parts.directory.manifest(source.found.sha256)
    if manifest is None:
        return {}
    name = wanted if wanted in {"crc32", "sha256"} else "sha256"
    return {name: checksums.of_manifest(name, manifest), "type": checksums.FULL}
