"""``/v1/organization/exports``."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import FileResponse, HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit import audit
from common.api.views import RENDERER
from common.api.viewsets import ListAction, RetrieveAction
from common.permissions import needs
from organizations import deletion, exports, tasks
from organizations.audit_tags import OrganizationTag
from organizations.errors import ExportNotFound
from organizations.models_exports import OrganizationExport
from organizations.organization_serializers import ExportSerializer

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

    # The list only shows who requested exports and when; the archive requires a recent proof.
    access = {
        "list": needs("organization", "update"),
        "retrieve": needs("organization", "update"),
        "create": needs("organization", "delete").fresh(),
        "archive": needs("organization", "delete").fresh(),
        "destroy": needs("organization", "delete"),
    }
    serializer_class = ExportSerializer
    lookup_url_kwarg = "export_id"
    not_found = ExportNotFound

    def get_queryset(self) -> QuerySet[OrganizationExport]:
        """Return the organization's exports."""
        return OrganizationExport.scoped.within_organization(self.principal.organization_id)

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
            audit.record_request(
                self.platform_request, OrganizationTag.ORGANIZATION_EXPORT, export=str(row.pk)
            )
        return self.respond(row)

    @extend_schema(summary="Download an export")
    @action(detail=True, url_path="archive")
    def archive(self, request: Request, export_id: str) -> HttpResponseBase:
        """Return the archive, a zip file."""
        row = exports.find(self.principal.organization_id, export_id)
        path = exports.file_of(row, now=timezone.now())
        audit.record_request(
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
        audit.record_request(
            self.platform_request, OrganizationTag.ORGANIZATION_DELETE_EXPORT, export=export_id
        )
        return self.no_content()
