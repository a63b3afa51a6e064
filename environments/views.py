"""``/v1/environments``."""

from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from common.api.viewsets import ListAction, PlatformViewSet, RetrieveAction
from common.errors import InvalidRequest
from common.permissions import MEMBER, needs
from common.principals import Scope
from environments import environments, request_activity
from environments.audit_tags import EnvironmentTag
from environments.errors import (
    EnvironmentBuiltIn,
    EnvironmentNotFound,
    EnvironmentNotReady,
    EnvironmentTaken,
    QuotaExceeded,
)
from environments.models import Environment, Organization
from environments.serializers import (
    ContentsSerializer,
    EnvironmentCreateSerializer,
    EnvironmentDetailSerializer,
    EnvironmentSerializer,
    EnvironmentUpdateSerializer,
    OrganizationSerializer,
    OrganizationUpdateSerializer,
    RequestActivitySerializer,
)
from environments.tenant_data import ALL

# If the cache is not installed.
NO_CONTENTS: Final = {"buckets": 0, "objects": 0, "object_bytes": 0, "access_keys": 0}


@extend_schema_view(
    list=extend_schema(
        summary="List environments",
        description="List the environments a session can be opened in, oldest first.",
    ),
    retrieve=extend_schema(
        summary="Read an environment", description="Return one environment by its id."
    ),
)
class EnvironmentViewSet(ListAction, RetrieveAction):
    """The environments of the caller's organization."""

    tag = "Environments"
    access = {
        "list": MEMBER.for_keys("environments:read"),
        "retrieve": MEMBER.for_keys("environments:read"),
        "create": needs("environments", "create"),
        "partial_update": needs("environments", "update"),
        "destroy": needs("environments", "delete").fresh(),
        "contents": needs("environments", "read"),
    }
    errors = {
        "create": (EnvironmentNotFound, EnvironmentTaken, EnvironmentNotReady, QuotaExceeded),
        "partial_update": (EnvironmentTaken,),
        "destroy": (EnvironmentBuiltIn,),
    }
    serializer_class = EnvironmentDetailSerializer
    response_serializers = {"list": EnvironmentSerializer, "contents": ContentsSerializer}
    request_serializers = {
        "create": EnvironmentCreateSerializer,
        "partial_update": EnvironmentUpdateSerializer,
    }
    lookup_field = "slug"
    lookup_url_kwarg = "environment_id"
    not_found = EnvironmentNotFound
    versions = {"retrieve": "partial_update"}
    # The built-in environments come first.
    ordering = "id"

    def get_queryset(self) -> QuerySet[Environment]:
        """Return the organization's environments that are not deleted; for an API key, its own."""
        rows = Environment.objects.all()
        if self.principal.kind == "key":
            rows = rows.filter(pk=self.principal.environment_pk)
        return rows.filter(deleted_at=None)

    @extend_schema(summary="Create an environment")
    def create(self, request: Request) -> Response:
        """Create an environment: empty, or with a copy of another one's data.

        The database of an empty one is created at the first query. A copy is made in the
        background, of the data committed when it began; `database_state` is `ready` when it is
        complete.
        """
        body = self.read()
        name = body.get("name", "")
        slug = body.get("id") or name
        if not slug:
            raise InvalidRequest.for_field("id", "An id or a name is needed.", code="required")
        with transaction.atomic():
            copied = body.get("from", "")
            environment = environments.create(
                self.principal.organization_id, slug, name=name, copy_from=copied
            )
            facts = {"environment": slug} | ({"copied_from": copied} if copied else {})
            trail.record_request(self.platform_request, EnvironmentTag.ENVIRONMENT_CREATE, **facts)
        return self.respond(environment)

    @extend_schema(summary="Rename an environment")
    def partial_update(self, request: Request, environment_id: str) -> Response:
        """Change the name; the id never changes."""
        name = self.read()["name"]
        with transaction.atomic():
            environment = environments.relabel(
                self.principal.organization_id,
                environment_id,
                name=name,
                check=self.require_match,
            )
            trail.record_request(
                self.platform_request, EnvironmentTag.ENVIRONMENT_UPDATE, environment=environment_id
            )
        return self.respond(environment)

    @extend_schema(summary="Delete an environment")
    def destroy(self, request: Request, environment_id: str) -> Response:
        """Delete the environment and end its sessions; its data is dropped after seven days."""
        with transaction.atomic():
            environments.delete(self.principal.organization_id, environment_id, now=timezone.now())
            trail.record_request(
                self.platform_request, EnvironmentTag.ENVIRONMENT_DELETE, environment=environment_id
            )
        return self.no_content()

    @extend_schema(summary="Count an environment's contents")
    @action(detail=True)
    def contents(self, request: Request, environment_id: str) -> Response:
        """Return how many tables, buckets and objects the environment has, and their sizes."""
        environment = self.get_object()
        scope = Scope(self.principal.organization_id, environment.pk)
        found: dict[str, int | None] = dict(NO_CONTENTS)
        for data in ALL:
            found |= data.contents_of(scope, request_id=self.platform_request.request_id)
        return self.respond(found)


class OrganizationViewSet(PlatformViewSet):
    """The caller's organization."""

    tag = "Organization"
    access = {
        "organization": MEMBER,
        "rename": needs("organization", "update"),
        "activity": needs("organization", "read"),
    }
    serializer_class = OrganizationSerializer
    request_serializers = {"rename": OrganizationUpdateSerializer}
    response_serializers = {"activity": RequestActivitySerializer}
    versions = {"organization": "rename"}

    @extend_schema(summary="Read the organization")
    @action(detail=False)
    def organization(self, request: Request) -> Response:
        """Return the organization's name and when it was created."""
        return self.respond(Organization.objects.get(pk=self.principal.organization_id))

    @extend_schema(summary="Rename the organization")
    @organization.mapping.patch
    def rename(self, request: Request) -> Response:
        """Change the name, which mails and the console show; the id never changes."""
        name = self.read()["name"]
        with transaction.atomic():
            rows = Organization.objects.select_for_update()
            organization = rows.get(pk=self.principal.organization_id)
            self.require_match(organization)
            before, organization.name = organization.name, name
            organization.save(update_fields=["name"])
            trail.record_request(
                self.platform_request,
                EnvironmentTag.ORGANIZATION_UPDATE,
                **{"from": before, "to": name},
            )
        return self.respond(organization)

    @extend_schema(operation_id="organization_activity", summary="Read the last day's requests")
    @action(detail=False, url_path="organization/activity")
    def activity(self, request: Request) -> Response:
        """Return the number of API requests in all environments, for each of the last 24 hours.

        Includes requests of members (also in the console), API keys and development tokens;
        requests with refused credentials belong to no organization. The counts are some seconds
        old.
        """
        since = request_activity.first_hour(now=timezone.now())
        hours = request_activity.hours(self.principal.organization_id, since=since)
        names = ("requests", "refused", "failed")
        sums = {name: sum(getattr(row, name) for row in hours) for name in names}
        return self.respond({"since": since, "hours": hours} | sums)
