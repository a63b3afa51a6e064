"""Billing in the admin: the ledger, rates, usage and payouts; only payouts can be acted on."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.admin import TabularInline

from accounts.admin import ReadOnlyAdmin
from edgecache.billing.models import (
    Account,
    Entry,
    Journal,
    Payout,
    PayoutMethod,
    Rate,
    RejectedLine,
    UsageLine,
)
from edgecache.billing.money import credits_text
from edgecache.billing.payouts import payouts
from edgecache.billing.payouts.providers import Outcome, ProviderAnswer
from platform_site.lib.errors import PlatformError


@admin.register(Account)
class AccountAdmin(ReadOnlyAdmin):
    """What everyone has."""

    list_display = ("kind", "organization_id", "balance")
    list_filter = ("kind",)
    search_fields = ("=organization_id",)

    @admin.display(description="Credits", ordering="balance_ucr")
    def balance(self, account: Account) -> str:
        """Return the balance in credits."""
        return credits_text(account.balance_ucr)


class EntryInline(TabularInline):  # type: ignore[misc]  # unfold ships no types
    """The sides of a journal."""

    model = Entry
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
    list_filter = ("kind",)
    search_fields = ("=key", "actor", "reason")
    date_hierarchy = "posted_at"
    inlines = (EntryInline,)


@admin.register(Rate)
class RateAdmin(ReadOnlyAdmin):
    """What usage costs; ``manage.py setrate`` adds a rate."""

    list_display = ("kind", "rate_ucr", "begins_at")
    list_filter = ("kind",)


@admin.register(UsageLine)
class UsageLineAdmin(ReadOnlyAdmin):
    """What was used."""

    list_display = ("used_at", "organization_id", "bucket_name", "kind", "quantity", "operator_id")
    list_filter = ("kind",)
    search_fields = ("=line_id", "=organization_id", "=operator_id")
    # Counting millions of lines takes longer than the page.
    show_full_result_count = False


@admin.register(RejectedLine)
class RejectedLineAdmin(ReadOnlyAdmin):
    """Usage lines that were not accepted, and why."""

    list_display = ("created_at", "line_id", "reason")
    list_filter = ("reason",)


@admin.register(PayoutMethod)
class PayoutMethodAdmin(ReadOnlyAdmin):
    """How operators are paid."""

    list_display = ("organization_id", "kind", "usable_from", "removed_at", "created_by")
    list_filter = ("kind",)
    search_fields = ("=organization_id",)


@admin.register(Payout)
class PayoutAdmin(ReadOnlyAdmin):
    """Payouts, and what staff may do with them."""

    list_display = (
        *("created_at", "organization_id", "amount_cents", "currency", "state", "hold_reason"),
        *("attempts", "reference", "failure"),
    )
    list_filter = ("state", "currency")
    search_fields = ("=id", "=organization_id", "=reference")
    actions = ("hold", "release", "mark_paid", "mark_failed")

    @admin.action(description="Hold: do not send it yet")
    def hold(self, request: HttpRequest, rows: QuerySet[Payout]) -> None:
        """Stop payouts that were not sent yet."""
        self._each(
            request, rows, lambda row: payouts.hold(row.pk, reason=f"held by {_name(request)}")
        )

    @admin.action(description="Release: send it after all")
    def release(self, request: HttpRequest, rows: QuerySet[Payout]) -> None:
        """Let held payouts go on."""
        self._each(request, rows, lambda row: payouts.hold(row.pk, reason=""))

    @admin.action(description="Mark as paid by hand")
    def mark_paid(self, request: HttpRequest, rows: QuerySet[Payout]) -> None:
        """Confirm payouts by hand that the bank has carried out."""
        answer = ProviderAnswer(Outcome.CONFIRMED, reference=f"by {_name(request)}")
        self._settle(request, rows, answer)

    @admin.action(description="Mark as failed: its amount is payable again")
    def mark_failed(self, request: HttpRequest, rows: QuerySet[Payout]) -> None:
        """Return the amounts of payouts by hand to the operators."""
        answer = ProviderAnswer(Outcome.REFUSED, failure=f"marked by {_name(request)}")
        self._settle(request, rows, answer)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow the actions on the list; a single payout is not edited."""
        return obj is None and bool(request.user.is_staff)

    def _settle(self, request: HttpRequest, rows: QuerySet[Payout], answer: ProviderAnswer) -> None:
        by_hand = rows.filter(method__kind="manual")
        self._each(
            request, by_hand, lambda row: payouts.settle_answer(row.pk, answer, now=timezone.now())
        )

    def _each(
        self, request: HttpRequest, rows: QuerySet[Payout], work: Callable[[Payout], Any]
    ) -> None:
        done = 0
        for row in rows:
            try:
                work(row)
            except PlatformError as exc:
                messages.error(request, f"{row.pk}: {exc.detail or exc.title}")
            else:
                self.log_change(request, row, "payout action")
                done += 1
        messages.success(request, f"{done} of {rows.count()} payouts changed.")


def _name(request: HttpRequest) -> str:
    return str(getattr(request.user, "email", "staff"))
