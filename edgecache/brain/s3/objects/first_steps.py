"""The first steps of every operation on an object: its key, its current version, its conditions."""

from collections.abc import Mapping, Sequence

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.errors import OriginMissing
from edgecache.brain.core.values import BucketInfo, ObjectVersion
from edgecache.brain.s3.context import RequestContext
from edgecache.brain.s3.objects import conditions, headers
from edgecache.brain.s3.objects.selection import ObjectSelection, select


def object_key(context: RequestContext) -> str:
    """Return the key, once the request is known to mean its only version.

    Raises S3Error InvalidArgument.
    """
    if context.request.query("versionId", "null") != "null":
        raise S3Error("InvalidArgument", "Invalid version id specified")
    return context.request.key


async def find_object(context: RequestContext, bucket: BucketInfo, key: str) -> ObjectVersion:
    """Return the current version of a key, from the directory (a hit) or from its origin.

    Raises S3Error NoSuchKey; BrainError.
    """
    version = await context.dependencies.directory.find(bucket.id, key)
    context.is_hit = version is not None
    if version is not None:
        return version
    try:
        client = context.request.client if context.identity is None else ""
        return await context.dependencies.objects.head(bucket, key, client=client)
    except OriginMissing:
        raise S3Error("NoSuchKey", extra={"Key": key}) from None


def response_overrides(context: RequestContext) -> dict[str, str]:
    """Return the headers that the query puts in the place of the object's.

    Raises S3Error InvalidRequest for an anonymous request.
    """
    overrides = headers.overrides_of(context.request)
    if overrides and context.identity is None:
        raise S3Error(
            "InvalidRequest",
            "Request specific response headers cannot be used for anonymous GET requests.",
        )
    return overrides


def select_and_describe(
    context: RequestContext, version: ObjectVersion, overrides: dict[str, str]
) -> tuple[ObjectSelection, Sequence[tuple[str, str]]]:
    """Apply the conditions; return which bytes to send, and the object's headers.

    Raises S3Error, NotModified.
    """
    request = context.request
    try:
        conditions.check_read(request, version.etag, version.last_modified)
    except conditions.NotModified as not_modified:
        not_modified.headers = headers.response_headers(version, overrides={}, shown={})
        raise
    selection = select(request, version)
    shown = _checksums(version, selection) if checksums.are_wanted(request) else {}
    return selection, headers.response_headers(version, overrides=overrides, shown=shown)


def _checksums(version: ObjectVersion, selection: ObjectSelection) -> Mapping[str, str]:
    """Return the checksums of the selection; those of a range are not known."""
    if selection.part and version.parts:
        return checksums.of_part(version.checksums, selection.part)
    return version.checksums if selection.is_whole or selection.part else {}
