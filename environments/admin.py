"""Organizations and environments in the admin, read-only."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

from common.admin.filters import BY_ORGANIZATION
from common.admin.pages import ReadOnlyAdmin
from environments.models import Environment, Organization


@admin.register(Organization)
class OrganizationAdmin(ReadOnlyAdmin):
    """Organizations."""

    list_display = (
        "id",
        "name",
        "mfa_required",
        "mfa_grace_period_days",
        "created_at",
        "deletion_due_at",
        "deleted_at",
    )
    list_display_links = ("id", "name")
    list_filter = ("mfa_required", ("deletion_due_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "=id")
    search_help_text = "Name or number"
    ordering = ("-id",)
    change_form_outer_before_template = "admin/organization_facts.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the organization's figures of all layers, with links to the lists."""
        facts: Callable[[str], Any] = import_string(settings.STAFF_ORGANIZATION_FACTS)
        more = {"organization_facts": facts(object_id)}
        page: HttpResponse = super().change_view(
            request, object_id, form_url, more | (extra_context or {})
        )
        return page


@admin.register(Environment)
class EnvironmentAdmin(ReadOnlyAdmin):
    """Environments."""

    list_display = ("slug", "name", "organization", "is_built_in", "created_at", "deleted_at")
    list_filter = ("is_built_in", BY_ORGANIZATION)
    search_fields = ("slug", "name", "organization__name")
    search_help_text = "Name or organization"
    list_select_related = ("organization",)
    ordering = ("-id",)
