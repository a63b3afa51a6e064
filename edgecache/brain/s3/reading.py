"""What every reading of an object begins with: which version, under which conditions."""

from collections.abc import Sequence

from edgecache.brain.errors import OriginMissing
from edgecache.brain.s3 import checksums, conditions, object_headers
from edgecache.brain.s3.calls import Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.selection import Selection, select
from edgecache.brain.values import BucketInfo, Found


async def head(call: Call, bucket: BucketInfo, key: str) -> Found:
    """Give what an object is, from the directory or from its origin.

    Raises S3Error NoSuchKey; BrainError.
    """
    found = await call.parts.directory.find(bucket.id, key)
    if found is not None:
        return found
    try:
        return await call.parts.fills.head(bucket, key)
    except OriginMissing:
        raise S3Error("NoSuchKey", extra={"Key": key}) from None


def check_version(call: Call) -> str:
    """Give the key, once it is clear that its one version is meant.

    Raises S3Error InvalidArgument.
    """
    if call.request.query("versionId") not in {"", "null"}:
        raise S3Error("InvalidArgument", "Invalid version id specified")
    object_headers.check_offered(call.request)
    return call.request.key


def overrides_of(call: Call) -> dict[str, str]:
    """Give the headers that the query puts in place of the object's; nobody may who did not sign.

    Raises S3Error InvalidRequest.
    """
    overrides = object_headers.overrides_of(call.request)
    if overrides and call.identity is None:
        raise S3Error(
            "InvalidRequest",
            "Request specific response headers cannot be used for anonymous GET requests.",
        )
    return overrides


def describe(
    call: Call, found: Found, overrides: dict[str, str]
) -> tuple[Selection, Sequence[tuple[str, str]]]:
    """Apply the conditions; give what to send, and its headers.

    Raises S3Error, Unchanged.
    """
    try:
        conditions.check_read(call.request, found.etag, found.last_modified)
    except conditions.Unchanged as unchanged:
        unchanged.headers = object_headers.of_answer(found, overrides={}, with_checksums=False)
        raise
    selection = select(call.request, found)
    wants = selection.is_whole and checksums.are_wanted(call.request)
    return selection, object_headers.of_answer(found, overrides=overrides, with_checksums=wants)
