"""``/v1/cache/buckets/{name}/hosts``: host names under which a bucket answers plain HTTP."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from edgecache.api import hosts
from edgecache.api.holdings import Row
from edgecache.api.serializers import HostRequestSerializer, HostSerializer, listing_of
from edgecache.api.views import CacheView
from platform_site.lib import audit
from platform_site.lib.permissions import needs

HOSTS = listing_of(HostSerializer)


class HostsView(CacheView):
    """A bucket's hosts."""

    access = {"GET": needs("buckets", "read"), "POST": needs("buckets", "create")}

    @extend_schema(
        operation_id="cache_hosts_list", summary="List a bucket's hosts", responses=HOSTS
    )
    def get(self, request: Request, bucket_name: str) -> Response:
        """List the hosts that were proved, by name."""
        none: list[Row] = []
        rows = self.when_on(lambda: hosts.of(self.principal.scope, bucket_name), none)
        return Response(HOSTS({"results": rows}).data)

    @extend_schema(
        summary="Prove a host", request=HostRequestSerializer, responses={201: HostSerializer}
    )
    def post(self, request: Request, bucket_name: str) -> Response:
        """Serve the bucket at a host of one's own, proved by a TXT record in its DNS.

        Without the record the answer is 409 `host_not_proved`, whose `record` is the one to make.
        """
        wanted = self.read(HostRequestSerializer)["host"]
        row = self.when_on(
            lambda: hosts.prove(self.principal.scope, bucket_name, wanted, now=timezone.now()),
            {"host": wanted, "proved_at": None, "gone_since": None},
        )
        audit.record(
            self.platform_request, "api:bucket_host:create", bucket=bucket_name, host=row["host"]
        )
        return Response(HostSerializer(row).data, status=status.HTTP_201_CREATED)


class HostView(CacheView):
    """One host of a bucket."""

    access = {"DELETE": needs("buckets", "delete")}

    @extend_schema(summary="Take a host from a bucket", responses={204: None})
    def delete(self, request: Request, bucket_name: str, host: str) -> Response:
        """Serve the bucket there no longer, from now on."""
        self.when_on(lambda: hosts.remove(self.principal.scope, bucket_name, host), None)
        audit.record(
            self.platform_request, "api:bucket_host:delete", bucket=bucket_name, host=host[:253]
        )
        return Response(status=status.HTTP_204_NO_CONTENT)
