"""Authenticates a request, before anything is read or done."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from edgecache.brain.access.access_keys import AccessKeys
from edgecache.brain.access.platform_keys import LIMIT_S, SigningKey, is_platform_key
from edgecache.brain.aws import post_policy, sigv2
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.posted_form import PostedForm
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.sigv4.chunks import STREAMING
from edgecache.brain.aws.sigv4.verification import (
    UNSIGNED,
    SignatureClaims,
    StreamSigning,
    claims_of,
    verify,
)
from edgecache.brain.s3.context import RequestSigner

_OF_SESSION: Final = "x-amz-security-token"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


async def authenticate(request: S3Request, keys: AccessKeys) -> RequestSigner | None:
    """Return the identity that signed the request; None for an anonymous request.

    Raises S3Error, in AWS's order: malformed, InvalidAccessKeyId, RequestTimeTooSkewed or expired,
    SignatureDoesNotMatch.
    """
    presigned = sigv2.claim_of(request)
    if presigned is not None:
        return await _authenticate_v2(request, presigned, keys)
    if request.form is not None:
        return await _authenticate_form(request, request.form, keys)
    claims = claims_of(request)
    if claims is None:
        return None
    if request.header(_OF_SESSION) or request.has("X-Amz-Security-Token"):
        raise _no_session_token()
    _check_payload_hash(claims.payload_hash)
    _check_platform_use(claims)
    key = await _find_key(claims.access_key, keys)
    stream_signing = verify(request, claims, key.secret, now=datetime.now(UTC))
    keys.note_use(key)
    return RequestSigner(key.id, key.tenant, key.can_write, claims.payload_hash, stream_signing)


async def _authenticate_v2(
    request: S3Request, claim: sigv2.PresignedClaim, keys: AccessKeys
) -> RequestSigner:
    if is_platform_key(claim.access_key):
        raise S3Error("AccessDenied")
    key = await _find_key(claim.access_key, keys)
    sigv2.verify(request, claim, key.secret)
    keys.note_use(key)
    return _signer_of_head(key)


async def _authenticate_form(
    request: S3Request, form: PostedForm, keys: AccessKeys
) -> RequestSigner | None:
    """Return who signed a form's policy, which allows what the form asks for.

    Raises S3Error as ``post_policy.verify`` and ``PostPolicy.check`` do.
    """
    claim = post_policy.claim_of(form.fields)
    if claim is None:
        return None
    if request.header(_OF_SESSION) or form.fields.get(_OF_SESSION):
        raise _no_session_token()
    key = await _find_key(claim.access_key, keys)
    now = datetime.now(UTC)
    policy = post_policy.verify(claim, key.secret, now=now)
    if is_platform_key(key.id):
        is_short = policy.expires_at - now <= timedelta(seconds=LIMIT_S)
        if claim.signed_at is None or not is_short:
            raise S3Error("AccessDenied")
    policy.check(form.fields, request.bucket, now=now)
    form.smallest = max((low for low, _ in policy.sizes), default=0)
    form.largest = min((high for _, high in policy.sizes), default=form.largest)
    keys.note_use(key)
    return _signer_of_head(key)


def _signer_of_head(key: SigningKey) -> RequestSigner:
    """Return the signer of a request whose body is not signed, so it cannot be in signed chunks."""
    return RequestSigner(
        key.id, key.tenant, key.can_write, UNSIGNED, StreamSigning(b"", "", "", "")
    )


def _no_session_token() -> S3Error:
    return S3Error(
        "InvalidToken",
        "Access keys have no session token. Remove it: clients take it from the variable "
        "AWS_SESSION_TOKEN, or from aws_session_token in a profile.",
    )


async def _find_key(access_key: str, keys: AccessKeys) -> SigningKey:
    key = keys.known(access_key) or await keys.find(access_key)
    if key is None:
        raise S3Error("InvalidAccessKeyId", extra={"AWSAccessKeyId": access_key[:128]})
    return key


def _check_platform_use(claims: SignatureClaims) -> None:
    """Refuse a platform's key for anything but a short-lived URL.

    Only the brain knows its secret, so nothing else can be signed with it. This limits the damage
    if the secret leaks.

    Raises S3Error AccessDenied.
    """
    is_short = claims.expires_s is not None and claims.expires_s <= LIMIT_S
    if is_platform_key(claims.access_key) and not is_short:
        raise S3Error("AccessDenied")


def _check_payload_hash(text: str) -> None:
    if text != UNSIGNED and text not in STREAMING and not _SHA256.fullmatch(text):
        raise S3Error(
            "InvalidArgument",
            "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, "
            + ", ".join(sorted(STREAMING))
            + ", or a valid sha256 value.",
        )
