"""Audit tags of the cache."""

from audit.tags import AuditTag


class CacheTag(AuditTag):
    """Each tag with what it records; docs/audit.md is made from it."""

    NODE_CREATE = ("api:node:create", "A worker node was registered.")
    NODE_DELETE = ("api:node:delete", "A worker node was removed.")
    CACHE_PURGE = ("api:cache:purge", "Cached objects were purged.")
    BUCKET_CREATE = ("api:bucket:create", "A bucket was created.")
    BUCKET_UPDATE = ("api:bucket:update", "A bucket was changed.")
    BUCKET_DELETE = ("api:bucket:delete", "A bucket was deleted.")
    BUCKET_HOST_CREATE = ("api:bucket_host:create", "A host name was given to a bucket.")
    BUCKET_HOST_DELETE = ("api:bucket_host:delete", "A host name was taken from a bucket.")
    ACCESS_KEY_CREATE = ("api:access_key:create", "An S3 access key was created.")
    ACCESS_KEY_DELETE = ("api:access_key:delete", "An S3 access key was deleted.")
    SYSTEM_ACCESS_KEY_DELETE = (
        "system:access_key:delete",
        "An S3 access key ended, because its creator is no admin any more.",
    )
    OBJECT_DELETE = ("api:object:delete", "Objects were deleted.")
    OBJECT_SHARE = ("api:object:share", "A URL that reads an object was signed.")
    OBJECT_UPLOAD = ("api:object:upload", "URLs that write an object were signed.")
    ORIGIN_CREATE = ("api:origin:create", "An origin was created.")
    ORIGIN_UPDATE = (
        "api:origin:update",
        "An origin got new options or credentials, or lost these.",
    )
    ORIGIN_DELETE = ("api:origin:delete", "An origin was deleted.")
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
