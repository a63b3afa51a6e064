"""Accounts in the admin: read-only; no column shows a secret."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import admin
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts.models import ApiKey, Session, User
from audit import audit
from audit.models import AuditEvent
from common.admin.actions import ActionsAdmin, ConfirmedAction, StaffAction
from common.admin.columns import organization
from common.admin.filters import BY_ORGANIZATION, by_values
from common.admin.pages import ReadOnlyAdmin
from common.errors import Conflict
from oauth.models import Domain, Identity
from organizations.models import Invitation
from outbox.audit_tags import OutboxTag
from outbox.deliveries import Delivery
from outbox.messages import maintenance
from outbox.messages.templates import NOTICES
from outbox.models import WebhookDelivery, WebhookEndpoint

END_REASONS = (
    "logout",
    "ended_by_owner",
    "too_many",
    "switched",
    "refresh_reuse",
    "undelivered",
    "password_changed",
    "factors_reset",
    "recovery",
    "disabled",
    "operator",
    "staff",
    "environment_deleted",
)
KEY_REVOKE_REASONS = (
    "revoked",
    "operator",
    "maker_demoted",
    "maker_disabled",
    "environment_deleted",
)


@admin.register(User)
class UserAdmin(ActionsAdmin):
    """Users, and the actions of staff on them."""

    list_display = (
        "email",
        "organization",
        "roles",
        "is_active",
        "is_staff",
        "is_view_only",
        "email_verified_at",
        "last_login",
        "created_at",
    )
    list_filter = ("is_active", "is_staff", BY_ORGANIZATION)
    list_select_related = ("organization",)
    search_fields = ("email", "=id")
    search_help_text = "E-mail address or id"
    exclude = ("password",)
    ordering = ("-id",)

    def offered(self) -> Sequence[StaffAction]:
        """Return the actions of all layers."""
        actions: Sequence[StaffAction] = import_string(settings.STAFF_USER_ACTIONS)
        return actions


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Sessions, and how they ended."""

    list_display = (
        "user",
        "organization",
        "environment",
        "aal",
        "address",
        "created_at",
        "ended_at",
        "end_reason",
    )
    list_filter = (
        by_values("aal", ("1", "2"), title="assurance level"),
        by_values("end_reason", END_REASONS),
        BY_ORGANIZATION,
    )
    list_select_related = ("user", "organization", "environment")
    search_fields = ("user__email", "=address", "=id")
    search_help_text = "User's address, network address or id"
    ordering = ("-id",)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """API keys, without their text."""

    list_display = (
        "name",
        "organization",
        "environment",
        "maker",
        "role",
        "hint",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
        "revoke_reason",
    )
    list_filter = (
        "role",
        by_values("revoke_reason", KEY_REVOKE_REASONS),
        BY_ORGANIZATION,
    )
    list_select_related = ("organization", "environment", "maker")
    search_fields = ("=id", "=hint", "maker__email", "name")
    search_help_text = "Name, id, the four characters shown of it, or its maker's address"
    ordering = ("-id",)
    exclude = ("digest",)


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
        "last_error",
        "created_at",
        "next_attempt_at",
        "finished_at",
    )
    list_filter = ("state", BY_ORGANIZATION)
    list_select_related = ("organization", "endpoint")
    search_fields = ("=id", "=endpoint__id")
    search_help_text = "Id of a delivery or of an endpoint"
    ordering = ("-id",)
    exclude = ("body",)


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """Invitations."""

    list_display = ("email", "organization", "roles", "created_at", "expires_at", "accepted_at")
    list_filter = (BY_ORGANIZATION,)
    list_select_related = ("organization",)
    search_fields = ("email", "organization__name")
    search_help_text = "E-mail address or organization"
    ordering = ("-id",)
    exclude = ("digest",)


@admin.register(Identity)
class IdentityAdmin(ReadOnlyAdmin):
    """Accounts at identity providers, and the users they are linked to."""

    list_display = (
        "user",
        "provider",
        "subject",
        "email",
        "memberships",
        "created_at",
        "last_used_at",
        "confirmed_at",
    )
    list_filter = ("provider", BY_ORGANIZATION)
    list_select_related = ("user",)
    search_fields = ("user__email", "subject", "email", "username")
    search_help_text = "User's address, or the provider's id, address or name"
    ordering = ("-id",)
    exclude = ("credentials",)


@admin.register(Domain)
class DomainAdmin(ReadOnlyAdmin):
    """Domains that organizations have claimed."""

    list_display = ("domain", "organization", "role", "created_at", "verified_at", "seen_at")
    list_filter = (BY_ORGANIZATION,)
    list_select_related = ("organization",)
    search_fields = ("domain", "organization__name")
    search_help_text = "Domain or organization"
    ordering = ("-id",)
    exclude = ("token",)


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """What happened."""

    list_display = ("at", "tag", "outcome", "actor", organization, "environment_id", "address")
    list_filter = (by_values("outcome", ("success", "refused", "pending", "denied")),)
    search_fields = ("=tag", "=actor", "=address", "=request_id")
    number_fields = ("organization_id",)
    search_help_text = "Tag, actor, organization's number, network address or request id: exactly"
    ordering = ("-id",)


def retry_delivery(confirmed: ConfirmedAction, delivery: Delivery) -> bool:
    """Attempt a failed mail or text message again now; False if it has not failed.

    Raises Conflict if its content was deleted.
    """
    if delivery.state != Delivery.State.FAILED:
        return False
    try:
        with transaction.atomic():
            maintenance.retry(delivery, now=timezone.now())
            audit.record_staff(
                confirmed.request,
                OutboxTag.ADMIN_DELIVERY_RETRY,
                organization_id=delivery.organization_id,
                delivery=str(delivery.pk),
                template=delivery.template,
                reason=confirmed.reason,
            )
    except maintenance.NotRetryable as exc:
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
    list_filter = ("state", "kind", by_values("template", sorted(NOTICES)), BY_ORGANIZATION)
    search_fields = ("=id", "=user_id", "error")
    search_help_text = "Id, user's id or error"
    ordering = ("-id",)
    exclude = ("payload",)
