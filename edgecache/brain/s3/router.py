"""Which operation a request is for: by its method, its path and its query.

What the operation does not take is refused by its name (``operation_inputs``).
"""

from collections.abc import Awaitable, Callable
from typing import Final

from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.requests import PREFIX, S3Request, is_of_signature, is_query_header
from edgecache.brain.aws.sigv2 import KEY_PARAMETER
from edgecache.brain.aws.sigv4.canonical import SIGNATURE_PARAMETER
from edgecache.brain.core.values import METADATA_PREFIX
from edgecache.brain.s3 import (
    absent_features,
    buckets,
    lifecycle,
    logging,
    tagging,
    versioning,
    website,
)
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.cors import rules as cors_rules
from edgecache.brain.s3.listings import list_objects, list_objects_v2
from edgecache.brain.s3.multipart.complete import complete_multipart_upload
from edgecache.brain.s3.multipart.operations import (
    abort_multipart_upload,
    create_multipart_upload,
    list_multipart_uploads,
    list_parts,
    upload_part,
    upload_part_copy,
)
from edgecache.brain.s3.objects.attributes import get_object_attributes
from edgecache.brain.s3.objects.copy import SOURCE_HEADER, copy_object
from edgecache.brain.s3.objects.delete import delete_object, delete_objects
from edgecache.brain.s3.objects.get import get_object, head_object
from edgecache.brain.s3.objects.post import post_object
from edgecache.brain.s3.objects.put import put_object
from edgecache.brain.s3.operation_inputs import (
    ENCRYPTION,
    HEADERS_OF_ALL,
    OF_ALL,
    OF_WRITES,
    OPERATION_PARAMETER,
    TAKES,
    check_encryption,
    check_value,
)

Operation = Callable[[RequestContext], Awaitable[S3Response | None]]

