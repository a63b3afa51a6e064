"""The audit trail in the admin."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import DropdownFilter

from audit.models import AuditEvent
from audit.tags import sentences
from common.admin.columns import organization
from common.admin.filters import Days, by_values
from common.admin.pages import ReadOnlyAdmin


class BySource(DropdownFilter):  # type: ignore[misc]  # unfold ships no types
    """The first word of the tag: where it happened."""

    title = "source"
    parameter_name = "source"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choices."""
        sources = {tag.partition(":")[0] for tag in sentences()}
        return [(source, source) for source in sorted(sources)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Apply the choice."""
        source = self.value()
        return queryset.filter(tag__startswith=f"{source}:") if source else queryset


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """What happened."""

    list_display = ("at", "tag", "outcome", "actor", organization, "environment_id", "address")
    list_filter = (
        by_values("outcome", ("success", "refused", "pending", "denied")),
        BySource,
        ("at", Days),
    )
    search_fields = ("tag", "actor", "=address", "=request_id")
    number_fields = ("organization_id",)
    search_help_text = "Parts of tag or actor; organization's number, network address, request id"
    ordering = ("-id",)
