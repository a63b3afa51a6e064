"""``/v1/audit``."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit import trail
from accounts.audit.serializers import AuditEventSerializer, AuditFilterSerializer
from platform_site.lib.api import ApiView, CursorPages
from platform_site.lib.permissions import needs


class AuditPages(CursorPages):
    """Newest first."""

    ordering = "-id"


class AuditView(ApiView):
    """The audit trail of the caller's organization."""

    access = {"GET": needs("audit", "read")}

    @extend_schema(
        operation_id="audit_list",
        summary="Read the audit trail",
        parameters=[*AuditPages.parameters(), AuditFilterSerializer],
        responses=AuditPages.schema_of(AuditEventSerializer),
    )
    def get(self, request: Request) -> Response:
        """List what happened in the organization, in all of its environments, newest first."""
        wanted = self.read_query(AuditFilterSerializer)
        events = trail.of_organization(self.principal.organization_id)
        return AuditPages.respond(
            self, trail.matching(events, wanted), serializer=AuditEventSerializer
        )
