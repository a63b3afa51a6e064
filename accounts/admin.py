"""Accounts in the admin: to look at, and to disable a user; no secret is ever a column."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from accounts.models import AuditEvent, Delivery, Session, User


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Pages to look at."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never here."""
        return False


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    """Who there is."""

    list_display = ("email", "organization", "roles", "is_active", "is_staff", "created_at")
    list_filter = ("is_active", "is_staff")
    list_select_related = ("organization",)
    search_fields = ("email", "organization__name")
    exclude = ("password",)


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Who is signed in, and how sessions ended."""

    list_display = ("user", "environment", "aal", "address", "created_at", "ended_at", "end_reason")
    list_filter = ("aal", "end_reason")
    list_select_related = ("user", "environment")
    search_fields = ("user__email",)


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """What happened."""

    list_display = ("at", "tag", "outcome", "actor", "organization_id", "address")
    list_filter = ("outcome", "tag")
    search_fields = ("tag", "actor", "request_id")


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    """Mail and text messages on their way; never their content."""

    list_display = (
        *("id", "kind", "template", "hint", "state", "attempts", "error"),
        *("next_attempt_at", "created_at", "finished_at"),
    )
    list_filter = ("state", "kind", "template")
    search_fields = ("id", "user_id", "error")
    ordering = ("-id",)
    exclude = ("payload",)
