"""The OpenAPI description of the operations of buckets, hosts, origins and access keys."""

from functools import partial
from typing import Final

from accounts.errors import TooManyAttempts
from common.errors import DnsUnavailable
from common.openapi.operations import Operations
from edgecache.api.errors import (
    AccessKeyNotFound,
    BucketNotEmpty,
    BucketNotFound,
    BucketTaken,
    CacheLimitReached,
    HostNotFound,
    HostNotProved,
    HostTaken,
    OriginInUse,
    OriginNotFound,
    OriginTaken,
)
from edgecache.api.openapi import operation

ACCESS_KEY: Final = {
    "access_key_id": "ZKW47FP36BASBTVPHMAU",
    "label": "nightly backup",
    "access": "write",
    "created_by": "alice@example.com",
    "created_at": "2026-11-22T18:37:30.668976+00:00",
    "last_used_at": None,
}
NEW_ACCESS_KEY: Final = ACCESS_KEY | {
    "secret_access_key": "SNzBkddXPQ-lvdaXm1X5EybeaQbGGnAStFgnTs3U",
    "endpoint": "http://127.0.0.1:9000",
}
BUCKET: Final[dict[str, object]] = {
    "name": "assets",
    "public_name": "d6ab53917f540dd54e6d",
    "origin": None,
    "origin_prefix": "",
    "is_public": True,
    "allows_redirect": False,
    "verifies_reads": False,
    "forwards_writes": False,
    "forwarded_headers": [],
    "created_at": "2026-11-22T18:37:30.603768+00:00",
}
HOST: Final = {
    "host": "files.example.com",
    "proved_at": "2026-11-22T18:38:00.383420+00:00",
    "gone_since": None,
    "record": {
        "type": "TXT",
        "name": "_zonal-cache.files.example.com",
        "value": "zonal-cache-verification="
        "0d5cbd0c3b3b1d6a3ac9f3a0f1f8b1f4cf9a62cf6a0c6a5f0fb2cf3e7d4f9a11",
    },
    "cname": {"type": "CNAME", "name": "files.example.com", "value": "s3.example.net"},
}
NEW_ORIGIN: Final = {
    "name": "media",
    "kind": "s3",
    "config": {"bucket": "example-media", "region": "eu-central-1"},
    "secret": {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "example"},
}
ORIGIN: Final = {
    "name": "media",
    "kind": "s3",
    "config": {"bucket": "example-media", "region": "eu-central-1"},
    "has_secret": True,
    "created_by": "alice@example.com",
    "created_at": "2026-11-22T18:37:30.720839+00:00",
}

_operation: Final = partial(operation, "Buckets")

OPERATIONS: Final[Operations] = {
    "GET /v1/cache/access-keys": _operation(response={"results": [ACCESS_KEY]}),
    "POST /v1/cache/access-keys": _operation(
        CacheLimitReached,
        request={"label": "nightly backup", "access": "write"},
        response=NEW_ACCESS_KEY,
    ),
    "DELETE /v1/cache/access-keys/{access_key_id}": _operation(AccessKeyNotFound),
    "GET /v1/cache/buckets": _operation(response={"results": [BUCKET]}),
    "POST /v1/cache/buckets": _operation(
        OriginNotFound,
        BucketTaken,
        CacheLimitReached,
        request={"name": "assets", "is_public": True},
        response=BUCKET,
    ),
    "GET /v1/cache/buckets/{bucket_name}": _operation(BucketNotFound, response=BUCKET),
    "PATCH /v1/cache/buckets/{bucket_name}": _operation(
        BucketNotFound, request={"is_public": False}, response=BUCKET | {"is_public": False}
    ),
    "DELETE /v1/cache/buckets/{bucket_name}": _operation(BucketNotFound, BucketNotEmpty),
    "GET /v1/cache/buckets/{bucket_name}/hosts": _operation(
        BucketNotFound, response={"results": [HOST]}
    ),
    "POST /v1/cache/buckets/{bucket_name}/hosts": _operation(
        BucketNotFound,
        CacheLimitReached,
        HostNotProved,
        HostTaken,
        TooManyAttempts,
        DnsUnavailable,
        request={"host": "files.example.com"},
        response=HOST,
    ),
    "GET /v1/cache/buckets/{bucket_name}/hosts/{host}": _operation(
        BucketNotFound, response=HOST | {"proved_at": None}
    ),
    "DELETE /v1/cache/buckets/{bucket_name}/hosts/{host}": _operation(BucketNotFound, HostNotFound),
    "GET /v1/cache/origins": _operation(response={"results": [ORIGIN]}),
    "POST /v1/cache/origins": _operation(
        OriginTaken, CacheLimitReached, request=NEW_ORIGIN, response=ORIGIN
    ),
    "PATCH /v1/cache/origins/{origin_name}": _operation(
        OriginNotFound,
        request={"secret": {"access_key_id": "AKIAEXAMPLE2", "secret_access_key": "example"}},
        response=ORIGIN,
    ),
    "DELETE /v1/cache/origins/{origin_name}": _operation(OriginNotFound, OriginInUse),
}
