"""Export and deletion of a whole organization: ``/v1/organization``."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import FileResponse, HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from common.api.views import RENDERER
from common.api.viewsets import ListAction, PlatformViewSet, RetrieveAction
from common.openapi import shapes
from common.permissions import needs
from environments.serializers import OrganizationSerializer
from organizations import deletion, exports, tasks
from organizations.audit_tags import OrganizationTag
from organizations.errors import (
    DeletionBegan,
    DeletionBlocked,
    DeletionNotFound,
    DeletionRequested,
    ExportGone,
    ExportNotFound,
    ExportsFull,
    ExportUnderWay,
    NameMismatch,
    RequestedTooOften,
    TooManyExports,
)
from organizations.models import OrganizationExport
from organizations.serializers import DeletionSerializer, ExportSerializer

CONTENT_TYPE = "application/zip"


@extend_schema_view(
    list=extend_schema(
        summary="List exports", description="List the organization's exports, the newest first."
    ),
    retrieve=extend_schema(
        summary="Read an export", description="Return how far an export has come."
    ),
)
class OrganizationExportViewSet(ListAction, RetrieveAction):
    """Archives of all data of the caller's organization, for its admins."""

    tag = "Organization"
    # The list only shows who requested exports and when; the archive requires a recent proof.
    access = {
        "list": needs("organization", "update"),
        "retrieve": needs("organization", "update"),
        "create": needs("organization", "delete").fresh(),
        "archive": needs("organization", "delete").fresh(),
        "destroy": needs("organization", "delete"),
    }
    errors = {
        "create": (ExportUnderWay, TooManyExports, RequestedTooOften, ExportsFull),
        "archive": (ExportGone,),
        "destroy": (ExportUnderWay,),
    }
    serializer_class = ExportSerializer
    lookup_url_kwarg = "export_id"
    path_schemas = {"export_id": shapes.UUID}
    not_found = ExportNotFound

    def get_queryset(self) -> QuerySet[OrganizationExport]:
        """Return the organization's exports."""
        return OrganizationExport.objects.all()

    def perform_content_negotiation(self, request: Request, force: Any = False) -> Any:
        """Ignore the Accept header for the archive, which has one format."""
        if self.action == "archive":
            return RENDERER, RENDERER.media_type
        return super().perform_content_negotiation(request, force)

    @extend_schema(summary="Export the organization")
    def create(self, request: Request) -> Response:
        """Request an archive of all data of the organization, one at a time.

        Members, environments, audit trail, policy, each database as pg_dump writes it, buckets with
        lists of their objects, usage, ledger and payouts; no secrets. All admins get a mail.
        """
        who, now = self.principal, timezone.now()
        deletion.check_rate_limit("organization export", who.organization_id, now=now)
        with transaction.atomic():
            row = exports.request(who.organization_id, by=who.audit_name, now=now)
            tasks.queue_export(row)
            trail.record_request(
                self.platform_request, OrganizationTag.ORGANIZATION_EXPORT, export=str(row.pk)
            )
        return self.respond(row)

    @extend_schema(
        summary="Download an export", responses={(200, CONTENT_TYPE): OpenApiTypes.BINARY}
    )
    @action(detail=True, url_path="archive")
    def archive(self, request: Request, export_id: str) -> HttpResponseBase:
        """Return the archive, a zip file."""
        row = exports.find(self.principal.organization_id, export_id)
        path = exports.file_of(row, now=timezone.now())
        trail.record_request(
            self.platform_request, OrganizationTag.ORGANIZATION_DOWNLOAD, export=str(row.pk)
        )
        return FileResponse(
            path.open("rb"),
            as_attachment=True,
            filename=f"organization-{row.organization_id}-{row.requested_at:%Y-%m-%d}.zip",
            content_type=CONTENT_TYPE,
            headers={"Cache-Control": "no-store"},
        )

    @extend_schema(summary="Delete an export")
    def destroy(self, request: Request, export_id: str) -> Response:
        """Delete an archive before it expires; one that is being written cannot be deleted."""
        exports.remove(exports.find(self.principal.organization_id, export_id))
        trail.record_request(
            self.platform_request, OrganizationTag.ORGANIZATION_DELETE_EXPORT, export=export_id
        )
        return self.no_content()


class OrganizationDeletionViewSet(PlatformViewSet):
    """The deletion of the caller's organization."""

    tag = "Organization"
    access = {
        "request_deletion": needs("organization", "delete").fresh(),
        # Without a fresh proof, so that any admin can quickly stop a deletion that an attacker
        # requested.
        "cancel_deletion": needs("organization", "delete"),
    }
    errors = {
        "request_deletion": (NameMismatch, DeletionRequested, DeletionBlocked, RequestedTooOften),
        "cancel_deletion": (DeletionNotFound, DeletionBegan),
    }
    serializer_class = OrganizationSerializer
    request_serializers = {"request_deletion": DeletionSerializer}
    success_statuses = {"request_deletion": 201}

    @extend_schema(summary="Delete the organization")
    @action(detail=False, methods=["post"], url_path="deletion")
    def request_deletion(self, request: Request) -> Response:
        """Request the deletion of the organization after a delay, seven days by default.

        Until then nothing changes, and any admin can cancel; all of them get a mail. Then members,
        environments with their databases, buckets, objects and keys, and cache nodes are deleted
        permanently. Payments stay in the ledger, and the audit trail for its retention. Pending
        payouts and earnings that can be paid out have to be settled first.
        """
        who, now = self.principal, timezone.now()
        name = self.read()["name"]
        deletion.check_rate_limit("organization deletion", who.organization_id, now=now)
        with transaction.atomic():
            row = deletion.request(who.organization_id, name=name, by=who.audit_name, now=now)
            trail.record_request(
                self.platform_request,
                OrganizationTag.ORGANIZATION_DELETE,
                due_at=row.deletion_due_at.isoformat() if row.deletion_due_at else None,
            )
        return self.respond(row)

    @extend_schema(summary="Keep the organization")
    @request_deletion.mapping.delete
    def cancel_deletion(self, request: Request) -> Response:
        """Cancel the deletion; all admins get a mail."""
        who = self.principal
        with transaction.atomic():
            row = deletion.cancel(who.organization_id, by=who.audit_name)
            trail.record_request(self.platform_request, OrganizationTag.ORGANIZATION_KEEP)
        return self.respond(row)
