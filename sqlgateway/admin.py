"""Clusters and databases in the admin, without secrets: staff move databases to other clusters."""

from collections.abc import Sequence

from django.contrib import admin

from platform_site.lib.admin.actions import ActionsAdmin, StaffAction
from platform_site.lib.admin.filters import BY_ORGANIZATION
from platform_site.lib.admin.pages import ReadOnlyAdmin
from sqlgateway import staff_actions
from sqlgateway.models import Cluster, Database


@admin.register(Cluster)
class ClusterAdmin(ReadOnlyAdmin):
    """The servers of tenants' databases."""

    list_display = ("name", "state", "capacity", "server_version", "created_at")
    list_filter = ("state",)
    search_fields = ("name",)
    search_help_text = "Name"
    fields = ("name", "state", "capacity", "server_version", "flags", "created_at")


@admin.register(Database)
class DatabaseAdmin(ActionsAdmin):
    """Which database holds which environment."""

    list_display = (
        *("id", "organization", "environment", "cluster", "state", "size_bytes"),
        *("is_over_quota", "hardening"),
    )
    list_filter = ("state", "is_over_quota", "cluster", BY_ORGANIZATION)
    list_select_related = ("organization", "environment", "cluster")
    search_fields = ("=dbname", "organization__name", "environment__slug")
    search_help_text = "Database, organization or environment"
    ordering = ("-id",)
    fields = (
        *("organization", "environment", "engine", "cluster", "dbname", "state", "hardening"),
        *("size_bytes", "measured_at", "is_over_quota", "created_at", "claimed_at"),
    )

    def offered(self) -> Sequence[StaffAction]:
        """Return the moves that are possible."""
        return staff_actions.moves()
