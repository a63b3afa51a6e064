"""``/v1/cache``: status, metrics, nodes, purge."""

from collections.abc import Callable
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from edgecache.api import client, cluster_status, holdings, metrics_history, nodes
from edgecache.api.serializers import (
    CacheMetricsSerializer,
    CacheStatusSerializer,
    HistoryQuerySerializer,
    HistorySerializer,
    NodeListSerializer,
    NodeMetricsSerializer,
    NodeRequestSerializer,
    NodeSerializer,
    PurgeRequestSerializer,
    PurgeSerializer,
    RegistrationSerializer,
)
from platform_site.lib import audit
from platform_site.lib.api import NO_STORE, ApiView
from platform_site.lib.permissions import MEMBER, needs

T = TypeVar("T")


class CacheView(ApiView):
    """A view of the cache; while that is switched off its answers say so."""

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Mark the answers of a cache that is switched off."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        if not client.is_enabled():
            answer["X-Cache-Disabled"] = "1"
        return answer

    def when_on(self, deed: Callable[[], T], otherwise: T) -> T:
        """Do it; while the cache is switched off give what stands for its outcome."""
        return deed() if client.is_enabled() else otherwise


class StatusView(CacheView):
    """The cache's status."""

    access = {"GET": MEMBER}

    @extend_schema(summary="Read the cache's status", responses=CacheStatusSerializer)
    def get(self, request: Request) -> Response:
        """Say whether the brain answers, and how much the nodes hold."""
        return Response(CacheStatusSerializer(cluster_status.status()).data)


class MetricsView(CacheView):
    """The whole cache's metrics."""

    access = {"GET": MEMBER}

    @extend_schema(summary="Read the cache's metrics", responses=CacheMetricsSerializer)
    def get(self, request: Request) -> Response:
        """Give what the whole cache did since it began to count."""
        return Response(CacheMetricsSerializer(cluster_status.cluster_metrics()).data)


class HistoryView(CacheView):
    """The metrics over time."""

    access = {"GET": MEMBER}

    @extend_schema(
        summary="Read the metrics over time",
        parameters=[OpenApiParameter("hours", int, description="How far back; 24 by default.")],
        responses=HistorySerializer,
    )
    def get(self, request: Request) -> Response:
        """Give samples of the latest hours, at most some hundreds, oldest first."""
        hours = self.read_query(HistoryQuerySerializer)["hours"]
        return Response(HistorySerializer(metrics_history.latest(hours=hours)).data)


class NodesView(CacheView):
    """All registered worker nodes."""

    access = {"GET": MEMBER}

    @extend_schema(
        operation_id="cache_nodes_list", summary="List nodes", responses=NodeListSerializer
    )
    def get(self, request: Request) -> Response:
        """List all nodes; of other organizations' the public fields."""
        listed = nodes.everyones(self.principal.organization_id)
        return Response(NodeListSerializer({"nodes": listed}).data)


class RegisterNodeView(CacheView):
    """Registration of a worker node."""

    access = {"POST": needs("nodes", "create")}

    @extend_schema(
        summary="Register a node",
        request=NodeRequestSerializer,
        responses={201: RegistrationSerializer},
    )
    def post(self, request: Request) -> Response:
        """Register a worker of one's own; it serves once the platform has approved it."""
        wanted = self.read(NodeRequestSerializer)
        made = nodes.register(self.principal.organization_id, wanted)
        audit.record(self.platform_request, "api:node:create", node_id=made["node_id"])
        return Response(
            RegistrationSerializer(made).data, status=status.HTTP_201_CREATED, headers=NO_STORE
        )


class NodeView(CacheView):
    """One node."""

    access = {"GET": MEMBER, "DELETE": needs("nodes", "delete")}

    @extend_schema(summary="Read a node", responses=NodeSerializer)
    def get(self, request: Request, node_id: str) -> Response:
        """Give one node; of another organization's the public fields."""
        return Response(NodeSerializer(nodes.one(self.principal.organization_id, node_id)).data)

    @extend_schema(summary="Remove a node", responses={204: None})
    def delete(self, request: Request, node_id: str) -> Response:
        """Take an own node out at once; what it holds is moved away behind the answer."""
        nodes.remove(self.principal.organization_id, node_id)
        audit.record(self.platform_request, "api:node:delete", node_id=node_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class NodeMetricsView(CacheView):
    """One node's metrics."""

    access = {"GET": needs("nodes", "read")}

    @extend_schema(summary="Read a node's metrics", responses=NodeMetricsSerializer)
    def get(self, request: Request, node_id: str) -> Response:
        """Give the metrics of an own node."""
        return Response(
            NodeMetricsSerializer(nodes.metrics(self.principal.organization_id, node_id)).data
        )


class PurgeView(CacheView):
    """Taking objects out of the cache."""

    access = {"POST": needs("objects", "delete")}

    @extend_schema(
        summary="Purge objects", request=PurgeRequestSerializer, responses=PurgeSerializer
    )
    def post(self, request: Request) -> Response:
        """Purge keys, a prefix or all of the environment; with ``preview`` only count."""
        wanted = self.read(PurgeRequestSerializer)
        done = holdings.purge(self.principal.scope, wanted)
        if not wanted.get("preview"):
            audit.record(self.platform_request, "api:cache:purge", **done)
        return Response(PurgeSerializer(done).data)
