"""``/v1/webhooks``."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from common.api.views import NO_STORE
from common.api.viewsets import ListAction, RetrieveAction
from common.openapi import shapes
from common.permissions import needs
from outbox.audit_tags import OutboxTag
from outbox.errors import (
    TooManyWebhooks,
    WebhookDeliveryNotFound,
    WebhookIsOff,
    WebhookNotFound,
    WebhookSentTooOften,
)
from outbox.models import WebhookDelivery, WebhookEndpoint
from outbox.webhooks import delivery_queue, endpoints
from outbox.webhooks.endpoints import EndpointChanges
from outbox.webhooks.serializers import (
    NewWebhookSerializer,
    WebhookCreateSerializer,
    WebhookDeliveryFilterSerializer,
    WebhookDeliverySerializer,
    WebhookRotateSerializer,
    WebhookSerializer,
    WebhookUpdateSerializer,
)


@extend_schema_view(
    list=extend_schema(
        summary="List webhooks",
        description="List the organization's webhooks, the newest first, without their secrets.",
    ),
    retrieve=extend_schema(summary="Read a webhook", description="Return one webhook."),
)
class WebhookEndpointViewSet(ListAction, RetrieveAction):
    """The organization's webhooks."""

    tag = "Webhooks"
    access = {
        "list": needs("webhooks", "read"),
        "retrieve": needs("webhooks", "read"),
        "create": needs("webhooks", "create").fresh(),
        "partial_update": needs("webhooks", "update").fresh(),
        "destroy": needs("webhooks", "delete").fresh(),
        "rotate": needs("webhooks", "update").fresh(),
        "test": needs("webhooks", "update"),
    }
    errors = {
        "create": (TooManyWebhooks,),
        "test": (WebhookIsOff, WebhookSentTooOften),
    }
    serializer_class = WebhookSerializer
    request_serializers = {
        "create": WebhookCreateSerializer,
        "partial_update": WebhookUpdateSerializer,
        "rotate": WebhookRotateSerializer,
    }
    response_serializers = {
        "create": NewWebhookSerializer,
        "rotate": NewWebhookSerializer,
        "test": WebhookDeliverySerializer,
    }
    success_statuses = {"test": status.HTTP_202_ACCEPTED}
    lookup_url_kwarg = "webhook_id"
    path_schemas = {"webhook_id": shapes.UUID}
    not_found = WebhookNotFound
    versions = {"retrieve": "partial_update"}

    def get_queryset(self) -> QuerySet[WebhookEndpoint]:
        """Return the organization's endpoints, locked for actions that change them."""
        rows = WebhookEndpoint.objects.all()
        is_read = self.action in {"list", "retrieve", "test"}
        return rows if is_read else rows.select_for_update()

    @extend_schema(summary="Add a webhook")
    def create(self, request: Request) -> Response:
        """Add a URL and the events that are sent to it. Only this response contains the secret.

        In production the URL must begin with `https://`. Each request is signed according to the
        Standard Webhooks specification; answer with a 2xx status within ten seconds.
        """
        body = self.read()
        with transaction.atomic():
            endpoint = endpoints.create(
                self.principal,
                body["url"],
                body["events"],
                description=body["description"],
                now=timezone.now(),
            )
            self._record(OutboxTag.WEBHOOK_CREATE, endpoint, events=endpoint.events)
        return self.respond(endpoint, headers=NO_STORE)

    @extend_schema(summary="Change a webhook")
    def partial_update(self, request: Request, webhook_id: str) -> Response:
        """Change URL, events or description, or disable or enable it.

        Disabling it fails its queued deliveries.
        """
        changes = EndpointChanges(**self.read())
        with transaction.atomic():
            endpoint = self.get_object()
            self.require_match(endpoint)
            changed = endpoints.change(endpoint, changes, now=timezone.now())
            if changed:
                self._record(OutboxTag.WEBHOOK_UPDATE, endpoint, **changed)
        return self.respond(endpoint)

    @extend_schema(summary="Remove a webhook")
    def destroy(self, request: Request, webhook_id: str) -> Response:
        """Remove a webhook with its deliveries."""
        with transaction.atomic():
            endpoint = self.get_object()
            self._record(OutboxTag.WEBHOOK_DELETE, endpoint)
            endpoint.delete()
        return self.no_content()

    @extend_schema(summary="Replace a webhook's secret")
    @action(detail=True, methods=["post"], url_path="secret/rotate")
    def rotate(self, request: Request, webhook_id: str) -> Response:
        """Create a new secret, returned only here. The previous one also signs for 24 hours."""
        keep_previous = self.read()["keep_previous"]
        with transaction.atomic():
            endpoint = self.get_object()
            endpoints.rotate(endpoint, now=timezone.now(), keep_previous=keep_previous)
            self._record(OutboxTag.WEBHOOK_ROTATE, endpoint, keeps_previous=keep_previous)
        return self.respond(endpoint, headers=NO_STORE)

    @extend_schema(summary="Send a test event", request=None)
    @action(detail=True, methods=["post"])
    def test(self, request: Request, webhook_id: str) -> Response:
        """Send the event `webhook.test`; its delivery shows the result."""
        now = timezone.now()
        endpoint = self.get_object()
        endpoints.check_rate_limit(self.principal.organization_id, now=now)
        with transaction.atomic():
            delivery = endpoints.send_test(endpoint, now=now)
        return self.respond(delivery)

    def _record(self, tag: OutboxTag, endpoint: WebhookEndpoint, **data: Any) -> None:
        trail.record_request(self.platform_request, tag, webhook=str(endpoint.pk), **data)


