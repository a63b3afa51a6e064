"""S3's errors: codes and statuses are those of AWS's list of error responses.

One class, ``S3Error``; ``CODES`` has the status and the message of each code.
"""

from collections.abc import Mapping
from typing import Final

from edgecache.brain.core import errors as brain_errors

_MESSAGES: Final[Mapping[int, Mapping[str, str]]] = {
    400: {
        "AccessControlListNotSupported": "The bucket does not allow ACLs.",
        "AuthorizationHeaderMalformed": "The authorization header is malformed.",
        "AuthorizationQueryParametersError": "The query's authorization is malformed.",
        "BadDigest": "The Content-MD5 or checksum value did not match what was received.",
        "BadRequest": "The request is malformed.",
        "EntityTooLarge": "Your proposed upload exceeds the maximum allowed size.",
        "EntityTooSmall": "Your proposed upload is smaller than the minimum allowed size.",
        "IllegalVersioningConfigurationException": ("The Versioning element must be specified"),
        "IncompleteBody": (
            "You did not provide the number of bytes specified by the Content-Length HTTP header."
        ),
        "IncorrectNumberOfFilesInPostRequest": (
            "POST requires exactly one file upload per request."
        ),
        "InvalidArgument": "Invalid Argument",
        "InvalidBucketName": "The specified bucket is not valid.",
        "InvalidDigest": "The Content-MD5 or checksum value that you specified is not valid.",
        "InvalidPart": (
            "One or more of the specified parts could not be found. The part may not have been "
            "uploaded, or the specified entity tag may not match the part's entity tag."
        ),
        "InvalidPartOrder": (
            "The list of parts was not in ascending order. The parts list must be specified in "
            "order by part number."
        ),
        "InvalidPolicyDocument": "The content of the form does not meet the policy's conditions.",
        "InvalidRequest": "The request is not valid.",
        "InvalidStorageClass": "The storage class you specified is not valid.",
        "InvalidTargetBucketForLogging": "The target bucket for logging cannot keep the log.",
        "InvalidTag": "The tag provided was not a valid tag.",
        "InvalidToken": "The provided token is malformed or otherwise invalid.",
        "InvalidURI": "Couldn't parse the specified URI.",
        "KeyTooLongError": "Your key is too long.",
        "MalformedPOSTRequest": (
            "The body of your POST request is not well-formed multipart/form-data."
        ),
        "MalformedTrailerError": "The request contained trailing data that was not well-formed.",
        "MalformedXML": (
            "The XML you provided was not well-formed or did not validate against our published "
            "schema."
        ),
        "MaxMessageLengthExceeded": "Your request was too large.",
        "MaxPostPreDataLengthExceededError": (
            "Your POST request fields preceding the upload file were too large."
        ),
        "MetadataTooLarge": "Your metadata headers exceed the maximum allowed metadata size.",
        "RequestTimeout": (
            "Your socket connection to the server was not read from or written to within the "
            "timeout period."
        ),
        "TooManyBuckets": "You have attempted to create more buckets than allowed.",
        "XAmzContentSHA256Mismatch": (
            "The provided 'x-amz-content-sha256' header does not match what was computed."
        ),
    },
    403: {
        "AccessForbidden": (
            "CORSResponse: This CORS request is not allowed. This is usually because the "
            "evaluation of Origin, request method / Access-Control-Request-Method or Access-"
            "Control-Request-Headers are not allowed by the resource's CORS spec."
        ),
        "AccessDenied": "Access Denied",
        "AccountProblem": "There is a problem with the account of the bucket's owner.",
        "InvalidAccessKeyId": "The AWS Access Key Id you provided does not exist in our records.",
        "InvalidChunkSizeError": "The chunk's size is not valid.",
        "RequestTimeTooSkewed": (
            "The difference between the request time and the server's time is too large."
        ),
        "SignatureDoesNotMatch": (
            "The request signature we calculated does not match the signature you provided. "
            "Check your key and signing method."
        ),
        # As Ceph and other stores with quotas have it.
        "QuotaExceeded": "Your organization's quota is used up.",
    },
    404: {
        "NoSuchBucket": "The specified bucket does not exist.",
        "NoSuchCORSConfiguration": "The CORS configuration does not exist",
        "NoSuchBucketPolicy": "The bucket policy does not exist",
        "NoSuchKey": "The specified key does not exist.",
        "NoSuchLifecycleConfiguration": "The lifecycle configuration does not exist",
        "NoSuchTagSet": "The TagSet does not exist",
        "NoSuchUpload": (
            "The specified multipart upload does not exist. The upload ID might be invalid, or "
            "the multipart upload might have been aborted or completed."
        ),
        "NoSuchVersion": "The specified version does not exist.",
        "NoSuchWebsiteConfiguration": "The specified bucket does not have a website configuration",
        "ObjectLockConfigurationNotFoundError": (
            "Object Lock configuration does not exist for this bucket"
        ),
        "ReplicationConfigurationNotFoundError": "The replication configuration was not found",
        "ServerSideEncryptionConfigurationNotFoundError": (
            "The server side encryption configuration was not found"
        ),
    },
    405: {
        "MethodNotAllowed": "The specified method is not allowed against this resource.",
    },
    409: {
        "OperationAborted": (
            "A conflicting conditional operation is currently in progress against this resource. "
            "Please try again."
        ),
        "BucketAlreadyOwnedByYou": (
            "Your previous request to create the named bucket succeeded and you already own it."
        ),
        "BucketNotEmpty": "The bucket you tried to delete is not empty.",
    },
    411: {
        "MissingContentLength": "You must provide the Content-Length HTTP header.",
    },
    412: {
        "PreconditionFailed": "At least one of the pre-conditions you specified did not hold.",
    },
    416: {
        "InvalidPartNumber": "The requested partnumber is not satisfiable.",
        "InvalidRange": "The requested range is not satisfiable.",
    },
    500: {
        "InternalError": "We encountered an internal error. Please try again.",
    },
    501: {
        "NotImplemented": (
            "A header or query you provided implies functionality that is not implemented."
        ),
    },
    502: {
        # Not AWS's.
        "OriginFailed": "The bucket's origin failed.",
    },
    503: {
        "ServiceUnavailable": "Service is unable to handle request.",
        "SlowDown": "Please reduce your request rate.",
        # Not AWS's.
        "StorageFull": "There is no room for this object.",
    },
    504: {
        # Not AWS's.
        "OriginTimeout": "The bucket's origin did not respond in time.",
    },
}
# By code: status and message.
CODES: Final[Mapping[str, tuple[int, str]]] = {
    code: (status, message)
    for status, messages in _MESSAGES.items()
    for code, message in messages.items()
}

