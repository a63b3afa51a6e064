"""``/v1/cache/buckets``, ``/access-keys``, ``/origins``: what an environment has in the cache."""

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from edgecache.api import holdings
from edgecache.api.serializers import (
    AccessKeyRequestSerializer,
    AccessKeySerializer,
    BucketChangeSerializer,
    BucketRequestSerializer,
    BucketSerializer,
    NewAccessKeySerializer,
    OriginRequestSerializer,
    OriginSerializer,
    listing_of,
)
from edgecache.api.views import CacheView
from platform_site.lib import audit
from platform_site.lib.api import NO_STORE
from platform_site.lib.permissions import needs

BUCKETS = listing_of(BucketSerializer)
ACCESS_KEYS = listing_of(AccessKeySerializer)
ORIGINS = listing_of(OriginSerializer)
NO_BUCKET = {
    "name": "",
    "public_name": "",
    "origin": None,
    "origin_prefix": "",
    "is_public": False,
    "allows_redirect": False,
    "verifies_reads": False,
    "forwards_writes": False,
    "created_at": None,
}
NO_KEY = {
    "access_key_id": "",
    "secret_access_key": "",
    "label": "",
    "access": "",
    "created_at": None,
    "last_used_at": None,
}
NO_ORIGIN = {"name": "", "kind": "", "config": {}, "has_secret": False, "created_at": None}


class BucketsView(CacheView):
    """The environment's buckets."""

    access = {"GET": needs("buckets", "read"), "POST": needs("buckets", "create")}

    @extend_schema(operation_id="cache_buckets_list", summary="List buckets", responses=BUCKETS)
    def get(self, request: Request) -> Response:
        """List the environment's buckets by name."""
        return Response(BUCKETS({"results": holdings.buckets(self.principal.scope)}).data)

    @extend_schema(
        summary="Create a bucket",
        request=BucketRequestSerializer,
        responses={201: BucketSerializer},
    )
    def post(self, request: Request) -> Response:
        """Make a bucket, with the built-in origin unless another is named."""
        wanted = self.read(BucketRequestSerializer)
        made = self.when_on(
            lambda: holdings.create_bucket(self.principal.scope, wanted), NO_BUCKET | wanted
        )
        audit.record(self.platform_request, "api:bucket:create", bucket=wanted["name"])
        return Response(BucketSerializer(made).data, status=status.HTTP_201_CREATED)


class BucketView(CacheView):
    """One bucket."""

    access = {
        "GET": needs("buckets", "read"),
        "PATCH": needs("buckets", "update"),
        "DELETE": needs("buckets", "delete"),
    }

    @extend_schema(summary="Read a bucket", responses=BucketSerializer)
    def get(self, request: Request, bucket_name: str) -> Response:
        """Give one bucket."""
        row = self.when_on(lambda: holdings.bucket(self.principal.scope, bucket_name), NO_BUCKET)
        return Response(BucketSerializer(row).data)

    @extend_schema(
        summary="Change a bucket", request=BucketChangeSerializer, responses=BucketSerializer
    )
    def patch(self, request: Request, bucket_name: str) -> Response:
        """Change who may read it and how it is served."""
        wanted = self.read(BucketChangeSerializer)
        row = self.when_on(
            lambda: holdings.change_bucket(self.principal.scope, bucket_name, wanted),
            NO_BUCKET | wanted,
        )
        audit.record(self.platform_request, "api:bucket:update", bucket=bucket_name, **wanted)
        return Response(BucketSerializer(row).data)

    @extend_schema(summary="Delete a bucket", responses={204: None})
    def delete(self, request: Request, bucket_name: str) -> Response:
        """Delete an empty bucket."""
        self.when_on(lambda: holdings.delete_bucket(self.principal.scope, bucket_name), None)
        audit.record(self.platform_request, "api:bucket:delete", bucket=bucket_name)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AccessKeysView(CacheView):
    """The environment's access keys."""

    access = {"GET": needs("buckets", "read"), "POST": needs("buckets", "create").fresh()}

    @extend_schema(
        operation_id="cache_access_keys_list", summary="List access keys", responses=ACCESS_KEYS
    )
    def get(self, request: Request) -> Response:
        """List the environment's access keys, without their secrets."""
        rows = holdings.access_keys(self.principal.scope)
        return Response(ACCESS_KEYS({"results": rows}).data)

    @extend_schema(
        summary="Create an access key",
        request=AccessKeyRequestSerializer,
        responses={201: NewAccessKeySerializer},
    )
    def post(self, request: Request) -> Response:
        """Make a pair for S3 clients; the secret is told this once."""
        wanted = self.read(AccessKeyRequestSerializer)
        made = self.when_on(
            lambda: holdings.create_access_key(self.principal.scope, wanted), NO_KEY | wanted
        )
        audit.record(
            self.platform_request, "api:access_key:create", access_key=made["access_key_id"]
        )
        shown = NewAccessKeySerializer(made | {"endpoint": settings.CACHE.s3_url})
        return Response(shown.data, status=status.HTTP_201_CREATED, headers=NO_STORE)


class AccessKeyView(CacheView):
    """One access key."""

    access = {"DELETE": needs("buckets", "delete").fresh()}

    @extend_schema(summary="Revoke an access key", responses={204: None})
    def delete(self, request: Request, access_key_id: str) -> Response:
        """Revoke a key at once."""
        self.when_on(lambda: holdings.revoke_access_key(self.principal.scope, access_key_id), None)
        audit.record(self.platform_request, "api:access_key:delete", access_key=access_key_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class OriginsView(CacheView):
    """The environment's origins."""

    access = {"GET": needs("buckets", "read"), "POST": needs("buckets", "create")}

    @extend_schema(operation_id="cache_origins_list", summary="List origins", responses=ORIGINS)
    def get(self, request: Request) -> Response:
        """List the environment's origins, without their credentials."""
        return Response(ORIGINS({"results": holdings.origins(self.principal.scope)}).data)

    @extend_schema(
        summary="Create an origin",
        request=OriginRequestSerializer,
        responses={201: OriginSerializer},
    )
    def post(self, request: Request) -> Response:
        """Name where buckets take their objects from."""
        wanted = self.read(OriginRequestSerializer)
        shown = {name: wanted[name] for name in ("name", "kind", "config")}
        made = self.when_on(
            lambda: holdings.create_origin(self.principal.scope, wanted), NO_ORIGIN | shown
        )
        audit.record(self.platform_request, "api:origin:create", origin=wanted["name"])
        return Response(OriginSerializer(made).data, status=status.HTTP_201_CREATED)


class OriginView(CacheView):
    """One origin."""

    access = {"DELETE": needs("buckets", "delete")}

    @extend_schema(summary="Remove an origin", responses={204: None})
    def delete(self, request: Request, origin_name: str) -> Response:
        """Remove an origin that no bucket uses."""
        self.when_on(lambda: holdings.delete_origin(self.principal.scope, origin_name), None)
        audit.record(self.platform_request, "api:origin:delete", origin=origin_name)
        return Response(status=status.HTTP_204_NO_CONTENT)
