"""Messages and webhooks in the admin; failed messages can be sent again."""

from urllib.parse import urlsplit

from django.contrib import admin
from django.db import transaction
from django.utils import timezone

from audit import trail
from common.admin.actions import ActionsAdmin, ConfirmedAction, StaffAction
from common.admin.filters import BY_ORGANIZATION, Days, by_values
from common.admin.pages import ReadOnlyAdmin
from common.errors import Conflict
from outbox.audit_tags import OutboxTag
from outbox.deliveries import NotRetryable
from outbox.messages import queue
from outbox.messages.templates import NOTICES
from outbox.models import Delivery, WebhookDelivery, WebhookEndpoint


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ReadOnlyAdmin):
    """Webhooks: the host of the URL, never the rest of it or the secret."""

    list_display = (
        "id",
        "organization",
        "host",
        "events",
        "state",
        "disabled_reason",
        "failures",
        "failing_since",
        "created_at",
    )
    list_filter = ("state", "disabled_reason", BY_ORGANIZATION)
    list_select_related = ("organization",)
    search_fields = ("=id", "organization__name")
    search_help_text = "Id or organization"
    ordering = ("-id",)
    # At many services the URL itself is a secret.
    exclude = ("url", "secret", "previous_secret")

    @admin.display(description="host")
    def host(self, endpoint: WebhookEndpoint) -> str:
        """Return the URL's host."""
        return urlsplit(endpoint.url).hostname or ""


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    """Webhook deliveries, without their content."""

    list_display = (
        "id",
        "organization",
        "endpoint",
        "event",
        "state",
        "attempts",
        "last_status",
        "error",
        "created_at",
        "next_attempt_at",
        "finished_at",
    )
    list_filter = ("state", ("created_at", Days), BY_ORGANIZATION)
    list_select_related = ("organization", "endpoint")
    search_fields = ("=id", "=endpoint__id")
    search_help_text = "Id of a delivery or of an endpoint"
    ordering = ("-id",)
    exclude = ("body", "tries")


def retry_delivery(confirmed: ConfirmedAction, delivery: Delivery) -> bool:
    """Attempt a failed mail or text message again now; False if it has not failed.

    Raises Conflict if its content was deleted.
    """
    if delivery.state != Delivery.State.FAILED:
        return False
    try:
        with transaction.atomic():
            queue.retry(delivery, now=timezone.now())
            trail.record_staff(
                confirmed.request,
                OutboxTag.ADMIN_DELIVERY_RETRY,
                organization_id=delivery.organization_id,
                delivery=str(delivery.pk),
                template=delivery.template,
                reason=confirmed.reason,
            )
    except NotRetryable as exc:
        raise Conflict(f"It cannot be sent again: {exc}.") from exc
    return True


@admin.register(Delivery)
class DeliveryAdmin(ActionsAdmin):
    """Mail and text messages, without their content; failed ones can be sent again."""

    staff_actions = (
        StaffAction(
            "retry",
            "Send again",
            "Each is attempted again now, up to ten times. One whose content was deleted, because "
            "it was sent or is too old, does not change.",
            retry_delivery,
            label=lambda row: f"{row.kind} {row.template} to {row.hint} ({row.state}: {row.error})",
        ),
    )

    list_display = (
        "id",
        "kind",
        "template",
        "hint",
        "state",
        "attempts",
        "error",
        "next_attempt_at",
        "created_at",
        "finished_at",
    )
    list_filter = (
        "state",
        "kind",
        by_values("template", sorted(NOTICES)),
        ("created_at", Days),
        BY_ORGANIZATION,
    )
    search_fields = ("=id", "=user_id", "error")
    search_help_text = "Id, user's id or error"
    ordering = ("-id",)
    exclude = ("payload",)
