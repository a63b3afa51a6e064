"""Organizations and environments in the admin, read-only."""

from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from common.admin.filters import BY_ORGANIZATION
from common.admin.pages import ReadOnlyAdmin
from common.provided import Provided
from environments.models import Environment, Organization

# The organization's figures of all layers, by its id.
ORGANIZATION_FACTS: Final = Provided[[str], Any]("the figures of an organization")


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
    address_field = "users__email"
    search_help_text = "Name, number, or a member's address"
    ordering = ("-id",)
    change_form_outer_before_template = "admin/organization_facts.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the organization's figures of all layers, with links to the lists."""
        more = {"organization_facts": ORGANIZATION_FACTS(object_id)}
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
