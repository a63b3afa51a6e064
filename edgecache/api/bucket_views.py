"""``/v1/cache/buckets`` with their hosts, ``/v1/cache/access-keys`` and ``/v1/cache/origins``."""

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import TooManyAttempts
from audit import trail
from common.api.views import NO_STORE
from common.errors import DnsUnavailable
from common.permissions import needs
from edgecache.api import access_keys, buckets, hosts, objects, origins
from edgecache.api.audit_tags import CacheTag
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
from edgecache.api.object_serializers import SignedLinkRequestSerializer, SignedLinkSerializer
from edgecache.api.serializers import (
    AccessKeyListSerializer,
    AccessKeyRequestSerializer,
    BucketChangeSerializer,
    BucketListSerializer,
    BucketRequestSerializer,
    BucketSerializer,
    FailureListSerializer,
    HostListSerializer,
    HostRequestSerializer,
    HostSerializer,
    NewAccessKeySerializer,
    OriginChangeSerializer,
    OriginListSerializer,
    OriginRequestSerializer,
    OriginSerializer,
)
from edgecache.api.views import CacheResource


class BucketViewSet(CacheResource):
    """The environment's buckets, and the host names under which they answer plain HTTP."""

    tag = "Buckets"
    access = {
        # Members that may read objects must be able to find buckets.
        "list": needs("objects", "read"),
        "create": needs("buckets", "create"),
        "retrieve": needs("objects", "read"),
        "partial_update": needs("buckets", "update"),
        "destroy": needs("buckets", "delete"),
        "failures": needs("buckets", "read"),
        "hosts": needs("buckets", "read"),
        "host": needs("buckets", "read"),
        "add_host": needs("buckets", "create"),
        "remove_host": needs("buckets", "delete"),
        # As objects/download-url, which reads one object.
        "signed_links": needs("objects", "read"),
        "revoke_signed_links": needs("buckets", "update"),
    }
    errors = {
        "create": (OriginNotFound, BucketTaken, CacheLimitReached),
        "retrieve": (BucketNotFound,),
        "partial_update": (BucketNotFound,),
        "destroy": (BucketNotFound, BucketNotEmpty),
        "failures": (BucketNotFound,),
        "hosts": (BucketNotFound,),
        "host": (BucketNotFound,),
        "add_host": (
            BucketNotFound,
            CacheLimitReached,
            HostNotProved,
            HostTaken,
            TooManyAttempts,
            DnsUnavailable,
        ),
        "remove_host": (BucketNotFound, HostNotFound),
        "signed_links": (BucketNotFound, HostNotFound),
        "revoke_signed_links": (BucketNotFound,),
    }
    serializer_class = BucketSerializer
    request_serializers = {
        "create": BucketRequestSerializer,
        "partial_update": BucketChangeSerializer,
        "add_host": HostRequestSerializer,
        "signed_links": SignedLinkRequestSerializer,
    }
    response_serializers = {
        "list": BucketListSerializer,
        "failures": FailureListSerializer,
        "hosts": HostListSerializer,
        "host": HostSerializer,
        "add_host": HostSerializer,
        "remove_host": None,
        "signed_links": SignedLinkSerializer,
        "revoke_signed_links": None,
    }
    success_statuses = {"add_host": status.HTTP_201_CREATED}
    versions = {"retrieve": "partial_update"}
    lookup_url_kwarg = "bucket_name"

    @extend_schema(operation_id="cache_buckets_list", summary="List buckets")
    def list(self, request: Request) -> Response:
        """List the environment's buckets by name."""
        return self.respond({"results": buckets.all_of(self.principal.scope)})

    @extend_schema(summary="Create a bucket")
    def create(self, request: Request) -> Response:
        """Create a bucket, with the built-in origin unless another is named."""
        body = self.read()
        bucket = buckets.create(self.principal.scope, body)
        trail.record_request(self.platform_request, CacheTag.BUCKET_CREATE, bucket=body["name"])
        return self.respond(bucket)

    @extend_schema(summary="Read a bucket")
    def retrieve(self, request: Request, bucket_name: str) -> Response:
        """Return one bucket."""
        return self.respond(buckets.find(self.principal.scope, bucket_name))

    @extend_schema(summary="Change a bucket")
    def partial_update(self, request: Request, bucket_name: str) -> Response:
        """Change who may read a bucket and how it is served."""
        body = self.read()
        bucket = buckets.change(self.principal.scope, bucket_name, body, check=self.require_match)
        trail.record_request(
            self.platform_request, CacheTag.BUCKET_UPDATE, bucket=bucket_name, **body
        )
        return self.respond(bucket)

    @extend_schema(summary="Delete a bucket")
    def destroy(self, request: Request, bucket_name: str) -> Response:
        """Delete an empty bucket."""
        buckets.delete(self.principal.scope, bucket_name)
        trail.record_request(self.platform_request, CacheTag.BUCKET_DELETE, bucket=bucket_name)
        return self.no_content()

    @extend_schema(
        operation_id="cache_bucket_failures_list", summary="List why a bucket's responses failed"
    )
    @action(detail=True)
    def failures(self, request: Request, bucket_name: str) -> Response:
        """List the causes of failed responses in the last week, the last one first."""
        return self.respond({"results": buckets.failures(self.principal.scope, bucket_name)})

    @extend_schema(operation_id="cache_hosts_list", summary="List a bucket's hosts")
    @action(detail=True)
    def hosts(self, request: Request, bucket_name: str) -> Response:
        """List the bucket's proved host names."""
        return self.respond({"results": hosts.all_of(self.principal.scope, bucket_name)})

    @extend_schema(summary="Prove a host")
    @hosts.mapping.post
    def add_host(self, request: Request, bucket_name: str) -> Response:
        """Serve the bucket at a host name that a TXT record in its DNS proves.

        Without the record the answer is 409 `host_not_proved`; its `record` is the one to create.
        """
        host = self.read()["host"]
        row = hosts.prove(self.principal.scope, bucket_name, host, now=timezone.now())
        trail.record_request(
            self.platform_request, CacheTag.BUCKET_HOST_CREATE, bucket=bucket_name, host=row["host"]
        )
        return self.respond(row)

    @extend_schema(operation_id="cache_hosts_retrieve", summary="Read a host")
    @action(detail=True, url_path="hosts/<str:host>")
    def host(self, request: Request, bucket_name: str, host: str) -> Response:
        """Return a host with its DNS records, even before it is proven.

        If the host is not the bucket's, `proved_at` is null. Nothing is looked up.
        """
        return self.respond(hosts.find(self.principal.scope, bucket_name, host))

    @extend_schema(summary="Remove a host from a bucket")
    @host.mapping.delete
    def remove_host(self, request: Request, bucket_name: str, host: str) -> Response:
        """Stop serving the bucket at a host name immediately."""
        hosts.remove(self.principal.scope, bucket_name, host)
        trail.record_request(
            self.platform_request, CacheTag.BUCKET_HOST_DELETE, bucket=bucket_name, host=host[:253]
        )
        return self.no_content()

    @extend_schema(summary="Create a signed link")
    @action(detail=True, methods=["post"], url_path="signed-links")
    def signed_links(self, request: Request, bucket_name: str) -> Response:
        """Sign a URL with which anyone reads an object, or all below a prefix, until it expires.

        It opens objects of a private bucket as well.
        """
        body = self.read()
        made = objects.signed_link(self.principal.scope, bucket_name, body)
        trail.record_request(
            self.platform_request,
            CacheTag.SIGNED_LINK_CREATE,
            bucket=bucket_name,
            opens=body.get("key") or f"{body['prefix']}*",
            expires_in_s=body["expires_in_s"],
        )
        return self.respond(made, headers=NO_STORE)

    @extend_schema(summary="Revoke all signed links of a bucket")
    @signed_links.mapping.delete
    def revoke_signed_links(self, request: Request, bucket_name: str) -> Response:
        """End all signed links of the bucket immediately."""
        buckets.revoke_links(self.principal.scope, bucket_name)
        trail.record_request(self.platform_request, CacheTag.SIGNED_LINK_DELETE, bucket=bucket_name)
        return self.no_content()


