"""``/v1/environments``."""

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from environments import lifecycle
from environments.models import Environment
from environments.serializers import (
    EnvironmentCreateSerializer,
    EnvironmentSerializer,
    EnvironmentUpdateSerializer,
)
from platform_site.lib import audit
from platform_site.lib.api import ApiView, CursorPages
from platform_site.lib.errors import InvalidRequest
from platform_site.lib.permissions import MEMBER, needs


class EnvironmentPages(CursorPages):
    """Oldest first, so that the built-in ones lead."""

    ordering = "id"


class EnvironmentsView(ApiView):
    """The environments of the caller's organization."""

    access = {"GET": MEMBER, "POST": needs("environments", "create")}

    @extend_schema(
        operation_id="environments_list",
        summary="List environments",
        parameters=EnvironmentPages.parameters(),
        responses=EnvironmentPages.schema_of(EnvironmentSerializer),
    )
    def get(self, request: Request) -> Response:
        """List the environments a session can be opened in."""
        rows = Environment.scoped.within_organization(self.principal.organization_id)
        return EnvironmentPages.respond(
            self, rows.filter(deleted_at=None), serializer=EnvironmentSerializer
        )

    @extend_schema(
        summary="Create an environment",
        request=EnvironmentCreateSerializer,
        responses={201: EnvironmentSerializer},
    )
    def post(self, request: Request) -> Response:
        """Add an environment, empty; its database is made at the first query."""
        body = self.read(EnvironmentCreateSerializer)
        name = body.get("name", "")
        slug = body.get("id") or name
        if not slug:
            raise InvalidRequest.for_field("id", "An id or a name is needed.", code="required")
        with transaction.atomic():
            environment = lifecycle.create(self.principal.organization_id, slug, name=name)
            audit.record(self.platform_request, "api:environment:create", environment=slug)
        return Response(EnvironmentSerializer(environment).data, status=status.HTTP_201_CREATED)


class EnvironmentView(ApiView):
    """One environment of the caller's organization."""

    access = {
        "GET": MEMBER,
        "PATCH": needs("environments", "update"),
        "DELETE": needs("environments", "delete").fresh(),
    }

    @extend_schema(summary="Read an environment", responses=EnvironmentSerializer)
    def get(self, request: Request, environment_id: str) -> Response:
        """Give one environment by its id."""
        environment = lifecycle.by_slug(self.principal.organization_id, environment_id)
        return Response(EnvironmentSerializer(environment).data)

    @extend_schema(
        summary="Rename an environment",
        request=EnvironmentUpdateSerializer,
        responses=EnvironmentSerializer,
    )
    def patch(self, request: Request, environment_id: str) -> Response:
        """Change the label; the id never changes."""
        body = self.read(EnvironmentUpdateSerializer)
        with transaction.atomic():
            environment = lifecycle.relabel(
                self.principal.organization_id, environment_id, name=body["name"]
            )
            audit.record(
                self.platform_request, "api:environment:update", environment=environment_id
            )
        return Response(EnvironmentSerializer(environment).data)

    @extend_schema(summary="Delete an environment", responses={204: None})
    def delete(self, request: Request, environment_id: str) -> Response:
        """End the environment's sessions at once; its data is dropped after seven days."""
        with transaction.atomic():
            lifecycle.delete(self.principal.organization_id, environment_id, now=timezone.now())
            audit.record(
                self.platform_request, "api:environment:delete", environment=environment_id
            )
        return Response(status=status.HTTP_204_NO_CONTENT)