@extend_schema_view(
    list=extend_schema(
        summary="List deliveries",
        description="List what was sent to a webhook in the last 30 days, the newest first.",
    ),
    retrieve=extend_schema(summary="Read a delivery", description="Return one delivery."),
)
class WebhookDeliveryViewSet(ListAction, RetrieveAction):
    """What was sent to one webhook."""

    tag = "Webhooks"
    access = {
        "list": needs("webhooks", "read"),
        "retrieve": needs("webhooks", "read"),
        "resend": needs("webhooks", "update"),
    }
    errors = {
        "list": (WebhookNotFound,),
        "retrieve": (WebhookNotFound,),
        "resend": (WebhookNotFound, WebhookIsOff, WebhookSentTooOften),
    }
    serializer_class = WebhookDeliverySerializer
    query_serializers = {"list": WebhookDeliveryFilterSerializer}
    success_statuses = {"resend": status.HTTP_202_ACCEPTED}
    lookup_url_kwarg = "delivery_id"
    path_schemas = {"webhook_id": shapes.UUID, "delivery_id": shapes.UUID}
    not_found = WebhookDeliveryNotFound

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        """Return the webhook's deliveries; for a list, those that match its filters.

        Raises WebhookNotFound (404).
        """
        organization_id = self.principal.organization_id
        wanted = self.read_query() if self.action == "list" else {}
        try:
            key = UUID(self.kwargs["webhook_id"])
        except ValueError:
            raise WebhookNotFound from None
        mine = WebhookEndpoint.objects.filter(organization_id=organization_id)
        if not mine.filter(pk=key).exists():
            raise WebhookNotFound
        rows = WebhookDelivery.objects.filter(organization_id=organization_id)
        return rows.filter(endpoint_id=key, **wanted)

    @extend_schema(summary="Send an event again", request=None)
    @action(detail=True, methods=["post"])
    def resend(self, request: Request, webhook_id: str, delivery_id: str) -> Response:
        """Send the event again immediately, with the same id and a new series of attempts."""
        now = timezone.now()
        found = self.get_object()
        endpoints.check_rate_limit(self.principal.organization_id, now=now)
        with transaction.atomic():
            delivery = delivery_queue.resend(found, now=now)
            trail.record_request(
                self.platform_request,
                OutboxTag.WEBHOOK_RESEND,
                webhook=webhook_id,
                delivery=delivery_id,
            )
        return self.respond(delivery)
