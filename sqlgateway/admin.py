"""Clusters, databases and limits in the admin.

Staff move databases, rotate their passwords and set organizations' limits. No secret is shown.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.decorators import action, display

from common.admin import forms
from common.admin.actions import ActionsAdmin, StaffAction
from common.admin.filters import BY_ORGANIZATION
from common.admin.pages import ReadOnlyAdmin
from sqlgateway import staff
from sqlgateway.clusters.organization_limits import LIMITS, OwnLimit, own_of
from sqlgateway.models import Cluster, Database, OrganizationLimits


@admin.register(Cluster)
class ClusterAdmin(ReadOnlyAdmin):
    """The servers of tenants' databases."""

    list_display = ("name", "state", "reserved_for", "capacity", "server_version", "created_at")
    list_select_related = ("reserved_for",)
    list_filter = ("state",)
    search_fields = ("name",)
    search_help_text = "Name"
    fields = (
        "name",
        "state",
        "reserved_for",
        "capacity",
        "server_version",
        "flags",
        "created_at",
    )


@admin.register(Database)
class DatabaseAdmin(ActionsAdmin):
    """The databases of environments."""

    list_display = (
        "id",
        "organization",
        "environment",
        "cluster",
        "state",
        "size_bytes",
        "quota",
        "hardening",
    )
    list_filter = ("state", "is_over_quota", "cluster", BY_ORGANIZATION)
    list_select_related = ("organization", "environment", "cluster")
    search_fields = ("=dbname", "organization__name", "environment__slug")
    search_help_text = "Database, organization or environment"
    ordering = ("-id",)
    fields = (
        "organization",
        "environment",
        "engine",
        "cluster",
        "dbname",
        "state",
        "hardening",
        "size_bytes",
        "measured_at",
        "is_over_quota",
        "created_at",
        "claimed_at",
    )

    @display(  # type: ignore[untyped-decorator]  # unfold ships no types
        ordering="is_over_quota", label={"over": "danger"}
    )
    def quota(self, database: Database) -> str:
        """Return if the database is above its quota."""
        return "over" if database.is_over_quota else ""

    def offered(self) -> Sequence[StaffAction]:
        """Return the rotation, and a move to each open cluster."""
        return (staff.ROTATE, *staff.moves())


def _column(limit: OwnLimit, say: Callable[[OwnLimit, int | None], str]) -> Callable[[Any], str]:
    @admin.display(description=limit.label)
    def column(row: OrganizationLimits) -> str:
        """Return the effective limit."""
        return say(limit, own_of(getattr(row, "quota", None))[limit.name])

    return column


SHORT: Final = tuple(_column(limit, staff.short) for limit in LIMITS)
EXACT: Final = tuple(_column(limit, staff.exact) for limit in LIMITS)


@admin.register(OrganizationLimits)
class OrganizationLimitsAdmin(ActionsAdmin):
    """The effective limits of each organization: its own, or the platform's."""

    list_display = ("id", "name", *SHORT)
    list_display_links = ("id", "name")
    list_filter = (staff.OwnLimitsFilter,)
    list_select_related = ("quota",)
    search_fields = ("name", "=id")
    address_field = "users__email"
    search_help_text = "Organization's name or number, or a member's address"
    ordering = ("-id",)
    fields = readonly_fields = ("id", "name", *EXACT)
    actions_row = ("set_limits",)
    change_form_outer_before_template = "admin/limits_links.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show links to the form and to the organization."""
        path = reverse("admin:sqlgateway_organizationlimits_set_limits", args=[object_id])
        more = {
            "set_limits_path": path if self.has_act_permission(request) else "",
            "organization_path": reverse(
                "admin:environments_organization_change", args=[object_id]
            ),
        }
        page: HttpResponse = super().change_view(
            request, object_id, form_url, more | (extra_context or {})
        )
        return page

    @action(  # type: ignore[untyped-decorator]  # unfold ships no types
        description="Set limits…", url_path="set-limits", permissions=["act"]
    )
    def set_limits(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Set an organization's own limits."""
        organization = self.get_object(request, object_id)
        if organization is None:
            missing: HttpResponse = self._get_obj_does_not_exist_redirect(
                request, self.opts, object_id
            )
            return missing
        return forms.answer(self, request, staff.form_of(organization), row=organization)
