"""Billing in the admin: the ledger, rates, usage, disputes and payouts."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.admin import TabularInline
from unfold.decorators import action

from billing.models.ledger import Account, Entry, Journal
from billing.models.payouts import Payout, PayoutMethod
from billing.models.rates import Rate
from billing.models.topups import PaymentReversal, TopUp
from billing.models.usage import RejectedLine, UsageLine
from billing.money import credits_text
from billing.staff.actions import LINE_ACTIONS, PAYOUT_ACTIONS
from billing.staff.forms import GRANT_CREDITS, SET_RATE
from billing.staff.quarantines import QuarantineAdmin
from common.admin import forms
from common.admin.actions import ActionsAdmin
from common.admin.columns import organization
from common.admin.filters import Days, by_values
from common.admin.pages import ReadOnlyAdmin

# Registered where it is.
__all__ = ["QuarantineAdmin"]


@admin.register(Account)
class AccountAdmin(ActionsAdmin):
    list_display = ("kind", organization, "balance")
    list_filter = ("kind",)
    search_fields = ("=organization_id",)
    search_help_text = "Organization's number"
    ordering = ("-id",)
    actions_list = ("grant_credits",)

    @action(  # type: ignore[untyped-decorator]  # unfold ships no types
        description="Grant credits…", url_path="grant-credits", permissions=["act"]
    )
    def grant_credits(self, request: HttpRequest) -> HttpResponse:
        return forms.answer(self, request, GRANT_CREDITS)

    @admin.display(description="Credits", ordering="balance_ucr")
    def balance(self, account: Account) -> str:
        return credits_text(account.balance_ucr)


class EntryInline(TabularInline):  # type: ignore[misc]  # unfold ships no types
    """The sides of a journal."""

    model = Entry
    verbose_name_plural = "Entries"
    can_delete = False
    extra = 0
    fields = readonly_fields = ("account", "amount_ucr")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never here."""
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Entry]:
        """Read the accounts with their entries."""
        rows: QuerySet[Entry] = super().get_queryset(request).select_related("account")
        return rows


@admin.register(Journal)
class JournalAdmin(ReadOnlyAdmin):
    """Everything that moved money."""

    list_display = ("posted_at", "kind", "key", "actor", "reason")
    list_filter = ("kind", ("posted_at", Days))
    search_fields = ("=key", "=actor", "reason")
    search_help_text = "Key, actor or words of the reason"
    ordering = ("-id",)
    inlines = (EntryInline,)


@admin.register(Rate)
class RateAdmin(ActionsAdmin):
    list_display = ("kind", "rate_ucr", "begins_at")
    list_filter = ("kind",)
    search_fields = ("kind",)
    search_help_text = "Kind"
    ordering = ("-begins_at", "kind")
    actions_list = ("set_rate",)

    @action(  # type: ignore[untyped-decorator]  # unfold ships no types
        description="Set a rate…", url_path="set-rate", permissions=["act"]
    )
    def set_rate(self, request: HttpRequest) -> HttpResponse:
        """Set a rate from a later hour on."""
        return forms.answer(self, request, SET_RATE)


@admin.register(UsageLine)
class UsageLineAdmin(ActionsAdmin):
    list_display = ("used_at", organization, "bucket_name", "kind", "quantity", "operator_id")
    list_filter = ("kind", ("used_at", Days))
    search_fields = ("=line_id",)
    number_fields = ("organization_id", "operator_id")
    search_help_text = "Id of the line, or number of the consumer or operator"
    staff_actions = LINE_ACTIONS
    ordering = ("-id",)


@admin.register(RejectedLine)
class RejectedLineAdmin(ReadOnlyAdmin):
    """Usage lines that were not accepted, and why."""

    list_display = ("created_at", "line_id", "reason")
    search_fields = ("=line_id", "reason")
    search_help_text = "Id of the line, or its reason"
    ordering = ("-id",)


@admin.register(PayoutMethod)
class PayoutMethodAdmin(ReadOnlyAdmin):
    """How operators are paid."""

    list_display = ("id", organization, "kind", "usable_from", "removed_at", "created_by")
    list_filter = (by_values("kind", settings.PAYOUT_METHODS),)
    search_fields = ("=organization_id",)
    search_help_text = "Organization's number"
    ordering = ("-id",)
    exclude = ("details",)


@admin.register(TopUp)
class TopUpAdmin(ReadOnlyAdmin):
    """Credits that consumers bought, or began to buy."""

    list_display = (
        "created_at",
        organization,
        "amount_cents",
        "currency",
        "payment",
        "requested_by",
        "paid_at",
    )
    list_filter = (("paid_at", admin.EmptyFieldListFilter),)
    search_fields = ("=id", "=organization_id", "=payment", "=session")
    search_help_text = "Id, organization's number, or the provider's payment or session"
    ordering = ("-id",)


@admin.register(PaymentReversal)
class PaymentReversalAdmin(ReadOnlyAdmin):
    """Disputes and refunds at the provider."""

    list_display = ("created_at", "key", "payment", "amount_cents")
    search_fields = ("=key", "=payment")
    search_help_text = "The provider's dispute, charge or payment"
    ordering = ("-id",)


@admin.register(Payout)
class PayoutAdmin(ActionsAdmin):
    """Payouts, and what staff may do with them."""

    list_display = (
        "created_at",
        organization,
        "amount_cents",
        "currency",
        "state",
        "hold_reason",
        "attempts",
        "reference",
        "failure",
    )
    list_filter = ("state", ("created_at", Days))
    search_fields = ("=id", "=organization_id", "=reference")
    search_help_text = "Id, organization's number or the provider's reference"
    ordering = ("-id",)
    staff_actions = PAYOUT_ACTIONS
