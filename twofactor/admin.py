"""Second factors in the admin: read-only, without secrets; they can be reset with a reason."""

from django.contrib import admin

from common.admin.filters import BY_ORGANIZATION, by_values
from common.admin.pages import ReadOnlyAdmin
from environments.models import MFA_METHODS
from twofactor.models import Factor, Passkey, TrustedDevice


@admin.register(Factor)
class FactorAdmin(ReadOnlyAdmin):
    """Factors of users, without seed, number and address."""

    list_display = (
        "user",
        "method",
        "hint",
        "is_default",
        "failures",
        "created_at",
        "last_used_at",
    )
    list_filter = (by_values("method", MFA_METHODS), BY_ORGANIZATION)
    list_select_related = ("user",)
    search_fields = ("user__email",)
    search_help_text = "User's address"
    ordering = ("-id",)
    exclude = ("secret", "last_step")


@admin.register(Passkey)
class PasskeyAdmin(ReadOnlyAdmin):
    """Passkeys, without their public keys, which say nothing to people."""

    list_display = ("name", "user", "rp_id", "is_user_verified", "created_at", "last_used_at")
    list_filter = ("is_user_verified",)
    list_select_related = ("factor__user",)
    search_fields = ("factor__user__email", "name")
    search_help_text = "User's address or the passkey's name"
    ordering = ("-id",)
    exclude = ("credential_id", "public_key")

    @admin.display(description="User", ordering="factor__user__email")
    def user(self, passkey: Passkey) -> str:
        """Return the passkey's user."""
        return str(passkey.factor.user)


@admin.register(TrustedDevice)
class TrustedDeviceAdmin(ReadOnlyAdmin):
    """Devices that skip the second factor."""

    list_display = ("user", "name", "created_at", "last_used_at", "expires_at")
    list_filter = (BY_ORGANIZATION,)
    list_select_related = ("user",)
    search_fields = ("user__email", "name")
    search_help_text = "User's address or the device's name"
    ordering = ("-id",)
    exclude = ("generation",)
