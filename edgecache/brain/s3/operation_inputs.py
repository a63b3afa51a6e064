"""What each operation takes: parameters of the query, and headers that change what it does.

Everything else is refused by its name (``router``). Clients learn new operations and headers every
few months, and one that is ignored becomes another operation, or is answered as if it were done.
Source: AWS, "Amazon S3 API Reference".
"""

from dataclasses import dataclass
from typing import Final

from edgecache.brain.access.presigned_urls import ORIGIN_PARAMETER
from edgecache.brain.aws.checksums import HEADER, SIZES
from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.sigv2 import PARAMETERS as OF_VERSION_2
from edgecache.brain.core.values import METADATA_PREFIX
from edgecache.http.headers import Headers


@dataclass(frozen=True, slots=True)
class Takes:
    """What an operation takes, beside what selects it and what every operation takes.

    headers: conditions, and names that begin with ``x-amz-``; METADATA_PREFIX is all names with it.
    """

    parameters: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


# Parameters of every operation, beside those of signatures of version 4.
OF_ALL: Final = frozenset((*OF_VERSION_2, ORIGIN_PARAMETER))
# Names the operation, and is compared with what the rest of the request means.
OPERATION_PARAMETER: Final = "x-id"
# Headers of every operation: checked for each request, or without a meaning here.
HEADERS_OF_ALL: Final = frozenset(
    (
        # The SDK for C++ sends it with every request.
        "x-amz-api-version",
        # Added by CloudFront.
        "x-amz-cf-id",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-decoded-content-length",
        "x-amz-expected-bucket-owner",
        # The bucket's owner pays in any case.
        "x-amz-request-payer",
        # As amz-sdk-…, which clients send without the prefix.
        "x-amz-sdk-invocation-id",
        "x-amz-sdk-request",
        "x-amz-security-token",
        "x-amz-user-agent",
    )
)
# Headers of a write without the prefix that change what it does (RFC 9110 §13.1, §14.5; a write
# ignores If-Modified-Since).
OF_WRITES: Final = frozenset(("content-range", "if-match", "if-none-match", "if-unmodified-since"))
ENCRYPTION: Final = "x-amz-server-side-encryption"
# What AWS knows of the header; any other value is a mistake there as well.
_ENCRYPTIONS: Final = frozenset(("aes256", "aws:fsx", "aws:kms", "aws:kms:dsse"))
# The values of headers that ask for what holds anyway; other values are refused.
VALUES: Final = {
    "x-amz-api-version": "2006-03-01",
    "x-amz-bucket-namespace": "global",
    "x-amz-bucket-object-lock-enabled": "false",
    "x-amz-object-ownership": "BucketOwnerEnforced",
    ENCRYPTION: "AES256",
    # No rule moves objects.
    "x-amz-transition-default-minimum-object-size": "all_storage_classes_128K",
    # No object is archived.
    "x-amz-optional-object-attributes": "RestoreStatus",
}

_CHECKSUMS: Final = tuple(HEADER + name for name in SIZES)
_BODY: Final = (
    "x-amz-checksum-algorithm",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-trailer",
    *_CHECKSUMS,
)
_NEW_OBJECT: Final = (
    "x-amz-acl",
    METADATA_PREFIX,
    ENCRYPTION,
    "x-amz-storage-class",
    "x-amz-tagging",
)
_IS_ABSENT: Final = ("if-match", "if-none-match")
_SOURCE: Final = (
    "x-amz-copy-source",
    "x-amz-copy-source-if-match",
    "x-amz-copy-source-if-modified-since",
    "x-amz-copy-source-if-none-match",
    "x-amz-copy-source-if-unmodified-since",
    "x-amz-source-expected-bucket-owner",
)
_RESPONSE: Final = (
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
)
# No object is locked, so nothing is bypassed.
_LOCK: Final = ("x-amz-bypass-governance-retention",)
_LISTED: Final = ("x-amz-optional-object-attributes",)

