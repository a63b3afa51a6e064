"""``/v1/audit``."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view

from audit import trail
from audit.models import AuditEvent
from audit.serializers import AuditEventSerializer, AuditFilterSerializer
from common.api.viewsets import ListAction
from common.permissions import needs


@extend_schema_view(
    list=extend_schema(
        summary="Read the audit trail",
        description="List what happened in the organization, in all of its environments, "
        "newest first.",
    ),
)
class AuditEventViewSet(ListAction):
    """The audit trail of the caller's organization."""

    access = {"list": needs("audit", "read")}
    serializer_class = AuditEventSerializer
    query_serializers = {"list": AuditFilterSerializer}

    def get_queryset(self) -> QuerySet[AuditEvent]:
        """Return the organization's events that match the filters."""
        events = trail.of_organization(self.principal.organization_id)
        return trail.matching(events, self.read_query())
