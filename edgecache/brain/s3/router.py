"""Which operation a request is for: by its method, its path and its query."""

from collections.abc import Awaitable, Callable
from typing import Final

from edgecache.brain.s3 import buckets, unconfigured
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.cors import buckets as cors_of_buckets
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.listings.objects import list_objects, list_objects_v2
from edgecache.brain.s3.listings.versions import list_object_versions
from edgecache.brain.s3.multipart.abort import abort_multipart_upload
from edgecache.brain.s3.multipart.complete import complete_multipart_upload
from edgecache.brain.s3.multipart.create import create_multipart_upload
from edgecache.brain.s3.multipart.list_parts import list_parts
from edgecache.brain.s3.multipart.list_uploads import list_multipart_uploads
from edgecache.brain.s3.multipart.upload_part import upload_part
from edgecache.brain.s3.multipart.upload_part_copy import upload_part_copy
from edgecache.brain.s3.objects.attributes import get_object_attributes
from edgecache.brain.s3.objects.copy import SOURCE_HEADER, copy_object
from edgecache.brain.s3.objects.delete import delete_object, delete_objects
from edgecache.brain.s3.objects.get import get_object, head_object
from edgecache.brain.s3.objects.put import put_object
from edgecache.brain.s3.requests import S3Request
from edgecache.brain.s3.tagging import buckets as tagging_of_buckets
from edgecache.brain.s3.tagging import objects as tagging_of_objects

Operation = Callable[[RequestContext], Awaitable[S3Response | None]]

# AWS's subresources. One without an operation below is refused; otherwise a GET of an object's
# policy would return the object, and a PUT of it would replace the object.
SUBRESOURCES: Final = frozenset(
    (
        "accelerate",
        "acl",
        "analytics",
        "append",
        "cors",
        "encryption",
        "intelligent-tiering",
        "inventory",
        "legal-hold",
        "lifecycle",
        "logging",
        "metadataConfiguration",
        "metadataInventoryTable",
        "metadataJournalTable",
        "metadataTable",
        "metrics",
        "notification",
        "object-lock",
        "ownershipControls",
        "policy",
        "policyStatus",
        "publicAccessBlock",
        "renameObject",
        "replication",
        "requestPayment",
        "restore",
        "retention",
        "select",
        "session",
        "tagging",
        "torrent",
        "versioning",
        "website",
    )
)

# Method, parameter that the query must have, name: in the order in which they are tried.
_OF_BUCKETS: Final[tuple[tuple[str, str, str, Operation], ...]] = (
    *unconfigured.OF_BUCKETS,
    ("GET", "cors", "GetBucketCors", cors_of_buckets.get_bucket_cors),
    ("PUT", "cors", "PutBucketCors", cors_of_buckets.put_bucket_cors),
    ("DELETE", "cors", "DeleteBucketCors", cors_of_buckets.delete_bucket_cors),
    ("GET", "tagging", "GetBucketTagging", tagging_of_buckets.get_bucket_tagging),
    ("PUT", "tagging", "PutBucketTagging", tagging_of_buckets.put_bucket_tagging),
    ("DELETE", "tagging", "DeleteBucketTagging", tagging_of_buckets.delete_bucket_tagging),
    ("GET", "location", "GetBucketLocation", buckets.get_bucket_location),
    ("GET", "uploads", "ListMultipartUploads", list_multipart_uploads),
    ("GET", "versions", "ListObjectVersions", list_object_versions),
    ("GET", "", "ListObjects", list_objects),
    ("HEAD", "", "HeadBucket", buckets.head_bucket),
    ("PUT", "", "CreateBucket", buckets.create_bucket),
    ("DELETE", "", "DeleteBucket", buckets.delete_bucket),
    ("POST", "delete", "DeleteObjects", delete_objects),
)
_OF_OBJECTS: Final[tuple[tuple[str, str, str, Operation], ...]] = (
    *unconfigured.OF_OBJECTS,
    ("GET", "tagging", "GetObjectTagging", tagging_of_objects.get_object_tagging),
    ("PUT", "tagging", "PutObjectTagging", tagging_of_objects.put_object_tagging),
    ("DELETE", "tagging", "DeleteObjectTagging", tagging_of_objects.delete_object_tagging),
    ("GET", "uploadId", "ListParts", list_parts),
    ("GET", "attributes", "GetObjectAttributes", get_object_attributes),
    ("GET", "", "GetObject", get_object),
    ("HEAD", "", "HeadObject", head_object),
    ("PUT", "uploadId", "UploadPart", upload_part),
    ("PUT", "", "PutObject", put_object),
    ("POST", "uploads", "CreateMultipartUpload", create_multipart_upload),
    ("POST", "uploadId", "CompleteMultipartUpload", complete_multipart_upload),
    ("DELETE", "uploadId", "AbortMultipartUpload", abort_multipart_upload),
    ("DELETE", "", "DeleteObject", delete_object),
)
# Parameters that select a part of an object, and those that each operation supports.
SELECTING: Final = frozenset(("partNumber", "uploadId", "uploads", "versionId", "versions"))
_SELECTIONS: Final = {
    "PutObject": frozenset[str](),
    "GetObject": frozenset(("partNumber", "versionId")),
    "HeadObject": frozenset(("partNumber", "versionId")),
    "DeleteObject": frozenset(("versionId",)),
}
_COPIES: Final[dict[str, tuple[str, Operation]]] = {
    "PutObject": ("CopyObject", copy_object),
    "UploadPart": ("UploadPartCopy", upload_part_copy),
}


def operation_of(request: S3Request) -> tuple[str, Operation]:
    """Return the operation and its name.

    Raises S3Error: NotImplemented for what only AWS offers, MethodNotAllowed, InvalidArgument.
    """
    if not request.bucket:
        if request.method == "GET":
            return "ListBuckets", buckets.list_buckets
        raise _not_allowed(request)
    if request.method == "GET" and not request.key and request.query("list-type") == "2":
        _refuse_subresources(request)
        return "ListObjectsV2", list_objects_v2
    for method, parameter, name, run in _OF_OBJECTS if request.key else _OF_BUCKETS:
        if method == request.method and (not parameter or parameter in request.by_name):
            _refuse_subresources(request, but=parameter)
            _refuse_selection(request, name)
            if SOURCE_HEADER in request.headers and name in _COPIES:
                return _COPIES[name]
            return name, run
    _refuse_subresources(request)
    raise _not_allowed(request)


def _refuse_subresources(request: S3Request, *, but: str = "") -> None:
    """Refuse a subresource that the operation would ignore. Raises S3Error NotImplemented."""
    if request.by_name and SUBRESOURCES & request.by_name.keys() - {but}:
        raise S3Error("NotImplemented")


def _refuse_selection(request: S3Request, name: str) -> None:
    """Refuse a parameter that selects something and that the operation would ignore.

    Raises S3Error InvalidArgument.
    """
    taken = _SELECTIONS.get(name)
    if not request.by_name or taken is None:
        return
    for parameter in SELECTING & request.by_name.keys() - taken:
        raise S3Error(
            "InvalidArgument",
            f"This operation does not accept {parameter}.",
            extra={"ArgumentName": parameter, "ArgumentValue": request.query(parameter)[:100]},
        )


def _not_allowed(request: S3Request) -> S3Error:
    # AWS offers uploads by HTML forms.
    if request.method == "POST":
        return S3Error("NotImplemented")
    return S3Error("MethodNotAllowed", extra={"Method": request.method[:20]})