_BRAIN_ERRORS: Final[tuple[tuple[type[brain_errors.BrainError], str], ...]] = (
    (brain_errors.NoSuchBucket, "NoSuchBucket"),
    (brain_errors.BucketExists, "BucketAlreadyOwnedByYou"),
    (brain_errors.BucketNotEmpty, "BucketNotEmpty"),
    (brain_errors.LimitReached, "TooManyBuckets"),
    (brain_errors.KeyRefused, "InvalidArgument"),
    (brain_errors.PreconditionFailed, "PreconditionFailed"),
    (brain_errors.TooManyParts, "QuotaExceeded"),
    (brain_errors.ServiceStopped, "AccountProblem"),
    (brain_errors.UploadMissing, "NoSuchUpload"),
    (brain_errors.UploadBusy, "OperationAborted"),
    (brain_errors.OriginMissing, "NoSuchKey"),
    (brain_errors.OriginReadOnly, "MethodNotAllowed"),
    (brain_errors.OriginTimeout, "OriginTimeout"),
    (brain_errors.OriginChanged, "SlowDown"),
    (brain_errors.OriginError, "OriginFailed"),
    (brain_errors.Overloaded, "SlowDown"),
    (brain_errors.DatabaseBusy, "SlowDown"),
    (brain_errors.StoreUnavailable, "ServiceUnavailable"),
    (brain_errors.Unavailable, "ServiceUnavailable"),
    (brain_errors.Invalid, "InvalidArgument"),
)


class S3Error(Exception):
    """An error response. extra: more elements, as AWS has them (``Key``, …).

    headers: of the response.
    """

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        extra: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code
        self.status, default = CODES[code]
        self.message = message or default
        self.extra = dict(extra or {})
        self.headers = dict(headers or {})
        super().__init__(code)


def not_implemented(what: str) -> S3Error:
    """Return the error for something that AWS offers. what: begins the message."""
    return S3Error("NotImplemented", f"{what} is not implemented.")


def from_brain_error(error: brain_errors.BrainError) -> S3Error:
    """Return the S3 error for an error of the brain's parts."""
    if isinstance(error, brain_errors.StorageFull):
        return _storage_full(error)
    for kind, code in _BRAIN_ERRORS:
        if isinstance(error, kind):
            says = code.startswith(("Origin", "Invalid", "Account", "Quota", "Method", "TooMany"))
            says = says or kind is brain_errors.StoreUnavailable
            detail = error.detail if says else ""
            return S3Error(code, detail)
    return S3Error("InternalError")


def _storage_full(error: brain_errors.StorageFull) -> S3Error:
    """Return what is full: the disk, or the budget for bodies, with its size."""
    extra = {"Limit": "disk"}
    if error.limit_bytes:
        extra = {
            "Limit": "staging",
            "LimitBytes": str(error.limit_bytes),
            "ReceivedBytes": str(error.wanted_bytes),
        }
    return S3Error("StorageFull", error.detail, extra=extra)
