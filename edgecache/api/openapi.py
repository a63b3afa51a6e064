"""The OpenAPI description of the operations of the cache: its nodes, objects and buckets."""

from functools import partial
from typing import Any, Final

from accounts.errors import TooManyAttempts
from common.errors import DnsUnavailable, PlatformError
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from common.openapi.tags import Tag
from edgecache.api.errors import (
    AccessKeyNotFound,
    BucketNotEmpty,
    BucketNotFound,
    BucketTaken,
    CacheLimitReached,
    CacheUnavailable,
    HostNotFound,
    HostNotProved,
    HostTaken,
    NodeEndpointTaken,
    NodeNotFound,
    ObjectNotFound,
    OriginFailed,
    OriginInUse,
    OriginNotFound,
    OriginReadOnly,
    OriginTaken,
)

METRICS: Final[dict[str, Any]] = {
    "total_hits": 90,
    "total_misses": 10,
    "hit_ratio": 0.9,
    "bytes_served": 1000,
    "bytes_stored": 500,
    "bytes_capacity": 2147483648,
    "object_count": 7,
    "evictions": 1,
    "active_nodes": 2,
    "avg_latency_ms": 1.5,
    "p95_latency_ms": 3.5,
    "p99_latency_ms": 4.5,
    "collected_at": "2026-11-22T18:37:32.745275+00:00",
}
NODE_ID: Final = "01a2048c-f077-7117-a3a9-52065e8028db"
REGISTRATION: Final = {
    "endpoint": "https://worker-1.example.com:9443",
    "region": "eu-central",
    "capacity_bytes": 1099511627776,
}
PUBLIC_NODE: Final[dict[str, Any]] = {
    "node_id": NODE_ID,
    "region": "eu-central",
    "status": "active",
    "health": "online",
    "capacity_bytes": 1099511627776,
    "used_bytes": 500,
    "created_at": "2026-11-22T18:37:27.587115+00:00",
    "last_seen_at": "2026-11-22T18:37:32.888028+00:00",
    "is_own": False,
}
OWN_NODE: Final = PUBLIC_NODE | {
    "is_own": True,
    "endpoint": "https://worker-1.example.com:9443",
    "created_by": "alice@example.com",
    "object_count": 7,
    "evictions": 1,
    "load": 0.25,
    "status_reason": "",
    "status_at": "2026-11-22T18:37:27.587115+00:00",
}
NEW_NODE: Final = REGISTRATION | {
    "node_id": NODE_ID,
    "node_secret": "E3Kr2ii6PFOm1PuujF849dRkZgqu_UdKYfHzcLuqnno",
    "status": "pending",
    "brain_url": "https://brain.example.com:8083",
    "created_at": "2026-11-22T18:37:27.587115+00:00",
}
NODE_PATH: Final = {"node_id": shapes.UUID}


def operation(tag: Tag, *problems: type[PlatformError], **described: Any) -> Operation:
    """Return an operation, with more fields of Operation; each may find the brain unavailable."""
    return Operation(tag=tag, problems=(*problems, CacheUnavailable), **described)


NODE_OPERATIONS: Final[Operations] = {
    "GET /v1/cache/metrics": operation("Cache", response=METRICS),
    "GET /v1/cache/metrics/history": operation(
        "Cache",
        response={"interval_s": 90, "samples": [METRICS]},
    ),
    "GET /v1/cache/nodes": operation("Cache nodes", response={"nodes": [PUBLIC_NODE]}),
    "GET /v1/cache/nodes/{node_id}": operation(
        "Cache nodes",
        NodeNotFound,
        path=NODE_PATH,
        response=OWN_NODE,
    ),
    "DELETE /v1/cache/nodes/{node_id}": operation("Cache nodes", NodeNotFound, path=NODE_PATH),
    "GET /v1/cache/nodes/{node_id}/audits": operation(
        "Cache nodes",
        NodeNotFound,
        path=NODE_PATH,
        response={
            "days": [
                {
                    "day": "2026-11-22",
                    "path": "direct",
                    "is_recheck": False,
                    "looks": 352,
                    "right": 351,
                    "wrong": 1,
                    "missing": 0,
                    "unanswered": 0,
                    "bytes": 41_000_000,
                }
            ],
            "failures": [
                {
                    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    "path": "direct",
                    "is_recheck": False,
                    "hour": "2026-11-22T18:00:00+00:00",
                }
            ],
        },
    ),
    "GET /v1/cache/nodes/{node_id}/metrics": operation(
        "Cache nodes",
        NodeNotFound,
        path=NODE_PATH,
        response=METRICS | {"node_id": NODE_ID, "load": 0.25},
    ),
    "POST /v1/cache/nodes/register": operation(
        "Cache nodes",
        CacheLimitReached,
        NodeEndpointTaken,
        request=REGISTRATION,
        response=NEW_NODE,
    ),
    "POST /v1/cache/purge": operation(
        "Cache",
        request={"prefix": "assets/images/"},
        response={"objects_purged": 3, "bytes_freed": 30, "nodes_affected": 2},
    ),
    "GET /v1/cache/status": operation(
        "Cache",
        response={
            "brain_healthy": True,
            "total_nodes": 2,
            "online_nodes": 2,
            "total_cache_bytes": 2147483648,
            "used_cache_bytes": 500,
            "hit_ratio": 0.9,
        },
    ),
}


