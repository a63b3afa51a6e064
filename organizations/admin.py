"""Invitations in the admin."""

from django.contrib import admin

from common.admin.filters import BY_ORGANIZATION
from common.admin.pages import ReadOnlyAdmin
from organizations.models import Invitation


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """Invitations."""

    list_display = ("email", "organization", "roles", "created_at", "expires_at", "accepted_at")
    list_filter = (BY_ORGANIZATION,)
    list_select_related = ("organization",)
    search_fields = ("email", "organization__name")
    search_help_text = "E-mail address or organization"
    ordering = ("-id",)
    exclude = ("digest",)
