"""``/v1/cache``: status, metrics, purge and worker nodes."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.openapi import shapes
from common.permissions import MEMBER, needs
from edgecache.api import client, cluster_status, metrics_history, nodes, objects
from edgecache.api.audit_tags import CacheTag
from edgecache.api.errors import (
    BucketNotFound,
    CacheLimitReached,
    CacheUnavailable,
    NodeEndpointTaken,
    NodeNotFound,
)
from edgecache.api.serializers import (
    CacheMetricsSerializer,
    CacheStatusSerializer,
    HistoryQuerySerializer,
    HistorySerializer,
    NodeAuditsSerializer,
    NodeListSerializer,
    NodeMetricsSerializer,
    NodeRequestSerializer,
    NodeSerializer,
    PurgeRequestSerializer,
    PurgeSerializer,
    RegistrationSerializer,
    nothing_of,
)


class SwitchedOff(Exception):
    """The cache is switched off: the operation does nothing. body: what was sent, validated."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.body = body


class CacheResource(PlatformViewSet):
    """A resource of the cache; while the cache is switched off its operations do nothing.

    They validate the request and return empty values. Lists are not paginated, because the limits
    of an environment and the number of nodes keep them short.
    """

    pagination_class = None
    shared_errors = (CacheUnavailable,)
    # They go on while the cache is switched off.
    actions_without_brain: ClassVar[frozenset[str]] = frozenset()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Let no operation begin while the cache is switched off."""
        super().initial(request, *args, **kwargs)
        if not client.is_enabled() and self.action not in self.actions_without_brain:
            raise SwitchedOff(self.read() if self.action in self.request_serializers else {})

    def handle_exception(self, exc: Exception) -> Response:
        """Answer an operation that has not begun."""
        if not isinstance(exc, SwitchedOff):
            return super().handle_exception(exc)
        serializer = self.response_serializer()
        if serializer is None:
            return self.no_content()
        return self.respond(nothing_of(serializer) | exc.body)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Mark the answers of a cache that is switched off."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        if not client.is_enabled():
            answer["X-Cache-Disabled"] = "1"
        return answer


class CacheViewSet(CacheResource):
    """The cache as a whole."""

    tag = "Cache"
    access = {
        "status": MEMBER.for_keys("nodes:read"),
        "metrics": MEMBER.for_keys("nodes:read"),
        "history": MEMBER.for_keys("nodes:read"),
        "purge": needs("objects", "delete"),
    }
    actions_without_brain = frozenset({"history"})
    errors = {"purge": (BucketNotFound,)}
    query_serializers = {"history": HistoryQuerySerializer}
    request_serializers = {"purge": PurgeRequestSerializer}
    response_serializers = {
        "status": CacheStatusSerializer,
        "metrics": CacheMetricsSerializer,
        "history": HistorySerializer,
        "purge": PurgeSerializer,
    }

    @extend_schema(summary="Read the cache's status")
    @action(detail=False)
    def status(self, request: Request) -> Response:
        """Return whether the brain answers, and how much the nodes hold."""
        return self.respond(cluster_status.status())

    @extend_schema(summary="Read the cache's metrics")
    @action(detail=False)
    def metrics(self, request: Request) -> Response:
        """Return the counters of the whole cache since it was installed."""
        return self.respond(cluster_status.cluster_metrics())

    @extend_schema(summary="Read the metrics over time")
    @action(detail=False, url_path="metrics/history")
    def history(self, request: Request) -> Response:
        """Return samples of the latest hours, at most some hundreds, oldest first."""
        return self.respond(metrics_history.latest(**self.read_query()))

    @extend_schema(summary="Purge objects")
    @action(detail=False, methods=["post"])
    def purge(self, request: Request) -> Response:
        """Purge keys, a prefix, tags or the whole environment; with ``preview`` only count."""
        body = self.read()
        counts = objects.purge(self.principal.scope, body)
        if not body.get("preview"):
            trail.record_request(
                self.platform_request, CacheTag.CACHE_PURGE, **dict[str, Any](counts)
            )
        return self.respond(counts)


class NodeViewSet(CacheResource):
    """Worker nodes."""

    tag = "Cache nodes"
    access = {
        "list": MEMBER.for_keys("nodes:read"),
        "retrieve": MEMBER.for_keys("nodes:read"),
        "register": needs("nodes", "create"),
        "destroy": needs("nodes", "delete"),
        "metrics": needs("nodes", "read"),
        "audits": needs("nodes", "read"),
    }
    errors = {
        "retrieve": (NodeNotFound,),
        "register": (CacheLimitReached, NodeEndpointTaken),
        "destroy": (NodeNotFound,),
        "metrics": (NodeNotFound,),
        "audits": (NodeNotFound,),
    }
    serializer_class = NodeSerializer
    request_serializers = {"register": NodeRequestSerializer}
    response_serializers = {
        "list": NodeListSerializer,
        "register": RegistrationSerializer,
        "metrics": NodeMetricsSerializer,
        "audits": NodeAuditsSerializer,
    }
    success_statuses = {"register": status.HTTP_201_CREATED}
    lookup_url_kwarg = "node_id"
    path_schemas = {"node_id": shapes.UUID}

    @extend_schema(operation_id="cache_nodes_list", summary="List nodes")
    def list(self, request: Request) -> Response:
        """List all nodes; those of other organizations with their public fields only."""
        return self.respond({"nodes": nodes.all_seen_by(self.principal.organization_id)})

    @extend_schema(summary="Register a node")
    @action(detail=False, methods=["post"])
    def register(self, request: Request) -> Response:
        """Register a worker of the organization; it serves once the platform has approved it."""
        node = nodes.register(self.principal, self.read())
        trail.record_request(self.platform_request, CacheTag.NODE_CREATE, node_id=node["node_id"])
        return self.respond(node, headers=NO_STORE)

    @extend_schema(summary="Read a node")
    def retrieve(self, request: Request, node_id: str) -> Response:
        """Return one node; another organization's with its public fields only."""
        return self.respond(nodes.find(self.principal.organization_id, node_id))

    @extend_schema(summary="Remove a node")
    def destroy(self, request: Request, node_id: str) -> Response:
        """Deregister an own node immediately; its objects are moved in the background."""
        nodes.remove(self.principal.organization_id, node_id)
        trail.record_request(self.platform_request, CacheTag.NODE_DELETE, node_id=node_id)
        return self.no_content()

    @extend_schema(summary="Read a node's metrics")
    @action(detail=True)
    def metrics(self, request: Request, node_id: str) -> Response:
        """Return the metrics of a node of the organization."""
        return self.respond(nodes.metrics(self.principal.organization_id, node_id))

    @extend_schema(summary="Read the audits of a node")
    @action(detail=True)
    def audits(self, request: Request, node_id: str) -> Response:
        """Return what the platform found when it read objects from an own node as a client does."""
        return self.respond(nodes.audits(self.principal.organization_id, node_id))
