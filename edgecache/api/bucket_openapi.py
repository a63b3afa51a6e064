"""The OpenAPI description of the operations of buckets, hosts, origins and access keys."""

from typing import Final

from accounts.errors import TooManyAttempts
from accounts.oauth.errors import DnsUnavailable
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
    OriginInUse,
    OriginNotFound,
    OriginTaken,
)
from platform_site.lib.openapi.operations import Operation, Operations

BUCKET_OPERATIONS: Final[Operations] = {
    "GET /v1/cache/access-keys": Operation(
        tag="Buckets",
        problems=(CacheUnavailable,),
        response={
            "results": [
                {
                    "access_key_id": "ZKW47FP36BASBTVPHMAU",
                    "label": "x",
                    "access": "write",
                    "created_at": "2026-11-22T18:37:30.668976+00:00",
                    "last_used_at": None,
                }
            ]
        },
    ),
    "POST /v1/cache/access-keys": Operation(
        tag="Buckets",
        problems=(
            CacheLimitReached,
            CacheUnavailable,
        ),
        request={"label": "nightly backup", "access": "write"},
        response={
            "access_key_id": "ZKGXQPQPRSEICYAPKZEE",
            "label": "1.1805916207174113e+21",
            "access": "read",
            "created_at": "2026-11-22T18:37:38.110691+00:00",
            "last_used_at": None,
            "secret_access_key": "SNzBkddXPQ-lvdaXm1X5EybeaQbGGnAStFgnTs3U",
            "endpoint": "http://127.0.0.1:9000",
        },
    ),
    "DELETE /v1/cache/access-keys/{access_key_id}": Operation(
        tag="Buckets",
        problems=(
            AccessKeyNotFound,
            CacheUnavailable,
        ),
    ),
    "GET /v1/cache/buckets": Operation(
        tag="Buckets",
        problems=(CacheUnavailable,),
        response={
            "results": [
                {
                    "name": "charlies-01a2048c-9064-7180-bf08-750ce38483d4",
                    "public_name": "d6ab53917f540dd54e6d",
                    "origin": None,
                    "origin_prefix": "",
                    "is_public": False,
                    "allows_redirect": False,
                    "verifies_reads": False,
                    "forwards_writes": False,
                    "created_at": "2026-11-22T18:37:30.603768+00:00",
                }
            ]
        },
    ),
    "POST /v1/cache/buckets": Operation(
        tag="Buckets",
        problems=(
            OriginNotFound,
            BucketTaken,
            CacheUnavailable,
        ),
        request={"name": "assets", "is_public": True},
        response={
            "name": "alices-media",
            "public_name": "b3749fca009b1085229e",
            "origin": None,
            "origin_prefix": "",
            "is_public": False,
            "allows_redirect": False,
            "verifies_reads": False,
            "forwards_writes": False,
            "created_at": "2026-11-22T18:37:54.292603+00:00",
        },
    ),
    "GET /v1/cache/buckets/{bucket_name}": Operation(
        tag="Buckets",
        problems=(
            BucketNotFound,
            CacheUnavailable,
        ),
        response={
            "name": "",
            "public_name": "",
            "origin": None,
            "origin_prefix": "",
            "is_public": False,
            "allows_redirect": False,
            "verifies_reads": False,
            "forwards_writes": False,
            "created_at": None,
        },
    ),
    "PATCH /v1/cache/buckets/{bucket_name}": Operation(
        tag="Buckets",
        problems=(
            BucketNotFound,
            CacheUnavailable,
        ),
        request={"is_public": False},
        response={
            "name": "",
            "public_name": "",
            "origin": None,
            "origin_prefix": "",
            "is_public": True,
            "allows_redirect": False,
            "verifies_reads": False,
            "forwards_writes": False,
            "created_at": None,
        },
    ),
    "DELETE /v1/cache/buckets/{bucket_name}": Operation(
        tag="Buckets",
        problems=(
            BucketNotFound,
            BucketNotEmpty,
            CacheUnavailable,
        ),
    ),
    "GET /v1/cache/buckets/{bucket_name}/hosts": Operation(
        tag="Buckets",
        problems=(
            BucketNotFound,
            CacheUnavailable,
        ),
        response={
            "results": [
                {
                    "host": "files2.example.com",
                    "proved_at": "2026-11-22T18:38:00.383420+00:00",
                    "gone_since": None,
                }
            ]
        },
    ),
    "POST /v1/cache/buckets/{bucket_name}/hosts": Operation(
        tag="Buckets",
        problems=(
            BucketNotFound,
            CacheLimitReached,
            HostNotProved,
            HostTaken,
            TooManyAttempts,
            CacheUnavailable,
            DnsUnavailable,
        ),
        request={"host": "files.example.com"},
        response={"host": "files.example.com", "proved_at": None, "gone_since": None},
    ),
    "DELETE /v1/cache/buckets/{bucket_name}/hosts/{host}": Operation(
        tag="Buckets",
        problems=(
            BucketNotFound,
            HostNotFound,
            CacheUnavailable,
        ),
    ),
    "GET /v1/cache/origins": Operation(
        tag="Buckets",
        problems=(CacheUnavailable,),
        response={
            "results": [
                {
                    "name": "charlies-01a2048c-90cc-7008-b4dd-462ba7e9af17",
                    "kind": "http",
                    "config": {"url": "https://origin.example.com/"},
                    "has_secret": False,
                    "created_at": "2026-11-22T18:37:30.720839+00:00",
                }
            ]
        },
    ),
    "POST /v1/cache/origins": Operation(
        tag="Buckets",
        problems=(
            OriginTaken,
            CacheUnavailable,
        ),
        request={
            "name": "media",
            "kind": "s3",
            "config": {"bucket": "example-media", "region": "eu-central-1"},
            "secret": {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "example"},
        },
        response={
            "name": "files",
            "kind": "http",
            "config": {},
            "has_secret": False,
            "created_at": None,
        },
    ),
    "DELETE /v1/cache/origins/{origin_name}": Operation(
        tag="Buckets",
        problems=(
            OriginNotFound,
            OriginInUse,
            CacheUnavailable,
        ),
    ),
}
