"""AWS's configuration that Zonal does not offer; nothing here can be changed.

Tools read it before they copy, list or lock, and set up a bucket with it. A read is answered with
what holds, or as AWS does if nothing is set. A removal is answered as AWS does for what is not set,
and a write of what holds with 200. Every other write is refused.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.xml import Element, Node, document, parse
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.s3 import encryption
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.listing_query import owner_id
from edgecache.brain.s3.objects.first_steps import find_object, wanted_version
from edgecache.brain.s3.objects.headers import check_acl

Operation = Callable[[RequestContext], Awaitable[S3Response]]
# An element's text in lower case, or its children by name.
Tree = str | Mapping[str, "Tree"]

_XSI: Final = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
ALL_USERS: Final = "http://acs.amazonaws.com/groups/global/AllUsers"

# By parameter: name, and the document or the code of the error.
_DOCUMENTS: Final[dict[str, tuple[str, str, tuple[Node, ...]]]] = {
    "accelerate": ("GetBucketAccelerateConfiguration", "AccelerateConfiguration", ()),
    "notification": ("GetBucketNotificationConfiguration", "NotificationConfiguration", ()),
    "ownershipControls": (
        "GetBucketOwnershipControls",
        "OwnershipControls",
        (("Rule", [("ObjectOwnership", "BucketOwnerEnforced")]),),
    ),
    "publicAccessBlock": (
        "GetPublicAccessBlock",
        "PublicAccessBlockConfiguration",
        # There are no ACLs. That a bucket is not public is not promised: its owner may publish it.
        (
            ("BlockPublicAcls", True),
            ("IgnorePublicAcls", True),
            ("BlockPublicPolicy", False),
            ("RestrictPublicBuckets", False),
        ),
    ),
    "requestPayment": (
        "GetBucketRequestPayment",
        "RequestPaymentConfiguration",
        (("Payer", "BucketOwner"),),
    ),
}
_ERRORS: Final[dict[str, tuple[str, str]]] = {
    "object-lock": ("GetObjectLockConfiguration", "ObjectLockConfigurationNotFoundError"),
    "policy": ("GetBucketPolicy", "NoSuchBucketPolicy"),
    "policyStatus": ("GetBucketPolicyStatus", "NoSuchBucketPolicy"),
    "replication": ("GetBucketReplication", "ReplicationConfigurationNotFoundError"),
}
_REMOVALS: Final[dict[str, str]] = {
    "encryption": "DeleteBucketEncryption",
    "ownershipControls": "DeleteBucketOwnershipControls",
    "policy": "DeleteBucketPolicy",
    "publicAccessBlock": "DeletePublicAccessBlock",
    "replication": "DeleteBucketReplication",
}
# By parameter: name, root, and the only content that describes what holds.
_HOLDS: Final[dict[str, tuple[str, str, Mapping[str, Tree]]]] = {
    "accelerate": (
        "PutBucketAccelerateConfiguration",
        "AccelerateConfiguration",
        {"Status": "Suspended"},
    ),
    "notification": ("PutBucketNotificationConfiguration", "NotificationConfiguration", {}),
    "ownershipControls": (
        "PutBucketOwnershipControls",
        "OwnershipControls",
        {"Rule": {"ObjectOwnership": "BucketOwnerEnforced"}},
    ),
    "publicAccessBlock": (
        "PutPublicAccessBlock",
        "PublicAccessBlockConfiguration",
        {"BlockPublicAcls": "true", "IgnorePublicAcls": "true"},
    ),
    "requestPayment": (
        "PutBucketRequestPayment",
        "RequestPaymentConfiguration",
        {"Payer": "BucketOwner"},
    ),
}
_ENCRYPTION: Final[Mapping[str, Tree]] = {
    "Rule": {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": encryption.ALGORITHM}}
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


async def get_bucket_encryption(context: RequestContext) -> S3Response:
    """Return the algorithm where encryption at rest is declared.

    Raises S3Error ServerSideEncryptionConfigurationNotFoundError. AWS encrypts every bucket by
    default; the same answer would be wrong elsewhere.
    """
    bucket = await context.bucket()
    if not encryption.is_declared(context, bucket):
        code = "ServerSideEncryptionConfigurationNotFoundError"
        raise S3Error(code, extra={"BucketName": bucket.name})
    default: Node = ("SSEAlgorithm", encryption.ALGORITHM)
    rule: list[Node] = [
        ("ApplyServerSideEncryptionByDefault", [default]),
        ("BucketKeyEnabled", False),
    ]
    return S3Response(body=document("ServerSideEncryptionConfiguration", [("Rule", rule)]))


async def put_bucket_encryption(context: RequestContext) -> S3Response:
    """Accept AES256 where encryption at rest is declared. Raises S3Error NotImplemented."""
    bucket = await context.writable_bucket()
    root = await parse(await read_xml(context), "ServerSideEncryptionConfiguration")
    name = "PutBucketEncryption"
    if not encryption.is_declared(context, bucket):
        raise not_implemented(
            f"{name} where the operator has not declared that all places are encrypted "
            "(ZBRAIN_ENCRYPTED_AT_REST)"
        )
    _check_holds(name, root, _ENCRYPTION)
    return S3Response()


async def put_bucket_acl(context: RequestContext) -> S3Response:
    """Accept the owner's ACL. Raises S3Error AccessControlListNotSupported."""
    await context.writable_bucket()
    await _check_acl(context, is_public=False)
    return S3Response()


