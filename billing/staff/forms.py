"""Forms of staff about money: a rate from a later hour on, and credits of an organization."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.db import transaction
from django.utils import timezone

from audit import trail
from billing import consumer_credits, ledger
from billing.audit_tags import BillingTag
from billing.models.ledger import AccountKind
from billing.models.rates import Rate, UsageKind
from billing.money import UCR_PER_CREDIT, credits_text
from billing.topups import requests
from billing.usage import rates
from common.admin.actions import ConfirmedAction
from common.admin.forms import StaffForm, Values
from environments.models import Organization

FIELD: Final = {"class": "staff-field"}
MAX_CREDITS: Final = Decimal(consumer_credits.LARGEST_AMOUNT_UCR) / UCR_PER_CREDIT


class RateFields(forms.Form):
    """A kind of usage, its price, and the hour from which it is asked."""

    kind = forms.ChoiceField(choices=UsageKind.choices, widget=forms.Select(FIELD))
    rate_ucr = forms.IntegerField(
        label="Rate in µcr",
        min_value=0,
        widget=forms.NumberInput(FIELD),
        help_text="Of one response, statement, millisecond or byte; of storage, of a byte-month.",
    )
    begins_at = forms.DateTimeField(
        label="From (UTC)",
        widget=forms.DateTimeInput(FIELD | {"type": "datetime-local", "step": "3600"}),
        help_text="A full hour in the future. Usage keeps the rate of its hour.",
    )


class CreditsFields(forms.Form):
    """An organization, and how many credits it gets."""

    organization = forms.IntegerField(
        label="Organization's number", min_value=1, widget=forms.NumberInput(FIELD)
    )
    credits = forms.DecimalField(
        min_value=Decimal("0.000001"),
        max_value=MAX_CREDITS,
        decimal_places=6,
        widget=forms.NumberInput(FIELD),
    )
    is_paid = forms.BooleanField(
        label="They were paid for",
        required=False,
        help_text="Only paid credits earn operators a share.",
    )
    reference = forms.CharField(
        required=False,
        max_length=100,
        widget=forms.TextInput(FIELD),
        help_text="Of the payment, for paid credits. The same reference is booked once.",
    )

    def clean_organization(self) -> int:
        """Refuse the number of no organization."""
        number: int = self.cleaned_data["organization"]
        if not Organization.objects.filter(pk=number).exists():
            raise forms.ValidationError("There is no such organization.")
        return number

    def clean(self) -> dict[str, Any]:
        """Require the reference of a payment."""
        values: dict[str, Any] = super().clean() or {}
        if values.get("is_paid") and not values.get("reference"):
            self.add_error("reference", "A payment has a reference.")
        return values


def _describe_rate(values: Values) -> str:
    kind, begins_at = UsageKind(values["kind"]), values["begins_at"]
    rates.set_rate(
        kind, values["rate_ucr"], begins_at=begins_at, now=timezone.now(), is_dry_run=True
    )
    until_then = rates.in_force(now=begins_at)[kind]
    return (
        f"{kind.label}: {values['rate_ucr']} µcr from {_text(begins_at)} on, "
        f"instead of {until_then} µcr."
    )


def _set_rate(confirmed: ConfirmedAction, values: Values) -> bool:
    kind, begins_at = UsageKind(values["kind"]), values["begins_at"]
    fields = {"kind": kind, "rate_ucr": values["rate_ucr"], "begins_at": begins_at}
    with transaction.atomic():
        if Rate.objects.filter(**fields).exists():
            return False
        rates.set_rate(kind, values["rate_ucr"], begins_at=begins_at, now=timezone.now())
        trail.record_staff(
            confirmed.request,
            BillingTag.ADMIN_RATE_SET,
            organization_id=None,
            kind=str(kind),
            rate_ucr=values["rate_ucr"],
            begins_at=begins_at.isoformat(),
            reason=confirmed.reason,
        )
    return True


def _describe_credits(values: Values) -> str:
    number = values["organization"]
    name = Organization.objects.get(pk=number).name
    found = ledger.balances(number)
    left_ucr = sum(found.get(kind, 0) for kind in (AccountKind.GRANTED, AccountKind.PAID))
    return (
        f"{name} (organization {number}) gets {credits_text(_ucr(values))} "
        f"{'paid' if values['is_paid'] else 'granted'} credits. It has {credits_text(left_ucr)} "
        f"and owes {credits_text(-found.get(AccountKind.DEBT, 0))}."
    )


def _grant(confirmed: ConfirmedAction, values: Values) -> bool:
    number, amount_ucr, reference = values["organization"], _ucr(values), values["reference"]
    with transaction.atomic():
        if values["is_paid"]:
            journal = consumer_credits.top_up(
                number,
                amount_ucr,
                reference=reference,
                reason=confirmed.reason,
                actor=confirmed.actor,
            )
        else:
            key = f"grant:{reference or confirmed.key}"
            journal = consumer_credits.grant(
                number, amount_ucr, key=key, reason=confirmed.reason, actor=confirmed.actor
            )
        if journal is None:
            return False
        trail.record_staff(
            confirmed.request,
            BillingTag.ADMIN_CREDITS_GRANT,
            organization_id=number,
            amount_ucr=amount_ucr,
            is_paid=values["is_paid"],
            reference=reference,
            journal=str(journal.pk),
            reason=confirmed.reason,
        )
    if values["is_paid"]:
        # In its own transaction, as after a provider's report.
        requests.take_back(reference)
    return True


def _ucr(values: Values) -> int:
    return int(values["credits"] * UCR_PER_CREDIT)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


SET_RATE: Final = StaffForm("Set a rate", RateFields, _describe_rate, _set_rate)
GRANT_CREDITS: Final = StaffForm("Grant credits", CreditsFields, _describe_credits, _grant)
