"""Recoveries in the admin: read-only, without digests, claimed addresses and answers."""

from django.contrib import admin

from common.admin.filters import BY_ORGANIZATION, by_values
from common.admin.pages import ReadOnlyAdmin
from recovery.models import Recovery

END_REASONS = ("completed", "cancelled", "address_released")


@admin.register(Recovery)
class RecoveryAdmin(ReadOnlyAdmin):
    """Recoveries, and how they ended."""

    list_display = (
        "id",
        "user",
        "purpose",
        "method",
        "address",
        "created_at",
        "verified_at",
        "effective_at",
        "ended_at",
        "end_reason",
    )
    list_filter = ("purpose", "method", by_values("end_reason", END_REASONS), BY_ORGANIZATION)
    list_select_related = ("user",)
    search_fields = ("user__email", "=address")
    search_help_text = "User's address or network address"
    ordering = ("-id",)
    exclude = ("digest", "request", "asked", "is_answered", "token", "cancel", "fingerprint")