PATH: Final = "/v1/cache/buckets/{bucket_name}/objects"
LISTED: Final = {
    "key": "reports/2026.pdf",
    "size": 48211,
    "etag": "9a0364b9e99bb480dd25e1f0284c8555",
    "last_modified": "2026-11-22T18:37:30.668976Z",
}
URL: Final = (
    "http://127.0.0.1:9000/media/reports/2026.pdf?X-Amz-Algorithm=AWS4-HMAC-SHA256"
    "&X-Amz-Credential=zp-…&X-Amz-Date=20261122T183730Z&X-Amz-Expires=300"
    "&X-Amz-SignedHeaders=host&X-Amz-Signature=…"
)
EXPIRES_AT: Final = "2026-11-22T18:42:30.668976Z"

_object_operation: Final = partial(operation, "Objects", BucketNotFound)

OBJECT_OPERATIONS: Final[Operations] = {
    f"GET {PATH}": _object_operation(
        OriginReadOnly,
        OriginFailed,
        response={"objects": [LISTED], "prefixes": ["reports/drafts/"], "next_after": None},
    ),
    f"GET {PATH}/details": _object_operation(
        ObjectNotFound,
        OriginFailed,
        response=LISTED
        | {
            "content_type": "application/pdf",
            "headers": {"cache-control": "max-age=300"},
            "metadata": {"author": "alice"},
        },
    ),
    f"POST {PATH}/delete": _object_operation(
        OriginReadOnly, OriginFailed, request={"keys": ["reports/2025.pdf"]}
    ),
    f"POST {PATH}/download-url": _object_operation(
        request={"key": "reports/2026.pdf", "expires_in_s": 300},
        response={"url": URL, "expires_at": EXPIRES_AT},
    ),
    f"POST {PATH}/upload-urls": _object_operation(
        request={"key": "reports/2026.pdf", "step": "put", "content_type": "application/pdf"},
        response={"method": "PUT", "urls": [URL], "expires_at": EXPIRES_AT},
    ),
}


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

_bucket_operation: Final = partial(operation, "Buckets")

BUCKET_OPERATIONS: Final[Operations] = {
    "GET /v1/cache/access-keys": _bucket_operation(response={"results": [ACCESS_KEY]}),
    "POST /v1/cache/access-keys": _bucket_operation(
        CacheLimitReached,
        request={"label": "nightly backup", "access": "write"},
        response=NEW_ACCESS_KEY,
    ),
    "DELETE /v1/cache/access-keys/{access_key_id}": _bucket_operation(AccessKeyNotFound),
    "GET /v1/cache/buckets": _bucket_operation(response={"results": [BUCKET]}),
    "POST /v1/cache/buckets": _bucket_operation(
        OriginNotFound,
        BucketTaken,
        CacheLimitReached,
        request={"name": "assets", "is_public": True},
        response=BUCKET,
    ),
    "GET /v1/cache/buckets/{bucket_name}": _bucket_operation(BucketNotFound, response=BUCKET),
    "PATCH /v1/cache/buckets/{bucket_name}": _bucket_operation(
        BucketNotFound, request={"is_public": False}, response=BUCKET | {"is_public": False}
    ),
    "DELETE /v1/cache/buckets/{bucket_name}": _bucket_operation(BucketNotFound, BucketNotEmpty),
    "GET /v1/cache/buckets/{bucket_name}/hosts": _bucket_operation(
        BucketNotFound, response={"results": [HOST]}
    ),
    "POST /v1/cache/buckets/{bucket_name}/hosts": _bucket_operation(
        BucketNotFound,
        CacheLimitReached,
        HostNotProved,
        HostTaken,
        TooManyAttempts,
        DnsUnavailable,
        request={"host": "files.example.com"},
        response=HOST,
    ),
    "GET /v1/cache/buckets/{bucket_name}/hosts/{host}": _bucket_operation(
        BucketNotFound, response=HOST | {"proved_at": None}
    ),
    "DELETE /v1/cache/buckets/{bucket_name}/hosts/{host}": _bucket_operation(
        BucketNotFound, HostNotFound
    ),
    "GET /v1/cache/origins": _bucket_operation(response={"results": [ORIGIN]}),
    "POST /v1/cache/origins": _bucket_operation(
        OriginTaken, CacheLimitReached, request=NEW_ORIGIN, response=ORIGIN
    ),
    "PATCH /v1/cache/origins/{origin_name}": _bucket_operation(
        OriginNotFound,
        request={"secret": {"access_key_id": "AKIAEXAMPLE2", "secret_access_key": "example"}},
        response=ORIGIN,
    ),
    "DELETE /v1/cache/origins/{origin_name}": _bucket_operation(OriginNotFound, OriginInUse),
}


OPERATIONS: Final[Operations] = {**NODE_OPERATIONS, **OBJECT_OPERATIONS, **BUCKET_OPERATIONS}
