"""The OpenAPI description of the operations of the cache and its nodes; those of buckets apart."""

from typing import Final

from edgecache.api.bucket_openapi import BUCKET_OPERATIONS
from edgecache.api.errors import (
    CacheLimitReached,
    CacheUnavailable,
    NodeEndpointTaken,
    NodeNotFound,
)
from platform_site.lib.openapi import shapes
from platform_site.lib.openapi.operations import Operation, Operations

OPERATIONS: Final[Operations] = {
    **BUCKET_OPERATIONS,
    "GET /v1/cache/metrics": Operation(
        tag="Cache",
        problems=(CacheUnavailable,),
        response={
            "total_hits": 0,
            "total_misses": 0,
            "hit_ratio": 0.0,
            "bytes_served": 0,
            "bytes_stored": 0,
            "bytes_capacity": 2147483648,
            "object_count": 0,
            "evictions": 0,
            "active_nodes": 2,
            "avg_latency_ms": 0.0,
            "p95_latency_ms": 0.0,
            "p99_latency_ms": 0.0,
            "collected_at": "2026-11-22T18:37:32.745275+00:00",
        },
    ),
    "GET /v1/cache/metrics/history": Operation(
        tag="Cache",
        problems=(CacheUnavailable,),
        response={
            "interval_s": 90,
            "samples": [
                {
                    "total_hits": 0,
                    "total_misses": 999,
                    "hit_ratio": 0.9,
                    "bytes_served": 1000,
                    "bytes_stored": 500,
                    "bytes_capacity": 10000,
                    "object_count": 7,
                    "evictions": 1,
                    "active_nodes": 2,
                    "avg_latency_ms": 1.5,
                    "p95_latency_ms": 3.5,
                    "p99_latency_ms": 4.5,
                    "collected_at": "2026-11-22T10:18:28.328834Z",
                }
            ],
        },
    ),
    "GET /v1/cache/nodes": Operation(
        tag="Cache nodes",
        problems=(CacheUnavailable,),
        response={
            "nodes": [
                {
                    "node_id": "01a2048c-84a2-7335-a5b8-0db4fb39a1ef",
                    "region": "eu-central",
                    "status": "active",
                    "health": "online",
                    "capacity_bytes": 1073741824,
                    "used_bytes": 0,
                    "created_at": "2026-11-22T18:37:27.587115+00:00",
                    "last_seen_at": "2026-11-22T18:37:32.888028+00:00",
                    "is_own": False,
                }
            ]
        },
    ),
    "GET /v1/cache/nodes/{node_id}": Operation(
        tag="Cache nodes",
        path={"node_id": shapes.UUID},
        problems=(
            NodeNotFound,
            CacheUnavailable,
        ),
        response={
            "node_id": "01a2048d-113f-7661-819d-6e15c1a83107",
            "region": "us-east",
            "status": "pending",
            "health": "pending",
            "capacity_bytes": 1073741824,
            "used_bytes": 0,
            "created_at": "2026-11-22T18:38:03.583692+00:00",
            "last_seen_at": None,
            "is_own": True,
            "endpoint": "http://c1.example.com:80",
            "object_count": 0,
            "evictions": 0,
            "load": 0.0,
        },
    ),
    "DELETE /v1/cache/nodes/{node_id}": Operation(
        tag="Cache nodes",
        path={"node_id": shapes.UUID},
        problems=(
            NodeNotFound,
            CacheUnavailable,
        ),
    ),
    "GET /v1/cache/nodes/{node_id}/metrics": Operation(
        tag="Cache nodes",
        path={"node_id": shapes.UUID},
        problems=(
            NodeNotFound,
            CacheUnavailable,
        ),
        response={
            "total_hits": 90,
            "total_misses": 10,
            "hit_ratio": 0.9,
            "bytes_served": 1000,
            "bytes_stored": 500,
            "bytes_capacity": 10000,
            "object_count": 7,
            "evictions": 1,
            "active_nodes": 2,
            "avg_latency_ms": 1.5,
            "p95_latency_ms": 3.5,
            "p99_latency_ms": 4.5,
            "collected_at": "2026-11-21T10:00:00+00:00",
            "node_id": "01900000-0000-7000-8000-000000000001",
            "load": 0.25,
        },
    ),
    "POST /v1/cache/nodes/register": Operation(
        tag="Cache nodes",
        problems=(
            CacheLimitReached,
            NodeEndpointTaken,
            CacheUnavailable,
        ),
        request={
            "endpoint": "https://worker-1.example.com:9443",
            "region": "eu-central",
            "capacity_bytes": 1099511627776,
        },
        response={
            "node_id": "01a2048c-f077-7117-a3a9-52065e8028db",
            "node_secret": "E3Kr2ii6PFOm1PuujF849dRkZgqu_UdKYfHzcLuqnno",
            "status": "pending",
            "region": "us-east",
            "capacity_bytes": 1073741824,
            "endpoint": "http://n1.example.com:80",
            "brain_url": "http://127.0.0.1:21824",
            "created_at": "2026-11-22T18:37:55.191559+00:00",
        },
    ),
    "POST /v1/cache/purge": Operation(
        tag="Cache",
        problems=(CacheUnavailable,),
        request={"prefix": "assets/images/"},
        response={"objects_purged": 3, "bytes_freed": 30, "nodes_affected": 2},
    ),
    "GET /v1/cache/status": Operation(
        tag="Cache",
        problems=(CacheUnavailable,),
        response={
            "brain_healthy": True,
            "total_nodes": 2,
            "online_nodes": 2,
            "total_cache_bytes": 2147483648,
            "used_cache_bytes": 0,
            "hit_ratio": 0.0,
        },
    ),
}
