"""Organizations and environments in the admin, read-only; environments.py changes them."""

from django.contrib import admin

from environments.models import Environment, Organization
from platform_site.lib.admin.filters import BY_ORGANIZATION
from platform_site.lib.admin.pages import ReadOnlyAdmin


@admin.register(Organization)
class OrganizationAdmin(ReadOnlyAdmin):
    """Who the tenants are."""

    list_display = (
        *("id", "name", "mfa_required", "mfa_grace_period_days", "created_at"),
        *("deletion_due_at", "deleted_at"),
    )
    list_display_links = ("id", "name")
    list_filter = ("mfa_required", ("deletion_due_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "=id")
    search_help_text = "Name or number"
    ordering = ("-id",)


@admin.register(Environment)
class EnvironmentAdmin(ReadOnlyAdmin):
    """What the tenants have."""

    list_display = ("slug", "name", "organization", "is_built_in", "created_at", "deleted_at")
    list_filter = ("is_built_in", BY_ORGANIZATION)
    search_fields = ("slug", "name", "organization__name")
    search_help_text = "Name or organization"
    list_select_related = ("organization",)
    ordering = ("-id",)
