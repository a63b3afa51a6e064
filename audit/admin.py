"""The audit trail in the admin."""

from django.contrib import admin

from audit.models import AuditEvent
from common.admin.columns import organization
from common.admin.filters import by_values
from common.admin.pages import ReadOnlyAdmin


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """What happened."""

    list_display = ("at", "tag", "outcome", "actor", organization, "environment_id", "address")
    list_filter = (by_values("outcome", ("success", "refused", "pending", "denied")),)
    search_fields = ("=tag", "=actor", "=address", "=request_id")
    number_fields = ("organization_id",)
    search_help_text = "Tag, actor, organization's number, network address or request id: exactly"
    ordering = ("-id",)
