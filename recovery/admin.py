"""Recoveries in the admin: to look at; no digest, claim or answer is ever shown."""

from django.contrib import admin

from accounts.admin import ReadOnlyAdmin
from recovery.models import Recovery


@admin.register(Recovery)
class RecoveryAdmin(ReadOnlyAdmin):
    """Who recovers what, and how it ended."""

    list_display = (
        *("id", "user", "purpose", "method", "address"),
        *("created_at", "verified_at", "effective_at", "ended_at", "end_reason"),
    )
    list_filter = ("purpose", "method", "end_reason")
    list_select_related = ("user",)
    search_fields = ("user__email", "address")
    ordering = ("-id",)
    exclude = ("digest", "request", "asked", "is_answered", "token", "cancel", "fingerprint")