async def put_object_acl(context: RequestContext) -> S3Response:
    """Accept the ACL that the object has by its bucket.

    Raises S3Error: NoSuchKey, AccessControlListNotSupported.
    """
    context.require_write()
    bucket = await _bucket_of_object(context)
    await _check_acl(context, is_public=bucket.is_public)
    return S3Response()


async def _check_acl(context: RequestContext, *, is_public: bool) -> None:
    """Refuse an ACL, canned or in the body, that is not what holds.

    Raises S3Error: AccessControlListNotSupported, MalformedXML.
    """
    acl = context.request.header("x-amz-acl")
    if acl:
        check_acl(acl, is_public=is_public)
        return
    root = await parse(await read_xml(context), "AccessControlPolicy")
    root.check("Owner", "AccessControlList")
    grants = [grant for each in root.all("AccessControlList") for grant in each.children]
    given = sorted(_grantee(grant) for grant in grants)
    holds = [(owner_id(context.tenant), "FULL_CONTROL")]
    if is_public:
        holds.append((ALL_USERS, "READ"))
    if given != sorted(holds):
        raise S3Error(
            "AccessControlListNotSupported",
            "ACLs are not offered: these grants are not what holds.",
        )


def _grantee(grant: Element) -> tuple[str, str]:
    """Return whom a grant is for, and what it permits. Raises S3Error MalformedXML."""
    grant.check("Grantee", "Permission")
    for grantee in grant.all("Grantee"):
        grantee.check("ID", "URI", "DisplayName", are_texts=True)
        return grantee.value("URI") or grantee.value("ID"), grant.value("Permission")
    raise S3Error("MalformedXML")


async def _removed(context: RequestContext) -> S3Response:
    """Answer the removal of what is not set."""
    await context.writable_bucket()
    return S3Response(204)


def _unchanged(name: str, root: str, holds: Mapping[str, Tree]) -> Operation:
    async def put(context: RequestContext) -> S3Response:
        await context.writable_bucket()
        _check_holds(name, await parse(await read_xml(context), root), holds)
        return S3Response()

    return put


def _check_holds(name: str, root: Element, holds: Mapping[str, Tree]) -> None:
    """Refuse a document that does not describe what holds. Raises S3Error NotImplemented."""
    if _tree(root) != (_folded(holds) if holds else ""):
        raise not_implemented(f"{name} with anything but {_shown(holds)}")


def _tree(element: Element) -> Tree:
    """Return an element's content, without what is false, as it is by default.

    Raises S3Error MalformedXML for two elements of one name.
    """
    if not element.children:
        return element.text.strip().lower()
    found = {child.name: _tree(child) for child in element.children}
    if len(found) < len(element.children):
        raise S3Error("MalformedXML")
    return {name: tree for name, tree in found.items() if tree != "false"}


def _folded(tree: Tree) -> Tree:
    if isinstance(tree, str):
        return tree.lower()
    return {name: _folded(below) for name, below in tree.items()}


def _shown(tree: Mapping[str, Tree]) -> str:
    """Return a content as text."""
    parts = [
        f"{name}: {below}" if isinstance(below, str) else _shown(below)
        for name, below in tree.items()
    ]
    return ", ".join(parts) or "an empty document"


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
    await find_object(context, bucket, context.request.key, wanted_version(context, bucket))
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
    *(("DELETE", parameter, name, _removed) for parameter, name in _REMOVALS.items()),
    ("GET", "encryption", "GetBucketEncryption", get_bucket_encryption),
    ("PUT", "encryption", "PutBucketEncryption", put_bucket_encryption),
    ("PUT", "acl", "PutBucketAcl", put_bucket_acl),
    *(
        ("PUT", parameter, name, _unchanged(name, root, holds))
        for parameter, (name, root, holds) in _HOLDS.items()
    ),
)
OF_OBJECTS: Final[tuple[tuple[str, str, str, Operation], ...]] = (
    ("GET", "acl", "GetObjectAcl", get_object_acl),
    ("PUT", "acl", "PutObjectAcl", put_object_acl),
    ("GET", "retention", "GetObjectRetention", get_object_lock),
    ("GET", "legal-hold", "GetObjectLegalHold", get_object_lock),
)
