"""``/v1/sql/queries``."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common import etags
from common.api.views import StrictSerializer
from common.api.viewsets import ListAction, RetrieveAction
from common.errors import InvalidRequest
from common.openapi import shapes
from common.permissions import needs
from sqlgateway.errors import (
    SavedQueryChanged,
    SavedQueryNotFound,
    SavedQueryTaken,
    TooManySavedQueries,
)
from sqlgateway.models import SavedQuery
from sqlgateway.run import saved_queries
from sqlgateway.run.saved_queries import MAX_TEXT


class SavedQuerySerializer(serializers.Serializer[SavedQuery]):
    """A saved query."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    query = serializers.CharField(source="text")
    version = serializers.IntegerField(help_text="Name it in a change; it counts the changes.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    updated_by = serializers.CharField(help_text="Who saved this version.")


class SavedQueryCreateSerializer(StrictSerializer):
    """A text and its name, which no other saved query of the organization has."""

    name = serializers.CharField(max_length=100)
    query = serializers.CharField(max_length=MAX_TEXT, trim_whitespace=False)


class SavedQueryUpdateSerializer(StrictSerializer):
    """What changes, and the version that it changes."""

    version = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, required=False, help_text="Needed without `If-Match`."
    )
    name = serializers.CharField(max_length=100, required=False)
    query = serializers.CharField(max_length=MAX_TEXT, trim_whitespace=False, required=False)


@extend_schema_view(
    list=extend_schema(
        operation_id="saved_queries_list",
        summary="List saved queries",
        description="List the organization's saved queries, newest first.",
    ),
    retrieve=extend_schema(
        operation_id="saved_queries_read",
        summary="Read a saved query",
        description="Return one saved query by its id.",
    ),
)
class SavedQueryViewSet(ListAction, RetrieveAction):
    """The saved queries of the caller's organization."""

    tag = "SQL"
    # Without API keys, which belong to one environment: saved queries are used in all of them.
    access = {
        "list": needs("sql", "read").without_keys(),
        "retrieve": needs("sql", "read").without_keys(),
        "create": needs("sql", "create").without_keys(),
        "partial_update": needs("sql", "update").without_keys(),
        "destroy": needs("sql", "delete").without_keys(),
    }
    errors = {
        "create": (SavedQueryTaken, TooManySavedQueries),
        "partial_update": (SavedQueryTaken, SavedQueryChanged),
    }
    serializer_class = SavedQuerySerializer
    request_serializers = {
        "create": SavedQueryCreateSerializer,
        "partial_update": SavedQueryUpdateSerializer,
    }
    lookup_url_kwarg = "query_id"
    path_schemas = {"query_id": shapes.UUID}
    not_found = SavedQueryNotFound
    versions = {"retrieve": "partial_update"}

    def get_queryset(self) -> QuerySet[SavedQuery]:
        """Return the organization's saved queries."""
        return saved_queries.of_organization(self.principal.organization_id)

    @extend_schema(operation_id="saved_queries_create", summary="Save a query")
    def create(self, request: Request) -> Response:
        """Save a text for the members of the organization, who find it in all environments."""
        body = self.read()
        saved = saved_queries.save(
            self.platform_request, self.principal, name=body["name"], text=body["query"]
        )
        return self.respond(saved)

    @extend_schema(operation_id="saved_queries_update", summary="Change a saved query")
    def partial_update(self, request: Request, query_id: str) -> Response:
        """Change the name or the text; `version` or `If-Match` must name the present version."""
        body = self.read()
        if "version" not in body and etags.HEADER not in request.headers:
            message = "This or the header If-Match is needed."
            raise InvalidRequest.for_field("version", message, code="required")
        names = {"name": "name", "query": "text"}
        to: dict[str, Any] = {names[key]: body[key] for key in names if key in body}
        saved = saved_queries.change(
            self.platform_request,
            self.principal,
            self.get_object(),
            version=body.get("version"),
            check=self.require_match,
            **to,
        )
        return self.respond(saved)

    @extend_schema(operation_id="saved_queries_delete", summary="Delete a saved query")
    def destroy(self, request: Request, query_id: str) -> Response:
        """Delete it for everyone in the organization."""
        saved_queries.delete(self.platform_request, self.get_object())
        return self.no_content()
