"""Presigned URLs of signature version 2, which boto3 and the AWS CLI still make by default.

Version 2 in a header is refused. Presigned URLs are limited to version 4's seven days.
Source: AWS, "Signing and Authenticating REST Requests (Signature Version 2)".
"""

import base64
import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from edgecache.brain.aws import requests
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.sigv4.verification import PRESIGNED_LIMIT_S

KEY_PARAMETER: Final = "AWSAccessKeyId"
PARAMETERS: Final = (KEY_PARAMETER, "Expires", "Signature")
# These parameters are signed; the others must not change what the request does.
_SIGNED: Final = frozenset(
    (
        "accelerate",
        "acl",
        "cors",
        "delete",
        "lifecycle",
        "location",
        "logging",
        "notification",
        "object-lock",
        "partNumber",
        "policy",
        "replication",
        "requestPayment",
        "response-cache-control",
        "response-content-disposition",
        "response-content-encoding",
        "response-content-language",
        "response-content-type",
        "response-expires",
        "tagging",
        "uploadId",
        "uploads",
        "versionId",
        "versioning",
        "versions",
        "website",
    )
)
# Not signed and harmless: a client's own id, and parameters of listings.
_FREE: Final = frozenset(
    (
        "continuation-token",
        "delimiter",
        "encoding-type",
        "fetch-owner",
        "key-marker",
        "list-type",
        "marker",
        "max-keys",
        "max-parts",
        "max-uploads",
        "part-number-marker",
        "prefix",
        "start-after",
        "upload-id-marker",
        "version-id-marker",
        "x-id",
    )
)
_FURTHER: Final = re.compile(f"&({'|'.join(_SIGNED)})(?:[=&]|$)")


@dataclass(frozen=True, slots=True)
class PresignedClaim:
    """Access key and signature of a presigned URL. expires: Unix seconds."""

    access_key: str
    expires: int
    signature: str


def claim_of(request: S3Request) -> PresignedClaim | None:
    """Parse the query; None if it has no signature of version 2.

    Raises S3Error AccessDenied: a parameter is missing, or one is not covered by the signature.
    """
    if not request.has(KEY_PARAMETER):
        return None
    values = [request.query(name) for name in PARAMETERS]
    expires = values[1]
    is_number = expires.isascii() and expires.isdigit() and len(expires) <= 12
    if not all(values) or not is_number or request.header("authorization"):
        raise S3Error(
            "AccessDenied",
            "Query-string authentication requires the Signature, Expires and AWSAccessKeyId "
            "parameters",
        )
    if any(_FURTHER.search(value) for _, value in request.parameters):
        # The signature covers texts that are decoded: this one stands for several parameters.
        raise S3Error("AccessDenied", "A parameter contains another one.")
    known = _SIGNED | _FREE | set(PARAMETERS)
    if not all(name in known or requests.is_query_header(name) for name in request.by_name):
        raise S3Error("AccessDenied", "A parameter is not covered by the signature.")
    return PresignedClaim(values[0], int(expires), values[2])


def verify(request: S3Request, claim: PresignedClaim, secret: str) -> None:
    """Check a signature with the key's secret, over the query's headers as well.

    Raises S3Error: AccessDenied (expired), SignatureDoesNotMatch, InvalidArgument.
    """
    request = requests.with_query_headers(request, with_checksums=True)
    text = _string_to_sign(request, claim)
    digest = hmac.digest(secret.encode(), text.encode("latin-1"), "sha1")
    wanted = base64.b64encode(digest)
    given = claim.signature.encode("latin-1", "replace")
    now = datetime.now(UTC).timestamp()
    if now > claim.expires or claim.expires - now > PRESIGNED_LIMIT_S:
        raise S3Error("AccessDenied", "Request has expired")
    if not hmac.compare_digest(wanted, given):
        raise S3Error("SignatureDoesNotMatch", extra={"AWSAccessKeyId": claim.access_key[:128]})


def _string_to_sign(request: S3Request, claim: PresignedClaim) -> str:
    headers = sorted({name for name in request.headers if name.startswith("x-amz-")})
    lines = [
        request.method,
        request.header("content-md5"),
        request.header("content-type"),
        str(claim.expires),
    ]
    lines += [
        f"{name}:{','.join(value.strip() for value in request.headers.get_all(name))}"
        for name in headers
    ]
    signed = sorted(pair for pair in request.parameters if pair[0] in _SIGNED)
    query = "&".join(f"{name}={value}" if value else name for name, value in signed)
    # Like values of headers: one character for each byte of UTF-8, which is what clients sign.
    query = query.encode().decode("latin-1")
    bucket = f"/{request.bucket}" if request.is_host_style else ""
    lines.append(f"{bucket}{request.raw_path}{'?' if query else ''}{query}")
    return "\n".join(lines)