class AccessKeyViewSet(CacheResource):
    """The environment's access keys for S3 clients."""

    tag = "Buckets"
    access = {
        "list": needs("buckets", "read"),
        "create": needs("buckets", "create").fresh(),
        "destroy": needs("buckets", "delete").fresh(),
    }
    errors = {
        "create": (CacheLimitReached,),
        "destroy": (AccessKeyNotFound,),
    }
    request_serializers = {"create": AccessKeyRequestSerializer}
    response_serializers = {"list": AccessKeyListSerializer, "create": NewAccessKeySerializer}
    lookup_url_kwarg = "access_key_id"

    @extend_schema(operation_id="cache_access_keys_list", summary="List access keys")
    def list(self, request: Request) -> Response:
        """List the environment's access keys, without their secrets."""
        return self.respond({"results": access_keys.all_of(self.principal.scope)})

    @extend_schema(summary="Create an access key")
    def create(self, request: Request) -> Response:
        """Create a key pair for S3 clients; only this answer holds the secret."""
        body = self.read()
        key = access_keys.create(self.principal, body)
        trail.record_request(
            self.platform_request, CacheTag.ACCESS_KEY_CREATE, access_key=key["access_key_id"]
        )
        return self.respond(key | {"endpoint": settings.CACHE.s3_url}, headers=NO_STORE)

    @extend_schema(summary="Revoke an access key")
    def destroy(self, request: Request, access_key_id: str) -> Response:
        """Revoke a key immediately."""
        access_keys.revoke(self.principal.scope, access_key_id)
        trail.record_request(
            self.platform_request, CacheTag.ACCESS_KEY_DELETE, access_key=access_key_id
        )
        return self.no_content()


