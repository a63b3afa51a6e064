"""Linked accounts and domains in the admin."""

from django.contrib import admin

from common.admin.filters import BY_ORGANIZATION
from common.admin.pages import ReadOnlyAdmin
from oauth.models import Domain, Identity


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
