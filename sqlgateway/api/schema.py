"""``/v1/sql/schema`` and ``/v1/environments/{environment_id}/extensions``."""

import orjson
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.permissions import database_role, needs
from common.principals import Scope
from environments import environments
from environments.errors import EnvironmentNotFound
from sqlgateway.api.negotiation import STATEMENT_ERRORS
from sqlgateway.api.schema_serializers import (
    ExtensionInstallSerializer,
    ExtensionListSerializer,
    ExtensionSerializer,
    SchemaQuerySerializer,
    SchemaSerializer,
)
from sqlgateway.audit_tags import SqlTag
from sqlgateway.errors import ExtensionInUse, ExtensionNotFound
from sqlgateway.schema import catalogue, extensions


class SchemaViewSet(PlatformViewSet):
    """What the caller's database holds."""

    tag = "SQL"
    access = {"list": needs("sql", "read")}
    errors = {"list": STATEMENT_ERRORS}
    serializer_class = SchemaSerializer
    query_serializers = {"list": SchemaQuerySerializer}
    pagination_class = None

    @extend_schema(operation_id="sql_schema", summary="Read the schema")
    def list(self, request: Request) -> HttpResponse:
        """Return schemas, tables, columns, keys, indexes, views, functions, types and sizes.

        One answer for consoles and code generators, of one moment, with what the caller's role may
        see.
        """
        found = catalogue.read_schema(
            self.principal.scope,
            database_role(self.principal),
            schema=self.read_query().get("schema"),
            request_id=self.platform_request.request_id,
        )
        # A serializer would take longer than PostgreSQL if there are thousands of tables.
        return HttpResponse(orjson.dumps(found), content_type="application/json", headers=NO_STORE)


class ExtensionViewSet(PlatformViewSet):
    """Extensions of PostgreSQL in one environment's database."""

    tag = "SQL"
    access = {
        "list": needs("schema", "read"),
        "create": needs("schema", "create"),
        "destroy": needs("schema", "delete"),
    }
    errors = {
        "list": (*STATEMENT_ERRORS, EnvironmentNotFound),
        "create": (*STATEMENT_ERRORS, EnvironmentNotFound, ExtensionNotFound),
        "destroy": (*STATEMENT_ERRORS, EnvironmentNotFound, ExtensionNotFound, ExtensionInUse),
    }
    serializer_class = ExtensionSerializer
    request_serializers = {"create": ExtensionInstallSerializer}
    response_serializers = {"list": ExtensionListSerializer}
    pagination_class = None
    lookup_url_kwarg = "extension_name"

    @extend_schema(summary="List extensions")
    def list(self, request: Request, environment_id: str) -> Response:
        """Return the extensions that can be installed, and which of them are."""
        return self.respond(
            {"results": extensions.available(self._scope(environment_id), **self._ids())}
        )

    @extend_schema(summary="Install an extension")
    def create(self, request: Request, environment_id: str) -> Response:
        """Install an extension in the environment's database; nothing changes if it is there."""
        name = self.read()["name"]
        installed = extensions.install(self._scope(environment_id), name, **self._ids())
        trail.record_request(
            self.platform_request,
            SqlTag.EXTENSION_INSTALL,
            environment=environment_id,
            extension=name,
        )
        return self.respond(installed)

    @extend_schema(summary="Remove an extension")
    def destroy(self, request: Request, environment_id: str, extension_name: str) -> Response:
        """Remove an extension on which nothing in the database depends."""
        extensions.remove(self._scope(environment_id), extension_name, **self._ids())
        trail.record_request(
            self.platform_request,
            SqlTag.EXTENSION_REMOVE,
            environment=environment_id,
            extension=extension_name,
        )
        return self.no_content()

    def _scope(self, environment_id: str) -> Scope:
        """Return the scope of the path's environment, which the caller's organization owns."""
        organization_id = self.principal.organization_id
        return Scope(organization_id, environments.by_slug(organization_id, environment_id).pk)

    def _ids(self) -> dict[str, str]:
        return {"request_id": self.platform_request.request_id}
