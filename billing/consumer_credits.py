"""Credits of consumers: granted by staff, bought, and taken back."""

import re
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Sum

from billing import debts, ledger
from billing.errors import JournalRefused
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Entry, Journal
from billing.money import MAX_UCR, UCR_PER_CREDIT

LARGEST_AMOUNT_UCR: Final = 10**11 * UCR_PER_CREDIT


def grant(
    organization_id: int, amount_ucr: int, *, key: str, reason: str, actor: str
) -> Journal | None:
    """Grant credits, which pay fees but never operators; None if the key was used before.

    Raises JournalRefused for an amount that is not positive.
    """
    _require_positive(amount_ucr)
    with transaction.atomic():
        journal = ledger.post(
            Journal.Kind.GRANT,
            key,
            [
                Posting(AccountKind.GRANTED, organization_id, amount_ucr),
                Posting(AccountKind.GRANTS, None, -amount_ucr),
            ],
            reason=reason,
            actor=actor,
        )
        if journal is not None:
            debts.cover(organization_id)
    return journal


def welcome(organization_id: int) -> None:
    """Grant a new organization its first credits, once."""
    amount_ucr = settings.BILLING.welcome_credits * UCR_PER_CREDIT
    if amount_ucr:
        grant(
            organization_id,
            amount_ucr,
            key=f"welcome:{organization_id}",
            reason="Credits of a new organization",
            actor="task",
        )


def top_up(
    organization_id: int, amount_ucr: int, *, reference: str, reason: str, actor: str
) -> Journal | None:
    """Book credits that were paid for, and cover older debts.

    reference: the payment's unique id; None is returned if it was booked before.

    Raises JournalRefused for an amount that is not positive.
    """
    _require_positive(amount_ucr)
    with transaction.atomic():
        journal = ledger.post(
            Journal.Kind.TOP_UP,
            f"top_up:{reference}",
            [
                Posting(AccountKind.PAID, organization_id, amount_ucr),
                Posting(AccountKind.CASH, None, -amount_ucr),
            ],
            reason=reason,
            actor=actor,
        )
        if journal is not None:
            debts.cover(organization_id)
    return journal


def charge_back(
    reference: str, total_ucr: int = MAX_UCR, /, *, reason: str, actor: str
) -> Journal | None:
    """Take back a payment that the payer's bank reversed; None if that was booked before.

    total_ucr: the sum reversed so far, by default all; earlier reversals are not booked again.

    Remaining credits are taken first. For the rest the newest paid lines become debts again, and
    their operators' shares are reversed, even after the hold.

    Raises JournalRefused without such a payment.
    """
    with transaction.atomic():
        booked = Journal.objects.filter(key=f"top_up:{reference}").first()
        if booked is None:
            raise JournalRefused("No payment has this reference.")
        entry = booked.entries.select_related("account").get(account__kind=AccountKind.PAID)
        organization_id = entry.account.organization_id or 0
        ledger.locked([(AccountKind.PAID, organization_id)])
        total_ucr = min(entry.amount_ucr, total_ucr)
        amount_ucr = total_ucr - _taken_back(reference)
        if amount_ucr <= 0:
            return None
        key = f"chargeback:{reference}:{total_ucr}"
        journal = ledger.open_journal(Journal.Kind.CHARGEBACK, key, reason=reason, actor=actor)
        if journal is None:
            raise RuntimeError("the accounts were not locked")
        left_ucr = min(amount_ucr, ledger.balance(AccountKind.PAID, organization_id))
        owed_ucr = amount_ucr - left_ucr
        ledger.add_entries(
            journal,
            [
                Posting(AccountKind.CASH, None, amount_ucr),
                Posting(AccountKind.PAID, organization_id, -left_ucr),
                Posting(AccountKind.DEBT, organization_id, -owed_ucr),
                *debts.reopen(journal, organization_id, owed_ucr),
            ],
        )
        debts.cover(organization_id)
        return journal


def _taken_back(reference: str) -> int:
    entries = Entry.objects.filter(
        journal__kind=Journal.Kind.CHARGEBACK,
        journal__key__regex=f"^chargeback:{re.escape(reference)}:[0-9]+$",
        account__kind=AccountKind.CASH,
    )
    return entries.aggregate(total=Sum("amount_ucr"))["total"] or 0


def _require_positive(amount_ucr: int) -> None:
    if not 0 < amount_ucr <= LARGEST_AMOUNT_UCR:
        # The platform's accounts are the sums of all: one slip must not fill them.
        raise JournalRefused("The amount must be positive, and at most 100,000,000,000 credits.")
