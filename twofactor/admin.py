"""Second factors in the admin: to look at without secrets, and to reset with a reason."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.forms import ActionForm

from accounts.admin import ReadOnlyAdmin
from accounts.audit import audit
from accounts.delivery import notices
from accounts.sessions import sessions
from twofactor.audit_tags import TwoFactorTag
from twofactor.factors import factors
from twofactor.models import Factor, Passkey, TrustedDevice


class ReasonForm(ActionForm):  # type: ignore[misc]  # unfold ships no types
    """The action, and why."""

    reason = forms.CharField(required=False, max_length=300, label="Reason")


@admin.register(Factor)
class FactorAdmin(ReadOnlyAdmin):
    """Who holds what; never the seed, the number or the address."""

    list_display = (
        "user",
        "method",
        "hint",
        "is_default",
        "failures",
        "created_at",
        "last_used_at",
    )
    list_filter = ("method",)
    list_select_related = ("user",)
    search_fields = ("user__email",)
    exclude = ("secret", "last_step")
    action_form = ReasonForm
    actions: ClassVar[list[str]] = ["reset_factors"]

    @admin.action(description="Reset every factor of these users")
    def reset_factors(self, request: HttpRequest, queryset: QuerySet[Factor]) -> None:
        """Delete all factors of the chosen users, notify the users and audit it."""
        reason = request.POST.get("reason", "").strip()[:300]
        if not reason:
            self.message_user(request, "Give a reason.", messages.ERROR)
            return
        users = {factor.user for factor in queryset.select_related("user")}
        with transaction.atomic():
            for user in users:
                notices.notify(user, "factors_reset", by="platform staff", reason=reason)
                number = factors.reset(user)
                sessions.end_all_of_user(user.pk, reason="factors_reset", now=timezone.now())
                _note(request, user, factors=number, reason=reason)
        self.message_user(request, f"Reset the factors of {len(users)} users.")


def _note(request: HttpRequest, user: Any, **data: Any) -> None:
    audit.add(
        None,
        TwoFactorTag.ADMIN_MEMBER_RESET_FACTORS,
        organization_id=user.organization_id,
        actor_id=request.user.pk,
        actor=str(request.user),
        data={"member": str(user.pk), **data},
    )


@admin.register(Passkey)
class PasskeyAdmin(ReadOnlyAdmin):
    """Passkeys; public keys are no secret, but nothing to look at either."""

    list_display = ("name", "factor", "rp_id", "created_at", "last_used_at")
    exclude = ("credential_id", "public_key")


@admin.register(TrustedDevice)
class TrustedDeviceAdmin(ReadOnlyAdmin):
    """Devices that skip the second factor."""

    list_display = ("user", "name", "created_at", "last_used_at", "expires_at")
    list_select_related = ("user",)
    exclude = ("generation",)
