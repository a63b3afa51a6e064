"""The first steps of every operation on an object: its key, its current version, its conditions."""

from collections.abc import Mapping, Sequence

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.errors import OriginMissing
from edgecache.brain.core.values import BucketInfo, DeleteMarker, ObjectVersion
from edgecache.brain.s3.context import RequestContext
from edgecache.brain.s3.objects import conditions, headers, version_ids
from edgecache.brain.s3.objects.selection import ObjectSelection, select


def wanted_version(context: RequestContext, bucket: BucketInfo) -> str | None:
    """Return the id of the version that the request names; None for the current one.

    Raises S3Error: InvalidArgument, AccessDenied for an anonymous request.
    """
    if not context.request.has("versionId"):
        return None
    wanted = version_ids.parse(context.request.query("versionId"), bucket)
    if wanted is not None and context.identity is None:
        raise S3Error("AccessDenied")
    return wanted


async def find_version(
    context: RequestContext, bucket: BucketInfo, key: str, version_id: str
) -> ObjectVersion:
    """Return a version by its id.

    Raises S3Error: NoSuchVersion, MethodNotAllowed for a delete marker; BrainError.
    """
    found = await context.dependencies.objects.version(bucket, key, version_id)
    if found is None:
        raise version_ids.no_such_version(key, version_id)
    if isinstance(found, DeleteMarker):
        raise version_ids.marker_refused(context.request.method, found)
    context.is_hit = bool(found.generation)
    return found


async def no_such_key(context: RequestContext, bucket: BucketInfo, key: str) -> S3Error:
    """Return the error for a key without a current version, with the marker that hides it."""
    marker = None
    if bucket.versioning:
        marker = await context.dependencies.objects.newest_marker(bucket, key)
    headers = version_ids.marker_headers(marker) if marker is not None else {}
    return S3Error("NoSuchKey", extra={"Key": key}, headers=headers)


async def find_object(
    context: RequestContext, bucket: BucketInfo, key: str, version_id: str | None = None
) -> ObjectVersion:
    """Return the current version of a key, from the directory (a hit) or from its origin.

    version_id: of another version. Raises S3Error: NoSuchKey, and what ``find_version`` raises;
    BrainError.
    """
    if version_id is not None:
        return await find_version(context, bucket, key, version_id)
    version = await context.dependencies.directory.find(bucket.id, key)
    context.is_hit = version is not None
    if version is not None:
        return version
    try:
        client = context.request.client if context.identity is None else ""
        return await context.dependencies.objects.head(bucket, key, client=client)
    except OriginMissing:
        raise await no_such_key(context, bucket, key) from None


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
    context: RequestContext, bucket: BucketInfo, version: ObjectVersion, overrides: dict[str, str]
) -> tuple[ObjectSelection, Sequence[tuple[str, str]]]:
    """Apply the conditions; return which bytes to send, and the object's headers.

    Raises S3Error, NotModified.
    """
    request = context.request
    try:
        conditions.check_read(request, version.etag, version.last_modified)
    except conditions.NotModified as not_modified:
        described = headers.response_headers(version, overrides={}, shown={})
        not_modified.headers = [*described, *version_ids.headers(bucket, version)]
        raise
    selection = select(request, version)
    shown = _checksums(version, selection) if checksums.are_wanted(request) else {}
    described = headers.response_headers(version, overrides=overrides, shown=shown)
    if bucket.versioning:
        described = [*described, *version_ids.headers(bucket, version)]
    return selection, described


def _checksums(version: ObjectVersion, selection: ObjectSelection) -> Mapping[str, str]:
    """Return the checksums of the selection; those of a range are not known."""
    if selection.part and version.parts:
        return checksums.of_part(version.checksums, selection.part)
    return version.checksums if selection.is_whole or selection.part else {}
