"""``/v1/cache/quarantines``: quarantined nodes of the caller's organization, and appeals."""

from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from billing import quarantines
from billing.api.serializers import AppealSerializer, QuarantineSerializer
from billing.api.views import BillingResource
from billing.audit_tags import BillingTag
from billing.errors import QuarantineNotFound
from billing.models.quarantines import Quarantine
from common.api.views import CursorPages
from common.api.viewsets import ListAction, RetrieveAction
from common.permissions import needs


@extend_schema_view(
    list=extend_schema(summary="List quarantines"),
    retrieve=extend_schema(summary="Read a quarantine"),
)
class QuarantineViewSet(ListAction, RetrieveAction, BillingResource):
    """Quarantined nodes of the organization."""

    access = {
        "list": needs("billing", "read"),
        "retrieve": needs("billing", "read"),
        "appeal": needs("billing", "update"),
    }
    serializer_class = QuarantineSerializer
    request_serializers = {"appeal": AppealSerializer}
    lookup_url_kwarg = "quarantine_id"
    not_found = QuarantineNotFound
    pagination_class = CursorPages

    def get_queryset(self) -> QuerySet[Quarantine]:
        """Return the organization's quarantines."""
        return Quarantine.objects.filter(organization_id=self.organization_id)

    @extend_schema(summary="Appeal against a quarantine")
    @action(detail=True, methods=["post"])
    def appeal(self, request: Request, quarantine_id: str) -> Response:
        """Appeal once against a quarantine and its forfeiture; staff decides."""
        known: Quarantine = self.get_object()
        text = self.read()["text"]
        row = quarantines.appeal(
            self.organization_id,
            UUID(str(known.pk)),
            text,
            by=self.actor(),
            now=timezone.now(),
        )
        trail.record_request(
            self.platform_request, BillingTag.QUARANTINE_APPEAL, quarantine_id=str(row.pk)
        )
        return self.respond(row)
