"""The organization's spend cap."""

from typing import Any

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from billing import statements
from billing.api.serializers import SpendCapRequestSerializer, SpendCapSerializer
from billing.api.views import BillingResource
from billing.audit_tags import BillingTag
from billing.money import UCR_PER_CENT
from billing.service import spend_caps, states
from common.permissions import needs


class SpendCapViewSet(BillingResource):
    """What a month's usage may cost."""

    access = {
        "spend_cap": needs("billing", "read"),
        "replace": needs("billing", "update").fresh(),
        "remove": needs("billing", "delete").fresh(),
    }
    serializer_class = SpendCapSerializer
    request_serializers = {"replace": SpendCapRequestSerializer}
    response_serializers = {"remove": None}
    versions = {"spend_cap": "replace"}

    @extend_schema(summary="Read the spend cap")
    @action(detail=False, url_path="spend-cap")
    def spend_cap(self, request: Request) -> Response:
        """Return the cap, and what this month's usage cost by now."""
        return self.respond(self._shown())

    @extend_schema(summary="Set the spend cap")
    @spend_cap.mapping.put
    def replace(self, request: Request) -> Response:
        """Set the cap of each month. At the cap nodes of other operators stop serving."""
        cap_cents = int(self.read()["cap_cents"])
        self._change(cap_cents)
        trail.record_request(
            self.platform_request, BillingTag.SPEND_CAP_UPDATE, cap_cents=cap_cents
        )
        return self.respond(self._shown())

    @extend_schema(summary="Remove the spend cap")
    @spend_cap.mapping.delete
    def remove(self, request: Request) -> Response:
        """Remove the cap; what it stopped continues immediately."""
        self._change(None)
        trail.record_request(self.platform_request, BillingTag.SPEND_CAP_DELETE)
        return self.no_content()

    def _change(self, cap_cents: int | None) -> None:
        now = timezone.now()
        # A cap that is removed alone would never be refreshed: what it stopped would stay so.
        with transaction.atomic():
            spend_caps.replace(
                self.organization_id,
                cap_cents,
                by=self.actor(),
                now=now,
                check=lambda: self.takes_version() and self.require_match(self._shown()),
            )
            states.refresh(self.organization_id, now=now)

    def _shown(self) -> dict[str, Any]:
        cap = spend_caps.current(self.organization_id)
        spent_ucr = statements.spent(self.organization_id, spend_caps.month_of(timezone.now()))
        return {
            "cap_cents": None if cap is None else cap.cap_ucr // UCR_PER_CENT,
            "spent_ucr": spent_ucr,
            "is_reached": cap is not None and spent_ucr >= cap.cap_ucr,
        }
