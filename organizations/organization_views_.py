"""``/v1/organization/deletion``."""

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit import audit
from common.api.viewsets import PlatformViewSet
from common.permissions import needs
from environments.serializers import OrganizationSerializer
from organizations import deletion
from organizations.audit_tags import OrganizationTag
from organizations.organization_serializers import DeletionSerializer


class OrganizationDeletionViewSet(PlatformViewSet):
    """The deletion of the caller's organization."""

    access = {
        "request_deletion": needs("organization", "delete").fresh(),
        # Without a fresh proof, so that any admin can quickly stop a deletion that an attacker
        # requested.
        "cancel_deletion": needs("organization", "delete"),
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
            audit.record_request(
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
            audit.record_request(self.platform_request, OrganizationTag.ORGANIZATION_KEEP)
        return self.respond(row)
