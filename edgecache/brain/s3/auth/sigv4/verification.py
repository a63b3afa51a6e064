"""Checks that a request was signed with the access key that it names."""

import hmac
from datetime import datetime
from typing import NamedTuple

from edgecache.brain.s3.auth.sigv4.canonical import (
    canonical_request,
    signature,
    signing_key,
    string_to_sign,
    uris,
)
from edgecache.brain.s3.auth.sigv4.claims import SignatureClaims, check_time
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.requests import S3Request


class StreamSigning(NamedTuple):
    """How the chunks of a signed body are signed. seed: the request's own signature."""

    key: bytes
    amz_date: str
    scope: str
    seed: str


def verify(
    request: S3Request, claims: SignatureClaims, secret: str, *, now: datetime
) -> StreamSigning:
    """Check a signature with the key's secret.

    Raises S3Error: RequestTimeTooSkewed, AccessDenied (expired), SignatureDoesNotMatch.
    Source: AWS, "Signature Calculations for the Authorization Header", and "… Query Parameters".
    """
    key = signing_key(secret, claims.date, claims.region, claims.service)
    for uri in uris(request.raw_path):
        canonical = canonical_request(request, claims.signed_headers, claims.payload_hash, uri=uri)
        text = string_to_sign(canonical, amz_date=claims.amz_date, scope=claims.scope)
        if hmac.compare_digest(signature(key, text).encode(), claims.signature.encode()):
            check_time(claims, now=now)
            return StreamSigning(key, claims.amz_date, claims.scope, claims.signature)
    # Like AWS, which checks the time first, report a wrong time rather than a wrong signature.
    check_time(claims, now=now)
    raise S3Error("SignatureDoesNotMatch", extra={"AWSAccessKeyId": claims.access_key[:128]})
