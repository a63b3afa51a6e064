"""Clusters and databases in the admin: read-only, without secrets."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from sqlgateway.models import Cluster, Database


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Rows that describe objects on servers; commands change them, not the admin."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: the database itself would remain."""
        return False


@admin.register(Cluster)
class ClusterAdmin(ReadOnlyAdmin):
    """The servers of tenants' databases."""

    list_display = ("name", "state", "capacity", "server_version", "created_at")
    fields = ("name", "state", "capacity", "server_version", "flags", "created_at")


@admin.register(Database)
class DatabaseAdmin(ReadOnlyAdmin):
    """Which database holds which environment."""

    list_display = ("id", "organization", "environment", "cluster", "state", "hardening")
    list_filter = ("state", "cluster", "hardening")
    list_select_related = ("organization", "environment", "cluster")
    search_fields = ("dbname", "organization__name", "environment__slug")
    fields = (
        *("organization", "environment", "engine", "cluster", "dbname", "state", "hardening"),
        *("created_at", "claimed_at"),
    )