# Method, parameter that the query must have, name: in the order in which they are tried.
_OF_BUCKETS: Final[tuple[tuple[str, str, str, Operation], ...]] = (
    *absent_features.OF_BUCKETS,
    ("GET", "cors", "GetBucketCors", cors_rules.get_bucket_cors),
    ("PUT", "cors", "PutBucketCors", cors_rules.put_bucket_cors),
    ("DELETE", "cors", "DeleteBucketCors", cors_rules.delete_bucket_cors),
    (
        "GET",
        "lifecycle",
        "GetBucketLifecycleConfiguration",
        lifecycle.get_bucket_lifecycle_configuration,
    ),
    (
        "PUT",
        "lifecycle",
        "PutBucketLifecycleConfiguration",
        lifecycle.put_bucket_lifecycle_configuration,
    ),
    ("DELETE", "lifecycle", "DeleteBucketLifecycle", lifecycle.delete_bucket_lifecycle),
    ("GET", "logging", "GetBucketLogging", logging.get_bucket_logging),
    ("PUT", "logging", "PutBucketLogging", logging.put_bucket_logging),
    ("GET", "tagging", "GetBucketTagging", tagging.get_bucket_tagging),
    ("PUT", "tagging", "PutBucketTagging", tagging.put_bucket_tagging),
    ("DELETE", "tagging", "DeleteBucketTagging", tagging.delete_bucket_tagging),
    ("GET", "website", "GetBucketWebsite", website.get_bucket_website),
    ("PUT", "website", "PutBucketWebsite", website.put_bucket_website),
    ("DELETE", "website", "DeleteBucketWebsite", website.delete_bucket_website),
    ("GET", "location", "GetBucketLocation", buckets.get_bucket_location),
    ("GET", "uploads", "ListMultipartUploads", list_multipart_uploads),
    ("GET", "versioning", "GetBucketVersioning", versioning.get_bucket_versioning),
    ("PUT", "versioning", "PutBucketVersioning", versioning.put_bucket_versioning),
    ("GET", "versions", "ListObjectVersions", versioning.list_object_versions),
    ("GET", "list-type", "ListObjectsV2", list_objects_v2),
    ("GET", "", "ListObjects", list_objects),
    ("HEAD", "", "HeadBucket", buckets.head_bucket),
    ("PUT", "", "CreateBucket", buckets.create_bucket),
    ("DELETE", "", "DeleteBucket", buckets.delete_bucket),
    ("POST", "delete", "DeleteObjects", delete_objects),
)
_OF_OBJECTS: Final[tuple[tuple[str, str, str, Operation], ...]] = (
    *absent_features.OF_OBJECTS,
    ("GET", "tagging", "GetObjectTagging", tagging.get_object_tagging),
    ("PUT", "tagging", "PutObjectTagging", tagging.put_object_tagging),
    ("DELETE", "tagging", "DeleteObjectTagging", tagging.delete_object_tagging),
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
_COPIES: Final[dict[str, tuple[str, Operation]]] = {
    "PutObject": ("CopyObject", copy_object),
    "UploadPart": ("UploadPartCopy", upload_part_copy),
}


_READS: Final = frozenset(("GET", "HEAD"))
# A parameter of these names is some operation's.
_KNOWN: Final = frozenset(
    (
        *(parameter for _, parameter, _, _ in (*_OF_BUCKETS, *_OF_OBJECTS)),
        *(parameter for takes in TAKES.values() for parameter in takes.parameters),
    )
)


def operation_of(request: S3Request) -> tuple[str, Operation]:
    """Return the operation and its name.

    Raises S3Error: NotImplemented for what it does not take, or only AWS offers; MethodNotAllowed.
    """
    selector, name, run = _selected(request)
    if SOURCE_HEADER in request.headers and name in _COPIES:
        name, run = _COPIES[name]
    if request.parameters:
        _check_parameters(request, name, selector)
    _check_headers(request, name)
    return name, run


def _selected(request: S3Request) -> tuple[str, str, Operation]:
    """Return what selects the operation, its name and itself."""
    if not request.bucket:
        if request.method == "GET":
            return "", "ListBuckets", buckets.list_buckets
        raise _not_allowed(request)
    if request.form is not None:
        return "", "PostObject", post_object
    for method, parameter, name, run in _OF_OBJECTS if request.key else _OF_BUCKETS:
        if method == request.method and (not parameter or parameter in request.by_name):
            return parameter, name, run
    raise _not_allowed(request)


def _check_parameters(request: S3Request, name: str, selector: str) -> None:
    """Refuse a parameter that the operation does not take.

    A read ignores what cannot be the name of another operation, such as ``v=123``: a name with a
    value that no operation takes. The list of buckets is what a request is for that names nothing.
    Raises S3Error: NotImplemented; InvalidArgument for two values, of which one would be ignored.
    """
    takes = TAKES[name].parameters
    is_lenient = request.method in _READS and name != "ListBuckets"
    for parameter, value in request.parameters:
        if parameter == OPERATION_PARAMETER:
            if value != name:
                raise not_implemented(f"The operation {value[:100]}")
            continue
        if parameter in takes or (parameter == selector and bool(selector)):
            if value != request.query(parameter):
                raise _two_values(f"parameter {parameter}")
            continue
        if _is_of_all(request, parameter):
            continue
        if is_lenient and not _may_name_operation(parameter, value):
            continue
        if not value and not selector:
            # It names another operation, which is none of ours.
            raise _no_such_operation(request, parameter)
        raise not_implemented(f"The parameter {parameter[:100]} of {name}")


def _is_of_all(request: S3Request, parameter: str) -> bool:
    if parameter in OF_ALL or is_of_signature(parameter):
        return True
    # They stand for headers, and are checked as headers.
    return is_query_header(parameter) and (
        request.has(SIGNATURE_PARAMETER) or request.has(KEY_PARAMETER)
    )


def _may_name_operation(parameter: str, value: str) -> bool:
    """True if a read must not ignore a parameter: operations are named without a value."""
    is_bare = not value and not parameter.isdecimal()
    return is_bare or parameter in _KNOWN or parameter.lower().startswith(PREFIX)


def _check_headers(request: S3Request, name: str) -> None:
    """Refuse a header that the operation does not take.

    Raises S3Error: NotImplemented; InvalidArgument for two values of a header of a write, and for
    headers of encryption that contradict each other.
    """
    takes = TAKES[name].headers
    is_read = request.method in _READS
    if not is_read and not request.headers.are_distinct:
        _check_repeated_headers(request)
    for header in request.headers:
        if not header.startswith(PREFIX):
            is_taken = is_read or header not in OF_WRITES or header in takes
        elif header.startswith(METADATA_PREFIX):
            is_taken = METADATA_PREFIX in takes
        else:
            is_taken = header in HEADERS_OF_ALL or header in takes
            if header.startswith(ENCRYPTION):
                check_encryption(name, request.headers)
        if not is_taken:
            raise not_implemented(f"The header {header[:100]} of {name}")
        check_value(header, request.header(header))


def _check_repeated_headers(request: S3Request) -> None:
    """Refuse two values of one header, of which one would be ignored. Those of metadata are joined.

    Raises S3Error InvalidArgument.
    """
    for header, value in request.headers.items():
        is_amz = header.startswith(PREFIX) and not header.startswith(METADATA_PREFIX)
        if (is_amz or header in OF_WRITES) and value.strip() != request.header(header):
            raise _two_values(f"header {header}")


def _two_values(name: str) -> S3Error:
    return S3Error("InvalidArgument", f"The {name[:100]} has two values.")


def _not_allowed(request: S3Request) -> S3Error:
    for parameter, _ in request.parameters:
        if parameter != OPERATION_PARAMETER and not _is_of_all(request, parameter):
            return _no_such_operation(request, parameter)
    if request.method != "POST":
        return S3Error("MethodNotAllowed", extra={"Method": request.method[:20]})
    return not_implemented("POST without a parameter that names an operation")


def _no_such_operation(request: S3Request, parameter: str) -> S3Error:
    return not_implemented(f"{request.method[:20]} with the parameter {parameter[:100]}")
