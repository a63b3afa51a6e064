"""Ids of versions, as requests and responses have them: ``null`` for the null version.

Source: AWS, "Working with delete markers" and "Adding objects to versioning-suspended buckets".
"""

from typing import Final

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.values import VERSION_HEADER, BucketInfo, DeleteMarker, ObjectVersion
from edgecache.brain.objects.object_versions import VERSION_ID
from edgecache.http.response_head import http_date

NULL: Final = "null"
MARKER_HEADER: Final = "x-amz-delete-marker"


def parse(text: str, bucket: BucketInfo) -> str | None:
    """Return the id that a request names, empty for the null version.

    None for the null version of a bucket without versions, which is the current one. Raises S3Error
    InvalidArgument.
    """
    if text == NULL:
        return "" if bucket.versioning else None
    if VERSION_ID.fullmatch(text) is None:
        raise S3Error(
            "InvalidArgument",
            "Invalid version id specified",
            extra={"ArgumentName": "versionId", "ArgumentValue": text[:100]},
        )
    return text


def shown(version_id: str) -> str:
    return version_id or NULL


def headers(bucket: BucketInfo, version: ObjectVersion) -> list[tuple[str, str]]:
    """Return the header of a version; none in a bucket that never had versions."""
    if not bucket.versioning and not version.version_id:
        return []
    return [(VERSION_HEADER, shown(version.version_id))]


def of_write(version: ObjectVersion) -> list[tuple[str, str]]:
    """Return the header of a version that was written: a suspended bucket gives no id."""
    return [(VERSION_HEADER, version.version_id)] if version.version_id else []


def no_such_version(key: str, version_id: str) -> S3Error:
    return S3Error("NoSuchVersion", extra={"Key": key, "VersionId": shown(version_id)})


def marker_headers(marker: DeleteMarker) -> dict[str, str]:
    return {MARKER_HEADER: "true", VERSION_HEADER: shown(marker.version_id)}


def marker_refused(method: str, marker: DeleteMarker) -> S3Error:
    """Return the error for a delete marker that is asked for by its id."""
    return S3Error(
        "MethodNotAllowed",
        extra={"Method": method, "ResourceType": "DeleteMarker"},
        headers={
            **marker_headers(marker),
            "allow": "DELETE",
            "last-modified": http_date(int(marker.last_modified.timestamp())),
        },
    )
