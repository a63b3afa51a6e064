"""Organizations and environments in the admin, read-only; environments.py changes them."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from environments.models import Environment, Organization


@admin.register(Organization)
class OrganizationAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Who the tenants are."""

    list_display = ("id", "name", "created_at")
    search_fields = ("name",)
    readonly_fields = ("created_at",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never here: a tenant's data lies outside this database too."""
        return False


@admin.register(Environment)
class EnvironmentAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """What the tenants have."""

    list_display = ("organization", "slug", "name", "is_built_in", "created_at", "deleted_at")
    list_filter = ("is_built_in",)
    search_fields = ("slug", "name", "organization__name")
    list_select_related = ("organization",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never here: hooks and locks belong to it."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never here: hooks and locks belong to it."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never here: hooks and locks belong to it."""
        return False
