"""What staff may do in billing, each with a reason and an audit event."""

from typing import Final

from django.db import transaction
from django.utils import timezone

from audit import trail
from billing import debts
from billing.audit_tags import BillingTag
from billing.models.payouts import Payout
from billing.models.usage import Charge, UsageLine
from billing.money import credits_text
from billing.payouts import manual, requests
from billing.payouts.providers import PayoutOutcome, ProviderAnswer
from common.admin.actions import ConfirmedAction, StaffAction

CENTS: Final = 100


def hold(confirmed: ConfirmedAction, payout: Payout) -> bool:
    """Stop a payout that was not sent yet. Raises PayoutRefused."""
    with transaction.atomic():
        if requests.locked(payout.pk).hold_reason:
            return False
        requests.hold(payout.pk, reason=confirmed.reason)
        _note(confirmed, BillingTag.ADMIN_PAYOUT_HOLD, payout)
    return True


def approve(confirmed: ConfirmedAction, payout: Payout) -> bool:
    """Let a held payout go on. Raises PayoutRefused."""
    with transaction.atomic():
        if not requests.locked(payout.pk).hold_reason:
            return False
        requests.hold(payout.pk, reason="")
        _note(confirmed, BillingTag.ADMIN_PAYOUT_APPROVE, payout)
    return True


def mark_paid(confirmed: ConfirmedAction, payout: Payout) -> bool:
    """Confirm a payout by hand that the bank has carried out. Raises PayoutRefused."""
    # The operator reads the reference; the audit event names the staff member.
    answer = ProviderAnswer(PayoutOutcome.CONFIRMED, reference="by staff")
    return _settle(confirmed, payout, answer, BillingTag.ADMIN_PAYOUT_CONFIRM)


def mark_failed(confirmed: ConfirmedAction, payout: Payout) -> bool:
    """Return the amount of a payout by hand to its operator. Raises PayoutRefused."""
    answer = ProviderAnswer(PayoutOutcome.REFUSED, failure=confirmed.reason)
    return _settle(confirmed, payout, answer, BillingTag.ADMIN_PAYOUT_REVERSE)


def refund(confirmed: ConfirmedAction, line: UsageLine) -> bool:
    """Refund a usage line's cost; its operator's share is taken back."""
    with transaction.atomic():
        journal = debts.refund(
            line.organization_id,
            [line.pk],
            key=f"refund:{confirmed.key}:{line.pk}",
            reason=confirmed.reason,
            actor=confirmed.actor,
        )
        if journal is None or not journal.entries.exists():
            # Without entries, neither the journal nor its event is kept.
            transaction.set_rollback(True)
            return False
        trail.record_staff(
            confirmed.request,
            BillingTag.ADMIN_USAGE_REFUND,
            organization_id=line.organization_id,
            line=str(line),
            journal=str(journal.pk),
            reason=confirmed.reason,
        )
    return True


def _payout_label(payout: Payout) -> str:
    amount = f"{payout.amount_cents // CENTS}.{payout.amount_cents % CENTS:02}"
    return (
        f"{amount} {payout.currency} to organization {payout.organization_id}, {payout.state},"
        f" requested {payout.created_at:%Y-%m-%d %H:%M} UTC"
    )


def _line_label(line: UsageLine) -> str:
    charge = Charge.objects.filter(line=line).first()
    cost = f"charged {credits_text(charge.charge_ucr)} credits" if charge else "not charged yet"
    return (
        f"organization {line.organization_id}, {line.used_at:%Y-%m-%d %H:%M} UTC: {line.quantity:,}"
        f" of {line.kind} in {line.bucket_name or 'SQL'}, {cost} ({line})"
    )


def _settle(
    confirmed: ConfirmedAction, payout: Payout, answer: ProviderAnswer, tag: BillingTag
) -> bool:
    with transaction.atomic():
        if requests.locked(payout.pk).state not in requests.OPEN:
            return False
        manual.settle(payout.pk, answer, now=timezone.now())
        _note(confirmed, tag, payout)
    return True


def _note(confirmed: ConfirmedAction, tag: BillingTag, payout: Payout) -> None:
    trail.record_staff(
        confirmed.request,
        tag,
        organization_id=payout.organization_id,
        payout=str(payout.pk),
        amount_cents=payout.amount_cents,
        reason=confirmed.reason,
    )


PAYOUT_ACTIONS: Final = (
    StaffAction(
        "hold",
        "Hold",
        "These payouts are not sent until they are approved.",
        hold,
        label=_payout_label,
    ),
    StaffAction(
        "approve",
        "Approve",
        "These held payouts are sent after all.",
        approve,
        label=_payout_label,
    ),
    StaffAction(
        "mark_paid",
        "Mark as paid",
        "The bank has carried these payouts out: they are confirmed in the ledger.",
        mark_paid,
        label=_payout_label,
    ),
    StaffAction(
        "mark_failed",
        "Mark as failed",
        "These payouts did not arrive: their amounts are payable to the operators again.",
        mark_failed,
        label=_payout_label,
    ),
)
LINE_ACTIONS: Final = (
    StaffAction(
        "refund",
        "Refund",
        "What these lines cost is given back to the consumers, and the operators' shares of it are "
        "taken back.",
        refund,
        label=_line_label,
    ),
)
