"""Encryption at rest: accepted and shown where the operator declares it of all places."""

from collections.abc import Sequence
from typing import Final

from edgecache.brain.aws.errors import not_implemented
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.s3.context import RequestContext

HEADER: Final = "x-amz-server-side-encryption"
ALGORITHM: Final = "AES256"


def is_declared(context: RequestContext, bucket: BucketInfo) -> bool:
    """True if a bucket's objects are encrypted; what another origin does is not known."""
    return context.dependencies.settings.is_encrypted and bucket.origin_id is None


def check(context: RequestContext, bucket: BucketInfo) -> None:
    """Refuse a write that asks for encryption where it is not declared.

    Raises S3Error NotImplemented.
    """
    if not context.request.header(HEADER) or is_declared(context, bucket):
        return
    if bucket.origin_id is not None:
        raise not_implemented(f"The header {HEADER} in a bucket with an origin of its own")
    raise not_implemented(
        f"The header {HEADER} where the operator has not declared that all places are encrypted "
        "(ZBRAIN_ENCRYPTED_AT_REST)"
    )


def headers(context: RequestContext, bucket: BucketInfo) -> Sequence[tuple[str, str]]:
    """Return the headers that show it."""
    return [(HEADER, ALGORITHM)] if is_declared(context, bucket) else []
