"""Quarantines in the admin: forfeiting earnings and deciding appeals, each with its reason."""

from functools import partial
from typing import Final

from django.contrib import admin
from django.db import transaction
from django.utils import timezone

from billing import quarantines
from billing.audit_tags import BillingTag
from billing.models.quarantines import Quarantine
from billing.money import credits_text
from common.admin.actions import ActionsAdmin, ConfirmedAction, StaffAction
from common.admin.columns import organization
from common.principals import PlatformRequest


def _forfeit(confirmed: ConfirmedAction, row: Quarantine) -> bool:
    """Take what a node earned and was not paid out. Raises ForfeitRefused."""
    with transaction.atomic():
        changed = quarantines.forfeit(
            row.pk, reason=confirmed.reason, actor=confirmed.actor, now=timezone.now()
        )
        _record(confirmed, BillingTag.ADMIN_EARNINGS_FORFEIT, changed)
    return True


def _decide(confirmed: ConfirmedAction, row: Quarantine, *, is_granted: bool) -> bool:
    """Grant or reject an appeal. Raises AppealRefused."""
    with transaction.atomic():
        changed = quarantines.decide(
            row.pk,
            is_granted=is_granted,
            reason=confirmed.reason,
            actor=confirmed.actor,
            now=timezone.now(),
        )
        _record(confirmed, BillingTag.ADMIN_APPEAL_DECIDE, changed)
    return True


def _record(confirmed: ConfirmedAction, tag: BillingTag, row: Quarantine) -> None:
    request: PlatformRequest = confirmed.request  # type: ignore[assignment]  # the middleware's
    quarantines.record(request, tag, row, actor=confirmed.actor, reason=confirmed.reason)


def _label(row: Quarantine) -> str:
    return (
        f"{row}, organization {row.organization_id}: "
        f"earned {credits_text(quarantines.forfeitable_ucr(row))} credits that are not paid out, "
        f"forfeited {credits_text(row.forfeited_ucr)}"
    )


ACTIONS: Final = (
    StaffAction(
        "forfeit",
        "Forfeit unpaid earnings",
        "What these nodes earned and was not paid out is taken; the operators read the reason.",
        _forfeit,
        label=_label,
        is_harmful=True,
    ),
    StaffAction(
        "grant",
        "Grant the appeal",
        "What was forfeited is returned; the operators read the reason.",
        partial(_decide, is_granted=True),
        label=_label,
    ),
    StaffAction(
        "reject",
        "Reject the appeal",
        "What was forfeited stays so; the operators read the reason.",
        partial(_decide, is_granted=False),
        label=_label,
    ),
)


@admin.register(Quarantine)
class QuarantineAdmin(ActionsAdmin):
    """Quarantined nodes of operators, and disputes about them."""

    list_display = (
        "began_at",
        "node_id",
        organization,
        "reason",
        "state",
        "forfeited",
        "appeal",
        "ended_at",
        "decided_at",
    )
    list_filter = ("decision",)
    search_fields = ("=node_id", "=organization_id")
    search_help_text = "Node or organization's number"
    ordering = ("-id",)
    staff_actions = ACTIONS

    @admin.display(description="Forfeited credits")
    def forfeited(self, row: Quarantine) -> str:
        return credits_text(row.forfeited_ucr)
