"""Which operation a request asks for: its method, what its path names, its query."""

from collections.abc import Awaitable, Callable
from typing import Final

from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.operations import (
    abort_multipart_upload,
    complete_multipart_upload,
    copy_object,
    create_bucket,
    create_multipart_upload,
    delete_bucket,
    delete_object,
    delete_objects,
    get_bucket_location,
    get_object,
    get_object_attributes,
    head_bucket,
    list_buckets,
    list_multipart_uploads,
    list_object_versions,
    list_objects,
    list_objects_v2,
    list_parts,
    put_object,
    upload_part,
    upload_part_copy,
)
from edgecache.brain.s3.requests import S3Request

Operation = Callable[[Call], Awaitable[Answer | None]]
COPY_SOURCE: Final = "x-amz-copy-source"

# What AWS has and this has not; without the list a GET of an ACL would be taken for the object.
NOT_OFFERED: Final = frozenset(
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

# (method, what the query must name, is a copy) in the order in which they are tried.
_OF_BUCKETS: Final[tuple[tuple[str, str, str, Operation], ...]] = (
    ("GET", "location", "GetBucketLocation", get_bucket_location.run),
    ("GET", "uploads", "ListMultipartUploads", list_multipart_uploads.run),
    ("GET", "versions", "ListObjectVersions", list_object_versions.run),
    ("GET", "", "ListObjects", list_objects.run),
    ("HEAD", "", "HeadBucket", head_bucket.run),
    ("PUT", "", "CreateBucket", create_bucket.run),
    ("DELETE", "", "DeleteBucket", delete_bucket.run),
    ("POST", "delete", "DeleteObjects", delete_objects.run),
)
_OF_OBJECTS: Final[tuple[tuple[str, str, str, Operation], ...]] = (
    ("GET", "uploadId", "ListParts", list_parts.run),
    ("GET", "attributes", "GetObjectAttributes", get_object_attributes.run),
    ("GET", "", "GetObject", get_object.run),
    ("HEAD", "", "HeadObject", get_object.run_head),
    ("PUT", "uploadId", "UploadPart", upload_part.run),
    ("PUT", "", "PutObject", put_object.run),
    ("POST", "uploads", "CreateMultipartUpload", create_multipart_upload.run),
    ("POST", "uploadId", "CompleteMultipartUpload", complete_multipart_upload.run),
    ("DELETE", "uploadId", "AbortMultipartUpload", abort_multipart_upload.run),
    ("DELETE", "", "DeleteObject", delete_object.run),
)
_COPIES: Final[dict[str, tuple[str, Operation]]] = {
    "PutObject": ("CopyObject", copy_object.run),
    "UploadPart": ("UploadPartCopy", upload_part_copy.run),
}


def operation_of(request: S3Request) -> tuple[str, Operation]:
    """Give the operation and its name.

    Raises S3Error: NotImplemented for what AWS has and this has not, MethodNotAllowed.
    """
    if not NOT_OFFERED.isdisjoint(request.by_name):
        raise S3Error("NotImplemented")
    if not request.bucket:
        if request.method == "GET":
            return "ListBuckets", list_buckets.run
        raise _not_allowed(request)
    if request.method == "GET" and not request.key and request.query("list-type") == "2":
        return "ListObjectsV2", list_objects_v2.run
    for method, parameter, name, run in _OF_OBJECTS if request.key else _OF_BUCKETS:
        if method == request.method and (not parameter or request.has(parameter)):
            if COPY_SOURCE in request.headers and name in _COPIES:
                return _COPIES[name]
            return name, run
    raise _not_allowed(request)


def _not_allowed(request: S3Request) -> S3Error:
    # A form's POST and a preflight exist at AWS.
    if request.method in {"POST", "OPTIONS"}:
        return S3Error("NotImplemented")
    return S3Error("MethodNotAllowed", extra={"Method": request.method[:20]})
