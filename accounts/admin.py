"""Accounts in the admin: to look at, and to disable a user; no secret is ever a column."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from accounts.models import (
    AuditEvent,
    Delivery,
    Domain,
    Identity,
    Invitation,
    Session,
    User,
)


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


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """Who is invited to what."""

    list_display = ("email", "organization", "roles", "created_at", "expires_at", "accepted_at")
    list_select_related = ("organization",)
    search_fields = ("email", "organization__name")
    ordering = ("-id",)
    exclude = ("digest",)


@admin.register(Identity)
class IdentityAdmin(ReadOnlyAdmin):
    """Which accounts at providers sign whom in."""

    list_display = (
        *("user", "provider", "subject", "email", "memberships"),
        *("created_at", "last_used_at", "confirmed_at"),
    )
    list_filter = ("provider",)
    list_select_related = ("user",)
    search_fields = ("user__email", "subject", "email", "username")
    ordering = ("-id",)
    exclude = ("credentials",)


@admin.register(Domain)
class DomainAdmin(ReadOnlyAdmin):
    """Which domains are whose."""

    list_display = ("domain", "organization", "role", "created_at", "verified_at", "seen_at")
    list_select_related = ("organization",)
    search_fields = ("domain", "organization__name")
    ordering = ("-id",)
    exclude = ("token",)


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