class OriginViewSet(CacheResource):
    """The environment's origins."""

    tag = "Buckets"
    access = {
        "list": needs("buckets", "read"),
        "retrieve": needs("buckets", "read"),
        # Credentials are given here, too. A program has no second factor: the scope alone counts.
        "create": needs("buckets", "create").fresh().for_keys("buckets:write"),
        # Buckets that use it would lose access, or read what another account's credentials may
        # read.
        "partial_update": needs("buckets", "update").fresh(),
        "destroy": needs("buckets", "delete"),
    }
    errors = {
        "create": (OriginTaken, CacheLimitReached),
        "retrieve": (OriginNotFound,),
        "partial_update": (OriginNotFound,),
        "destroy": (OriginNotFound, OriginInUse),
    }
    serializer_class = OriginSerializer
    request_serializers = {
        "create": OriginRequestSerializer,
        "partial_update": OriginChangeSerializer,
    }
    response_serializers = {"list": OriginListSerializer}
    versions = {"retrieve": "partial_update"}
    lookup_url_kwarg = "origin_name"

    @extend_schema(operation_id="cache_origins_list", summary="List origins")
    def list(self, request: Request) -> Response:
        """List the environment's origins, without their credentials."""
        return self.respond({"results": origins.all_of(self.principal.scope)})

    @extend_schema(summary="Create an origin")
    def create(self, request: Request) -> Response:
        """Name a place that buckets fetch their objects from."""
        body = self.read()
        origin = origins.create(self.principal, body)
        trail.record_request(self.platform_request, CacheTag.ORIGIN_CREATE, origin=body["name"])
        return self.respond(origin)

    @extend_schema(summary="Read an origin")
    def retrieve(self, request: Request, origin_name: str) -> Response:
        """Return one origin, without its credentials, which are no part of its version."""
        return self.respond(origins.find(self.principal.scope, origin_name))

    @extend_schema(summary="Change an origin")
    def partial_update(self, request: Request, origin_name: str) -> Response:
        """Change an origin, in use or not, or replace its credentials; every brain uses them now.

        The origin's address cannot be changed; create another origin instead.
        """
        body = self.read()
        origin = origins.change(self.principal.scope, origin_name, body, check=self.require_match)
        if "secret" in body:
            body["has_secret"] = bool(body.pop("secret"))
        trail.record_request(
            self.platform_request, CacheTag.ORIGIN_UPDATE, origin=origin_name, **body
        )
        return self.respond(origin)

    @extend_schema(summary="Delete an origin")
    def destroy(self, request: Request, origin_name: str) -> Response:
        """Delete an origin that no bucket uses."""
        origins.delete(self.principal.scope, origin_name)
        trail.record_request(self.platform_request, CacheTag.ORIGIN_DELETE, origin=origin_name)
        return self.no_content()
