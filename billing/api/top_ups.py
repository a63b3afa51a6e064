"""Buying credits, and what payment providers report."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from billing.api.serializers import TopUpRequestSerializer, TopUpSerializer
from billing.api.views import BillingResource
from billing.audit_tags import BillingTag
from billing.errors import WebhookRefused
from billing.topups import requests
from common.api.bodies import read_body
from common.api.viewsets import PlatformViewSet
from common.permissions import PUBLIC, needs

MAX_EVENT_BYTES = 2**18


class RawParser(BaseParser):
    """Return the body's bytes, which a signature is about."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the body's bytes, although the stubs expect fields.

        Raises PayloadTooLarge (413).
        """
        return read_body(stream, encoding="", limit_bytes=MAX_EVENT_BYTES)


class TopUpViewSet(BillingResource):
    """Credits that the organization buys."""

    access = {"create": needs("billing", "create")}
    serializer_class = TopUpSerializer
    request_serializers = {"create": TopUpRequestSerializer}

    @extend_schema(summary="Buy credits")
    def create(self, request: Request) -> Response:
        """Open a page where credits are paid for. They are booked once the payment has arrived."""
        opened = requests.request(
            self.organization_id, **self.read(), by=self.actor(), now=timezone.now()
        )
        trail.record_request(
            self.platform_request,
            BillingTag.TOP_UP_CREATE,
            top_up_id=str(opened.top_up.pk),
            amount_cents=opened.top_up.amount_cents,
        )
        return self.respond({"id": opened.top_up.pk, "url": opened.url})


class PaymentWebhookViewSet(PlatformViewSet):
    """What payment providers report."""

    access = {"stripe": PUBLIC}
    response_serializers = {"stripe": None}
    pagination_class = None

    @extend_schema(
        summary="Receive an event of Stripe",
        description="Where Stripe sends its events, with its signature; not for clients.",
        request=None,
        parameters=[OpenApiParameter("Stripe-Signature", str, OpenApiParameter.HEADER)],
    )
    @action(detail=False, methods=["post"], parser_classes=[RawParser])
    def stripe(self, request: Request) -> Response:
        """Carry out an event; one that comes again changes nothing."""
        path = settings.PAYMENT_WEBHOOKS.get("stripe")
        body: object = request.data
        if path is None or not isinstance(body, bytes):
            raise WebhookRefused
        import_string(path)(body, request.headers.get("Stripe-Signature", ""))
        return self.no_content()