TAKES: Final = {
    "AbortMultipartUpload": Takes(),
    "CompleteMultipartUpload": Takes(
        headers=(
            *_IS_ABSENT,
            *_CHECKSUMS,
            "x-amz-checksum-type",
            "x-amz-mp-object-size",
        )
    ),
    "CopyObject": Takes(
        headers=(
            *_IS_ABSENT,
            *_NEW_OBJECT,
            *_SOURCE,
            "x-amz-checksum-algorithm",
            "x-amz-metadata-directive",
            "x-amz-sdk-checksum-algorithm",
            "x-amz-tagging-directive",
        )
    ),
    "CreateBucket": Takes(
        headers=(
            "x-amz-acl",
            "x-amz-bucket-namespace",
            "x-amz-bucket-object-lock-enabled",
            "x-amz-object-ownership",
        )
    ),
    "CreateMultipartUpload": Takes(
        headers=(
            *_NEW_OBJECT,
            "x-amz-checksum-algorithm",
            "x-amz-checksum-type",
            "x-amz-sdk-checksum-algorithm",
        )
    ),
    "DeleteBucket": Takes(),
    "DeleteBucketCors": Takes(),
    "DeleteBucketEncryption": Takes(),
    "DeleteBucketLifecycle": Takes(),
    "DeleteBucketOwnershipControls": Takes(),
    "DeleteBucketPolicy": Takes(),
    "DeleteBucketReplication": Takes(),
    "DeleteBucketTagging": Takes(),
    "DeleteBucketWebsite": Takes(),
    "DeleteObject": Takes(
        parameters=("versionId",),
        headers=(
            "if-match",
            "x-amz-if-match-last-modified-time",
            "x-amz-if-match-size",
            *_LOCK,
        ),
    ),
    "DeleteObjectTagging": Takes(parameters=("versionId",)),
    "DeleteObjects": Takes(headers=(*_BODY, *_LOCK)),
    "DeletePublicAccessBlock": Takes(),
    "GetBucketAccelerateConfiguration": Takes(),
    "GetBucketAcl": Takes(),
    "GetBucketCors": Takes(),
    "GetBucketEncryption": Takes(),
    "GetBucketLifecycleConfiguration": Takes(),
    "GetBucketLocation": Takes(),
    "GetBucketLogging": Takes(),
    "GetBucketNotificationConfiguration": Takes(),
    "GetBucketOwnershipControls": Takes(),
    "GetBucketPolicy": Takes(),
    "GetBucketPolicyStatus": Takes(),
    "GetBucketReplication": Takes(),
    "GetBucketRequestPayment": Takes(),
    "GetBucketTagging": Takes(),
    "GetBucketVersioning": Takes(),
    "GetBucketWebsite": Takes(),
    "GetObject": Takes(
        parameters=("partNumber", "versionId", *_RESPONSE),
        # By x-amz-te SDKs for Java accept a checksum behind the bytes; none is required to follow.
        headers=("x-amz-checksum-mode", "x-amz-te"),
    ),
    "GetObjectAcl": Takes(parameters=("versionId",)),
    "GetObjectAttributes": Takes(
        parameters=("versionId",),
        headers=(
            "x-amz-max-parts",
            "x-amz-object-attributes",
            "x-amz-part-number-marker",
        ),
    ),
    "GetObjectLegalHold": Takes(parameters=("versionId",)),
    "GetObjectLockConfiguration": Takes(),
    "GetObjectRetention": Takes(parameters=("versionId",)),
    "GetObjectTagging": Takes(parameters=("versionId",)),
    "GetPublicAccessBlock": Takes(),
    "HeadBucket": Takes(),
    "HeadObject": Takes(
        parameters=("partNumber", "versionId", *_RESPONSE), headers=("x-amz-checksum-mode",)
    ),
    "ListBuckets": Takes(
        parameters=("bucket-region", "continuation-token", "max-buckets", "prefix")
    ),
    "ListMultipartUploads": Takes(
        parameters=(
            "delimiter",
            "encoding-type",
            "key-marker",
            "max-uploads",
            "prefix",
            "upload-id-marker",
        )
    ),
    "ListObjectVersions": Takes(
        parameters=(
            "delimiter",
            "encoding-type",
            "key-marker",
            "max-keys",
            "prefix",
            "version-id-marker",
        ),
        headers=_LISTED,
    ),
    "ListObjects": Takes(
        parameters=("delimiter", "encoding-type", "marker", "max-keys", "prefix"), headers=_LISTED
    ),
    "ListObjectsV2": Takes(
        parameters=(
            "continuation-token",
            "delimiter",
            "encoding-type",
            "fetch-owner",
            "max-keys",
            "prefix",
            "start-after",
        ),
        headers=_LISTED,
    ),
    "ListParts": Takes(parameters=("max-parts", "part-number-marker")),
    # What the object is to have is in fields, which the policy covers.
    "PostObject": Takes(),
    "PutBucketAccelerateConfiguration": Takes(headers=_BODY),
    "PutBucketAcl": Takes(headers=("x-amz-acl", *_BODY)),
    "PutBucketCors": Takes(headers=_BODY),
    "PutBucketEncryption": Takes(headers=_BODY),
    "PutBucketLifecycleConfiguration": Takes(
        headers=("x-amz-transition-default-minimum-object-size", *_BODY)
    ),
    "PutBucketLogging": Takes(headers=_BODY),
    "PutBucketNotificationConfiguration": Takes(headers=_BODY),
    "PutBucketOwnershipControls": Takes(headers=_BODY),
    "PutBucketRequestPayment": Takes(headers=_BODY),
    "PutBucketTagging": Takes(headers=_BODY),
    "PutBucketVersioning": Takes(headers=_BODY),
    "PutBucketWebsite": Takes(headers=_BODY),
    "PutObject": Takes(headers=(*_IS_ABSENT, *_NEW_OBJECT, *_BODY)),
    "PutObjectAcl": Takes(parameters=("versionId",), headers=("x-amz-acl", *_BODY)),
    "PutObjectTagging": Takes(parameters=("versionId",), headers=_BODY),
    "PutPublicAccessBlock": Takes(headers=_BODY),
    # Of a part its place in the file is only a description.
    "UploadPart": Takes(parameters=("partNumber",), headers=(*_BODY, "content-range")),
    "UploadPartCopy": Takes(
        parameters=("partNumber",), headers=(*_SOURCE, "x-amz-copy-source-range")
    ),
}

