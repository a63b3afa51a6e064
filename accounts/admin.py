"""Accounts in the admin: read-only; no column shows a secret."""

from collections.abc import Sequence
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from unfold.decorators import display

from accounts.models import ApiKey, Session, User
from common.admin.actions import ActionsAdmin, StaffAction
from common.admin.filters import BY_ORGANIZATION, Days, by_values
from common.admin.pages import ReadOnlyAdmin

END_REASONS = (
    "logout",
    "ended_by_owner",
    "too_many",
    "switched",
    "refresh_reuse",
    "rotation_lost",
    "undelivered",
    "password_changed",
    "factors_reset",
    "recovery",
    "disabled",
    "operator",
    "staff",
    "environment_deleted",
)
KEY_REVOKE_REASONS = (
    "revoked",
    "operator",
    "creator_demoted",
    "creator_disabled",
    "environment_deleted",
)

# Staff's actions on users; the apps that carry them out add theirs in ``AppConfig.ready()``.
USER_ACTIONS: Final[list[StaffAction]] = []


@admin.register(User)
class UserAdmin(ActionsAdmin):
    """Users, and the actions of staff on them."""

    list_display = (
        "email",
        "organization",
        "roles",
        "state",
        "is_staff",
        "is_view_only",
        "email_verified_at",
        "last_login",
        "created_at",
    )
    list_filter = ("is_active", "is_staff", BY_ORGANIZATION)
    list_select_related = ("organization",)
    search_fields = ("email", "=id")
    search_help_text = "E-mail address or id"
    exclude = ("password",)
    readonly_fields = ("state",)
    ordering = ("-id",)

    @display(  # type: ignore[untyped-decorator]  # unfold ships no types
        description="State", ordering="is_active", label={"disabled": "danger"}
    )
    def state(self, user: User) -> str:
        """Return if the user may sign in."""
        return "active" if user.is_active else "disabled"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Show the state in place of its column."""
        names = [name for name in super().get_fields(request, obj) if name != "state"]
        return ["state" if name == "is_active" else name for name in names]

    def offered(self) -> Sequence[StaffAction]:
        """Return the actions of all layers."""
        return USER_ACTIONS


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Sessions, and how they ended."""

    list_display = (
        "user",
        "organization",
        "environment",
        "aal",
        "address",
        "created_at",
        "ended_at",
        "end_reason",
    )
    list_filter = (
        by_values("aal", ("1", "2"), title="assurance level"),
        by_values("end_reason", END_REASONS),
        ("created_at", Days),
        BY_ORGANIZATION,
    )
    list_select_related = ("user", "organization", "environment")
    search_fields = ("user__email", "=address", "=id")
    search_help_text = "User's address, network address or id"
    ordering = ("-id",)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """API keys, without their text."""

    list_display = (
        "name",
        "organization",
        "environment",
        "creator",
        "role",
        "hint",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
        "revoke_reason",
    )
    list_filter = (
        "role",
        by_values("revoke_reason", KEY_REVOKE_REASONS),
        BY_ORGANIZATION,
    )
    list_select_related = ("organization", "environment", "creator")
    search_fields = ("=id", "=hint", "creator__email", "name")
    search_help_text = "Name, id, the four characters shown of it, or its creator's address"
    ordering = ("-id",)
    exclude = ("digest",)
