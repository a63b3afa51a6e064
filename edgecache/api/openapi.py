"""The OpenAPI description of the operations of the cache and its nodes; those of buckets apart."""

from typing import Any, Final

from common.errors import PlatformError
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from common.openapi.tags import Tag
from edgecache.api.errors import (
    CacheLimitReached,
    CacheUnavailable,
    NodeEndpointTaken,
    NodeNotFound,
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


OPERATIONS: Final[Operations] = {
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
