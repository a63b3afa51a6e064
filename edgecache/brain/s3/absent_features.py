"""Reads of AWS's configuration that Zonal does not offer: answered as AWS does if it is not set.

Tools read these before they copy, list or lock; nothing here can be changed.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.xml import Node, document
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import owner_id
from edgecache.brain.s3.objects.first_steps import find_object, object_key

Operation = Callable[[RequestContext], Awaitable[S3Response]]

_XSI: Final = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
ALL_USERS: Final = "http://acs.amazonaws.com/groups/global/AllUsers"

# By parameter: name, and the document or the code of the error.
_DOCUMENTS: Final[dict[str, tuple[str, str, tuple[Node, ...]]]] = {
    "accelerate": ("GetBucketAccelerateConfiguration", "AccelerateConfiguration", ()),
    "logging": ("GetBucketLogging", "BucketLoggingStatus", ()),
    "notification": ("GetBucketNotificationConfiguration", "NotificationConfiguration", ()),
    "requestPayment": (
        "GetBucketRequestPayment",
        "RequestPaymentConfiguration",
        (("Payer", "BucketOwner"),),
    ),
    "versioning": ("GetBucketVersioning", "VersioningConfiguration", ()),
}
_ERRORS: Final[dict[str, tuple[str, str]]] = {
    # AWS encrypts every bucket by default; the same answer would be wrong here.
    "encryption": ("GetBucketEncryption", "ServerSideEncryptionConfigurationNotFoundError"),
    "lifecycle": ("GetBucketLifecycleConfiguration", "NoSuchLifecycleConfiguration"),
    "object-lock": ("GetObjectLockConfiguration", "ObjectLockConfigurationNotFoundError"),
    "ownershipControls": ("GetBucketOwnershipControls", "OwnershipControlsNotFoundError"),
    "policy": ("GetBucketPolicy", "NoSuchBucketPolicy"),
    "policyStatus": ("GetBucketPolicyStatus", "NoSuchBucketPolicy"),
    "publicAccessBlock": ("GetPublicAccessBlock", "NoSuchPublicAccessBlockConfiguration"),
    "replication": ("GetBucketReplication", "ReplicationConfigurationNotFoundError"),
    "website": ("GetBucketWebsite", "NoSuchWebsiteConfiguration"),
}


async def get_bucket_acl(context: RequestContext) -> S3Response:
    """Return the only ACL a bucket has: its owner's."""
    await context.bucket()
    return _acl(context, may_all_read=False)


async def get_object_acl(context: RequestContext) -> S3Response:
    """Return an object's ACL, which its bucket decides: the owner's, and everyone's if public.

    Raises S3Error NoSuchKey.
    """
    bucket = await _bucket_of_object(context)
    return _acl(context, may_all_read=bucket.is_public)


async def get_object_lock(context: RequestContext) -> S3Response:
    """Refuse to tell an object's retention or legal hold, as AWS does for buckets without locks.

    Raises S3Error: NoSuchKey, InvalidRequest.
    """
    await _bucket_of_object(context)
    raise S3Error("InvalidRequest", "Bucket is missing Object Lock Configuration")


def _empty(name: str, children: tuple[Node, ...]) -> Operation:
    async def get(context: RequestContext) -> S3Response:
        await context.bucket()
        return S3Response(body=document(name, children))

    return get


def _absent(code: str) -> Operation:
    async def get(context: RequestContext) -> S3Response:
        bucket = await context.bucket()
        raise S3Error(code, extra={"BucketName": bucket.name})

    return get


async def _bucket_of_object(context: RequestContext) -> BucketInfo:
    bucket = await context.bucket()
    await find_object(context, bucket, object_key(context))
    return bucket


def _acl(context: RequestContext, *, may_all_read: bool) -> S3Response:
    owner: list[Node] = [("ID", owner_id(context.tenant))]
    grants: list[Node] = [_grant("CanonicalUser", owner, "FULL_CONTROL")]
    if may_all_read:
        grants.append(_grant("Group", [("URI", ALL_USERS)], "READ"))
    nodes: list[Node] = [("Owner", owner), ("AccessControlList", grants)]
    return S3Response(body=document("AccessControlPolicy", nodes))


def _grant(kind: str, grantee: list[Node], permission: str) -> Node:
    return "Grant", [(f'Grantee {_XSI} xsi:type="{kind}"', grantee), ("Permission", permission)]


OF_BUCKETS: Final[tuple[tuple[str, str, str, Operation], ...]] = (
    ("GET", "acl", "GetBucketAcl", get_bucket_acl),
    *(
        ("GET", parameter, name, _empty(root, children))
        for parameter, (name, root, children) in _DOCUMENTS.items()
    ),
    *(("GET", parameter, name, _absent(code)) for parameter, (name, code) in _ERRORS.items()),
)
OF_OBJECTS: Final[tuple[tuple[str, str, str, Operation], ...]] = (
    ("GET", "acl", "GetObjectAcl", get_object_acl),
    ("GET", "retention", "GetObjectRetention", get_object_lock),
    ("GET", "legal-hold", "GetObjectLegalHold", get_object_lock),
)