# Fields of a form that are headers of the object's PutObject, beside those of its content.
OF_FORMS: Final = frozenset(
    ("x-amz-checksum-algorithm", ENCRYPTION, "x-amz-storage-class", *_CHECKSUMS)
)


def check_value(header: str, value: str) -> None:
    """Refuse a value that asks for what does not hold.

    Raises S3Error: NotImplemented; InvalidArgument for an encryption that AWS does not know either.
    """
    if header == ENCRYPTION and value.lower() not in _ENCRYPTIONS:
        raise S3Error("InvalidArgument", "The encryption method specified is not supported")
    if header in VALUES and value.lower() != VALUES[header].lower():
        raise not_implemented(f"The value {value[:100]} of the header {header}")


def check_encryption(name: str, headers: Headers) -> None:
    """Refuse headers of encryption that are a mistake at AWS as well.

    name: of the operation. Raises S3Error InvalidArgument.
    """
    method = headers.get(ENCRYPTION, "")
    if ENCRYPTION not in TAKES[name].headers:
        if method:
            raise _mistake(f"{ENCRYPTION} header is not supported for this operation")
        return
    if method and any(header.startswith(f"{ENCRYPTION}-customer-") for header in headers):
        raise _mistake(f"{ENCRYPTION} excludes a key of the customer")
    key = f"{ENCRYPTION}-aws-kms-key-id"
    if key in headers and not method.startswith("aws:kms"):
        raise _mistake(f"{key} requires the header {ENCRYPTION}: aws:kms")


def _mistake(sentence: str) -> S3Error:
    return S3Error("InvalidArgument", f"{sentence}.")
