"""``/v1/cache/buckets``, ``/access-keys``, ``/origins``: what an environment has in the cache."""

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from edgecache import holdings
from edgecache.serializers import (
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
from edgecache.views import CacheView
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
    "created_at": None,
}
NO_KEY = {
    "id": "",
    "secret": "",
    "label": "",
    "access": "",
    "created_at": None,
    "last_used_at": None,
}
NO_ORIGIN = {"name": "", "kind": "", "config": {}, "has_credentials": False, "created_at": None}


class BucketsView(CacheView):
    """The environment's buckets."""

    access = {"GET": needs("buckets", "read"), "POST": needs("buckets", "create")}

    @extend_schema(operation_id="cache_buckets_list", summary="List buckets", responses=BUCKETS)
    def get(self, request: Request) -> Response:
        """List the environment's buckets by name."""
        rows = holdings.listed(self.principal.scope, "buckets")
        return Response(BUCKETS({"results": rows}).data)

    @extend_schema(
        summary="Create a bucket",
        request=BucketRequestSerializer,
        responses={201: BucketSerializer},
    )
    def post(self, request: Request) -> Response:
        """Make a bucket, with the built-in origin unless another is named."""
        wanted = self.read(BucketRequestSerializer)
        made = holdings.made(self.principal.scope, "buckets", wanted, disabled=NO_BUCKET | wanted)
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
        row = holdings.one(self.principal.scope, "buckets", bucket_name, disabled=NO_BUCKET)
        return Response(BucketSerializer(row).data)

    @extend_schema(
        summary="Change a bucket", request=BucketChangeSerializer, responses=BucketSerializer
    )
    def patch(self, request: Request, bucket_name: str) -> Response:
        """Change who may read it and how it is served."""
        wanted = self.read(BucketChangeSerializer)
        row = holdings.changed(
            self.principal.scope, "buckets", bucket_name, wanted, disabled=NO_BUCKET | wanted
        )
        audit.record(self.platform_request, "api:bucket:update", bucket=bucket_name, **wanted)
        return Response(BucketSerializer(row).data)

    @extend_schema(summary="Delete a bucket", responses={204: None})
    def delete(self, request: Request, bucket_name: str) -> Response:
        """Delete an empty bucket."""
        holdings.removed(self.principal.scope, "buckets", bucket_name)
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
        rows = holdings.listed(self.principal.scope, "access-keys")
        return Response(ACCESS_KEYS({"results": rows}).data)

    @extend_schema(
        summary="Create an access key",
        request=AccessKeyRequestSerializer,
        responses={201: NewAccessKeySerializer},
    )
    def post(self, request: Request) -> Response:
        """Make a pair for S3 clients; the secret is told this once."""
        wanted = self.read(AccessKeyRequestSerializer)
        made = holdings.made(self.principal.scope, "access-keys", wanted, disabled=NO_KEY | wanted)
        audit.record(self.platform_request, "api:access_key:create", access_key=made["id"])
        shown = NewAccessKeySerializer(made | {"endpoint": settings.CACHE.s3_url})
        return Response(shown.data, status=status.HTTP_201_CREATED, headers=NO_STORE)


class AccessKeyView(CacheView):
    """One access key."""

    access = {"DELETE": needs("buckets", "delete").fresh()}

    @extend_schema(summary="Revoke an access key", responses={204: None})
    def delete(self, request: Request, access_key_id: str) -> Response:
        """Revoke a key at once."""
        holdings.removed(self.principal.scope, "access-keys", access_key_id)
        audit.record(self.platform_request, "api:access_key:delete", access_key=access_key_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class OriginsView(CacheView):
    """The environment's origins."""

    access = {"GET": needs("buckets", "read"), "POST": needs("buckets", "create")}

    @extend_schema(operation_id="cache_origins_list", summary="List origins", responses=ORIGINS)
    def get(self, request: Request) -> Response:
        """List the environment's origins, without their credentials."""
        rows = holdings.listed(self.principal.scope, "origins")
        return Response(ORIGINS({"results": rows}).data)

    @extend_schema(
        summary="Create an origin",
        request=OriginRequestSerializer,
        responses={201: OriginSerializer},
    )
    def post(self, request: Request) -> Response:
        """Name where buckets take their objects from."""
        wanted = self.read(OriginRequestSerializer)
        shown = {name: wanted[name] for name in ("name", "kind", "config")}
        made = holdings.made(self.principal.scope, "origins", wanted, disabled=NO_ORIGIN | shown)
        audit.record(self.platform_request, "api:origin:create", origin=wanted["name"])
        return Response(OriginSerializer(made).data, status=status.HTTP_201_CREATED)


class OriginView(CacheView):
    """One origin."""

    access = {"DELETE": needs("buckets", "delete")}

    @extend_schema(summary="Remove an origin", responses={204: None})
    def delete(self, request: Request, origin_name: str) -> Response:
        """Remove an origin that no bucket uses."""
        holdings.removed(self.principal.scope, "origins", origin_name)
        audit.record(self.platform_request, "api:origin:delete", origin=origin_name)
        return Response(status=status.HTTP_204_NO_CONTENT)
