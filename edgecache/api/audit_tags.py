"""Audit tags of the cache."""

from audit.tags import AuditTag


class CacheTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    NODE_CREATE = ("api:node:create", "A worker node was registered.", "registered a worker node")
    NODE_DELETE = ("api:node:delete", "A worker node was removed.", "removed a worker node")
    CACHE_PURGE = ("api:cache:purge", "Cached objects were purged.", "purged cached objects")
    BUCKET_CREATE = ("api:bucket:create", "A bucket was created.", "created the bucket {bucket}")
    BUCKET_UPDATE = ("api:bucket:update", "A bucket was changed.", "changed the bucket {bucket}")
    BUCKET_DELETE = ("api:bucket:delete", "A bucket was deleted.", "deleted the bucket {bucket}")
    BUCKET_HOST_CREATE = (
        "api:bucket_host:create",
        "A host name was given to a bucket.",
        "gave the host name {host} to the bucket {bucket}",
    )
    BUCKET_HOST_DELETE = (
        "api:bucket_host:delete",
        "A host name was taken from a bucket.",
        "took the host name {host} from the bucket {bucket}",
    )
    ACCESS_KEY_CREATE = (
        "api:access_key:create",
        "An S3 access key was created.",
        "created the S3 access key {access_key}",
    )
    ACCESS_KEY_DELETE = (
        "api:access_key:delete",
        "An S3 access key was deleted.",
        "deleted the S3 access key {access_key}",
    )
    SYSTEM_ACCESS_KEY_DELETE = (
        "system:access_key:delete",
        "An S3 access key ended, because its creator is no admin any more.",
    )
    OBJECT_DELETE = (
        "api:object:delete",
        "Objects were deleted.",
        "deleted objects in the bucket {bucket}",
    )
    OBJECT_RESTORE = (
        "api:object:restore",
        "A version of an object was made the current one again.",
        "restored a version of {key} in the bucket {bucket}",
    )
    VERSION_DELETE = (
        "api:object_version:delete",
        "A version of an object was deleted.",
        "deleted a version of {key} in the bucket {bucket}",
    )
    OBJECT_SHARE = (
        "api:object:share",
        "A URL that reads an object was signed.",
        "signed a URL that reads {key} in the bucket {bucket}",
    )
    OBJECT_UPLOAD = (
        "api:object:upload",
        "URLs that write an object were signed.",
        "signed URLs that write {key} in the bucket {bucket}",
    )
    SIGNED_LINK_CREATE = (
        "api:signed_link:create",
        "A link that opens objects was signed.",
        "signed a link that opens {opens} in the bucket {bucket}",
    )
    SIGNED_LINK_DELETE = (
        "api:signed_link:delete",
        "All signed links of a bucket were revoked.",
        "revoked all signed links of the bucket {bucket}",
    )
    ORIGIN_CREATE = ("api:origin:create", "An origin was created.", "created the origin {origin}")
    ORIGIN_UPDATE = (
        "api:origin:update",
        "An origin got new options or credentials, or lost these.",
        "changed the origin {origin}",
    )
    ORIGIN_DELETE = ("api:origin:delete", "An origin was deleted.", "deleted the origin {origin}")
    SYNC_BUCKET_HOST_LAPSE = (
        "sync:bucket_host:lapse",
        "A bucket lost a host name: its DNS record is missing.",
    )
    ADMIN_NODE_APPROVE = ("admin:node:approve", "Staff approved a worker node.")
    ADMIN_NODE_QUARANTINE = ("admin:node:quarantine", "Staff put a worker node into quarantine.")
    ADMIN_NODE_DRAIN = ("admin:node:drain", "Staff began to drain a worker node.")
    CLI_NODE_APPROVE = ("cli:node:approve", "An operator approved a worker node.")
    CLI_NODE_QUARANTINE = ("cli:node:quarantine", "An operator put a worker node into quarantine.")
    CLI_NODE_DRAIN = ("cli:node:drain", "An operator began to drain a worker node.")
    CLI_NODE_DELETE = ("cli:node:delete", "An operator removed a worker node.")
    CLI_CACHE_PURGE = ("cli:cache:purge", "An operator purged cached objects.")
