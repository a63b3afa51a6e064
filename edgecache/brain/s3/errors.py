"""S3's errors: codes and statuses are those of AWS's list of error responses.

One class, ``S3Error``; ``CODES`` has the status and the message of each code.
"""

from collections.abc import Mapping
from typing import Final

from edgecache.brain import errors as brain_errors

# By code: status and message.
CODES: Final[Mapping[str, tuple[int, str]]] = {
    "AccessControlListNotSupported": (400, "The bucket does not allow ACLs."),
    "AccessForbidden": (
        403,
        (
            "CORSResponse: This CORS request is not allowed. This is usually because the "
            "evaluation of Origin, request method / Access-Control-Request-Method or "
            "Access-Control-Request-Headers are not allowed by the resource's CORS spec."
        ),
    ),
    "AccessDenied": (403, "Access Denied"),
    "AccountProblem": (403, "There is a problem with the account of the bucket's owner."),
    "AuthorizationHeaderMalformed": (400, "The authorization header is malformed."),
    "AuthorizationQueryParametersError": (400, "The query's authorization is malformed."),
    "BadDigest": (400, "The Content-MD5 or checksum value did not match what was received."),
    "BadRequest": (400, "The request is malformed."),
    "BucketAlreadyOwnedByYou": (
        409,
        "Your previous request to create the named bucket succeeded and you already own it.",
    ),
    "BucketNotEmpty": (409, "The bucket you tried to delete is not empty."),
    "EntityTooLarge": (400, "Your proposed upload exceeds the maximum allowed size."),
    "EntityTooSmall": (
        400,
        "Your proposed upload is smaller than the minimum allowed size.",
    ),
    "IncompleteBody": (
        400,
        "You did not provide the number of bytes specified by the Content-Length HTTP header.",
    ),
    "InternalError": (500, "We encountered an internal error. Please try again."),
    "InvalidAccessKeyId": (
        403,
        "The AWS Access Key Id you provided does not exist in our records.",
    ),
    "InvalidArgument": (400, "Invalid Argument"),
    "InvalidBucketName": (400, "The specified bucket is not valid."),
    "InvalidChunkSizeError": (403, "The chunk's size is not valid."),
    "InvalidDigest": (400, "The Content-MD5 or checksum value that you specified is not valid."),
    "InvalidPart": (
        400,
        (
            "One or more of the specified parts could not be found. The part may not have been "
            "uploaded, or the specified entity tag may not match the part's entity tag."
        ),
    ),
    "InvalidPartNumber": (416, "The requested partnumber is not satisfiable."),
    "InvalidPartOrder": (
        400,
        (
            "The list of parts was not in ascending order. The parts list must be specified in "
            "order by part number."
        ),
    ),
    "InvalidRange": (416, "The requested range is not satisfiable."),
    "InvalidRequest": (400, "The request is not valid."),
    "InvalidStorageClass": (400, "The storage class you specified is not valid."),
    "InvalidTag": (400, "The tag provided was not a valid tag."),
    "InvalidToken": (400, "The provided token is malformed or otherwise invalid."),
    "InvalidURI": (400, "Couldn't parse the specified URI."),
    "KeyTooLongError": (400, "Your key is too long."),
    "MalformedTrailerError": (400, "The request contained trailing data that was not well-formed."),
    "MalformedXML": (
        400,
        (
            "The XML you provided was not well-formed or did not validate against our published "
            "schema."
        ),
    ),
    "MaxMessageLengthExceeded": (400, "Your request was too large."),
    "MetadataTooLarge": (
        400,
        "Your metadata headers exceed the maximum allowed metadata size.",
    ),
    "MethodNotAllowed": (405, "The specified method is not allowed against this resource."),
    "MissingContentLength": (411, "You must provide the Content-Length HTTP header."),
    "MissingRequestBodyError": (400, "Request body is empty."),
    "NoSuchBucket": (404, "The specified bucket does not exist."),
    "NoSuchCORSConfiguration": (404, "The CORS configuration does not exist"),
    "NoSuchBucketPolicy": (404, "The bucket policy does not exist"),
    "NoSuchKey": (404, "The specified key does not exist."),
    "NoSuchLifecycleConfiguration": (404, "The lifecycle configuration does not exist"),
    "NoSuchPublicAccessBlockConfiguration": (
        404,
        "The public access block configuration was not found",
    ),
    "NoSuchTagSet": (404, "The TagSet does not exist"),
    "NoSuchUpload": (
        404,
        (
            "The specified multipart upload does not exist. The upload ID might be invalid, or the "
            "multipart upload might have been aborted or completed."
        ),
    ),
    "NoSuchVersion": (404, "The specified version does not exist."),
    "NoSuchWebsiteConfiguration": (
        404,
        "The specified bucket does not have a website configuration",
    ),
    "NotImplemented": (
        501,
        "A header or query you provided implies functionality that is not implemented.",
    ),
    "ObjectLockConfigurationNotFoundError": (
        404,
        "Object Lock configuration does not exist for this bucket",
    ),
    "OwnershipControlsNotFoundError": (404, "The bucket ownership controls were not found"),
    "PreconditionFailed": (
        412,
        "At least one of the pre-conditions you specified did not hold.",
    ),
    "ReplicationConfigurationNotFoundError": (
        404,
        "The replication configuration was not found",
    ),
    "RequestTimeTooSkewed": (
        403,
        "The difference between the request time and the server's time is too large.",
    ),
    "RequestTimeout": (
        400,
        (
            "Your socket connection to the server was not read from or written to within the "
            "timeout period."
        ),
    ),
    "ServerSideEncryptionConfigurationNotFoundError": (
        404,
        "The server side encryption configuration was not found",
    ),
    "ServiceUnavailable": (503, "Service is unable to handle request."),
    "SignatureDoesNotMatch": (
        403,
        (
            "The request signature we calculated does not match the signature you provided. Check "
            "your key and signing method."
        ),
    ),
    "SlowDown": (503, "Please reduce your request rate."),
    "TooManyBuckets": (400, "You have attempted to create more buckets than allowed."),
    "XAmzContentSHA256Mismatch": (
        400,
        "The provided 'x-amz-content-sha256' header does not match what was computed.",
    ),
    # Not AWS's.
    "OriginFailed": (502, "The bucket's origin failed."),
    "StorageFull": (503, "There is no room for this object."),
    "OriginTimeout": (504, "The bucket's origin did not respond in time."),
    # As Ceph and other stores with quotas have it.
    "QuotaExceeded": (403, "Your organization's quota is used up."),
}

_BRAIN_ERRORS: Final[tuple[tuple[type[brain_errors.BrainError], str], ...]] = (
    (brain_errors.NoSuchBucket, "NoSuchBucket"),
    (brain_errors.BucketExists, "BucketAlreadyOwnedByYou"),
    (brain_errors.BucketNotEmpty, "BucketNotEmpty"),
    (brain_errors.KeyRefused, "InvalidArgument"),
    (brain_errors.PreconditionFailed, "PreconditionFailed"),
    (brain_errors.TooManyParts, "QuotaExceeded"),
    (brain_errors.ServiceStopped, "AccountProblem"),
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


def from_brain_error(error: brain_errors.BrainError) -> S3Error:
    """Return the S3 error for an error of the brain's parts."""
    if isinstance(error, brain_errors.StorageFull):
        return _storage_full(error)
    for kind, code in _BRAIN_ERRORS:
        if isinstance(error, kind):
            says = code.startswith(("Origin", "Invalid", "Account", "Quota"))
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
