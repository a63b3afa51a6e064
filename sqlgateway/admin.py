"""Clusters and placements in the admin: to look at, without any secret."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from sqlgateway.models import Cluster, Database


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Rows that stand for things on servers: changed by commands, never by hand."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never here: the database itself would stay."""
        return False


@admin.register(Cluster)
class ClusterAdmin(ReadOnlyAdmin):
    """The servers."""

    list_display = ("name", "state", "server_version", "created_at")
    fields = ("name", "state", "server_version", "flags", "created_at")


@admin.register(Database)
class DatabaseAdmin(ReadOnlyAdmin):
    """Which environment's data lies where."""

    list_display = ("id", "organization", "environment", "cluster", "state", "hardening")
    list_filter = ("state", "cluster", "hardening")
    list_select_related = ("organization", "environment", "cluster")
    search_fields = ("dbname", "organization__name", "environment__slug")
    fields = (
        *("organization", "environment", "engine", "cluster", "dbname", "state", "hardening"),
        *("created_at", "claimed_at"),
    )
