"""Payouts: requested, debited and queued in one transaction, sent once, confirmed or given back."""

from datetime import datetime
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from billing import ledger
from billing.errors import PayoutNotFound, PayoutRefused
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.payouts import Payout, PayoutMethod
from billing.models.quarantines import Quarantine
from billing.models.usage import Progress
from billing.money import UCR_PER_CENT, cents_of
from billing.payouts import methods
from billing.payouts.providers import PayoutOutcome, ProviderAnswer, sender_of
from common.jobs import job
from outbox.webhooks import events

log = structlog.get_logger(__name__)

OPEN: Final = (Payout.State.DEBITED, Payout.State.SENT)
BY_HAND: Final = "manual"
# The row of Progress that is there while payouts wait for ``reconciliation``.
RECONCILING: Final = "reconcile"
# Holds of quarantines, which end with them; those of older releases name the node.
QUARANTINED: Final = "a node is quarantined"
HELD_BEFORE: Final = "node [0-9a-f-]{36} is quarantined"
# The hold of ``reconciliation``.
RESTORED: Final = "restored from a backup: to be reconciled with the provider"


def request(organization_id: int, *, by: str, now: datetime) -> Payout:
    """Pay out all whole cents that are payable; the rest stays.

    Raises PayoutMethodNotFound, and PayoutRefused: the method cannot be used yet, a payout is open,
    a node is quarantined, or too little is payable.
    """
    with transaction.atomic():
        if Progress.objects.filter(pk=RECONCILING).exists():
            raise PayoutRefused("Payouts wait until staff has compared them with the provider.")
        payable = (AccountKind.PAYABLE, organization_id)
        # The second of two concurrent requests waits here, and finds the first one's payout.
        ledger.locked([payable])
        method = methods.current(organization_id)
        if not methods.is_offered(method):
            raise PayoutRefused("The payout method is not offered any more: set another one.")
        if method.usable_from > now:
            raise PayoutRefused(
                f"The payout method cannot be used until {method.usable_from:%F %R} UTC."
            )
        if Quarantine.undecided_of(organization_id).exists():
            raise PayoutRefused("A node is quarantined; payouts wait for staff's decision.")
        if Payout.objects.filter(organization_id=organization_id, state__in=OPEN).exists():
            raise PayoutRefused("Another payout is on its way.")
        cents = cents_of(ledger.balance(*payable))
        if cents < settings.BILLING.payout_minimum_cents:
            raise PayoutRefused(
                f"{max(cents, 0)} cents are payable; the smallest payout is "
                f"{settings.BILLING.payout_minimum_cents}."
            )
        payout = _debit(method, cents, by=by)
        _queue(payout)
        _emit(payout)
        return payout


def record(organization_id: int, cents: int, *, reference: str, by: str, now: datetime) -> Payout:
    """Record a payment that the provider made and that is missing after a restore from backup.

    Once for each reference.

    Raises PayoutMethodNotFound, and PayoutRefused while another payout to the method is open, and
    for a reference of another amount.
    """
    with transaction.atomic():
        ledger.locked([(AccountKind.PAYABLE, organization_id)])
        mine = Payout.objects.filter(organization_id=organization_id)
        same = mine.filter(reference=reference)
        known = same.filter(amount_cents=cents).first()
        if known is not None:
            return known
        other = same.exclude(state=Payout.State.REVERSED).first()
        if other is not None:
            raise PayoutRefused(
                f"This reference is that of payout {other.pk}, of {other.amount_cents} cents."
            )
        if mine.filter(state__in=OPEN).exists():
            raise PayoutRefused("Another payout of it is open: reconcile that one first.")
        payout = _debit(methods.current(organization_id), cents, by=by)
        answer = ProviderAnswer(PayoutOutcome.CONFIRMED, reference=reference)
        return settle_answer(payout.pk, answer, now=now)


def cancel(organization_id: int, payout_id: UUID, *, by: str, now: datetime) -> Payout:
    """Cancel a payout that was not sent yet; its amount is payable again.

    Raises PayoutNotFound, PayoutRefused.
    """
    with transaction.atomic():
        payout = locked(payout_id)
        if payout.organization_id != organization_id:
            raise PayoutNotFound
        if payout.state != Payout.State.DEBITED or payout.attempts:
            raise PayoutRefused("The payout has been sent.")
        if payout.hold_reason:
            # Otherwise it could be requested again, without the hold.
            raise PayoutRefused("The payout is being checked.")
        return _reverse(payout, "cancelled", actor=by, now=now)


def send(payout_id: UUID, *, now: datetime) -> Payout:
    """Send a payout, or ask for its state; safe to repeat at any point.

    Raises PayoutProviderUnavailable, so that the job runs again, and PayoutNotFound.
    """
    with transaction.atomic():
        payout = locked(payout_id)
        if payout.state not in OPEN or payout.hold_reason:
            return payout
        provider = sender_of(payout.method.kind)
        is_first = payout.attempts == 0
        if is_first and Quarantine.undecided_of(payout.organization_id).exists():
            # It was requested while the quarantine was recorded, each unseen by the other.
            payout.hold_reason = QUARANTINED
            payout.save(update_fields=["hold_reason"])
            return payout
        payout.attempts += 1
        payout.save(update_fields=["attempts"])
    # Committed before the provider is asked: a later attempt knows that it may have paid.
    answer = ProviderAnswer(PayoutOutcome.UNKNOWN) if is_first else provider.find(payout)
    if answer.outcome == PayoutOutcome.UNKNOWN:
        answer = provider.send(payout)
    return settle_answer(payout_id, answer, now=now)


def settle_answer(payout_id: UUID, answer: ProviderAnswer, *, now: datetime) -> Payout:
    """Record what the provider says of a payout; late, repeated and reordered answers are fine.

    Raises PayoutNotFound.
    """
    with transaction.atomic():
        payout = locked(payout_id)
        if payout.state not in OPEN:
            if answer.outcome == PayoutOutcome.REFUSED and payout.state == Payout.State.CONFIRMED:
                # The provider took a payment back after it had confirmed it.
                return _reverse(payout, answer.failure, actor="provider", now=now)
            if answer.outcome == PayoutOutcome.CONFIRMED and payout.state == Payout.State.REVERSED:
                # Its amount is payable again, and was paid: staff has to settle this.
                log.error("billing_payout_paid_after_reversal", payout=str(payout.pk))
            return payout
        before = payout.state
        payout.reference = answer.reference or payout.reference
        payout.changed_at = now
        if answer.outcome == PayoutOutcome.REFUSED:
            return _reverse(payout, answer.failure, actor="provider", now=now)
        if answer.outcome == PayoutOutcome.CONFIRMED:
            payout.state = Payout.State.CONFIRMED
            _move(Journal.Kind.PAYOUT_CONFIRMED, payout, AccountKind.SENT, AccountKind.CASH)
        elif answer.outcome == PayoutOutcome.SENT:
            payout.state = Payout.State.SENT
        payout.save()
        if payout.state != before:
            _emit(payout)
        return payout


def hold(payout_id: UUID, *, reason: str) -> Payout:
    """Stop a payout that was not sent yet, or by hand; an empty reason lets it go on.

    One that staff held at the time of a backup waits for the provider's answer instead: its amount
    may have been paid otherwise since.

    Raises PayoutNotFound, PayoutRefused.
    """
    with transaction.atomic():
        payout = locked(payout_id)
        # After a restore sent payouts are held, too (reconciliation.py).
        is_released = payout.state in OPEN and payout.hold_reason and not reason
        if not is_released and not _can_be_stopped(payout):
            raise PayoutRefused("The payout has been sent.")
        is_suspect = Quarantine.undecided_of(payout.organization_id).exists()
        if is_released and is_suspect and not payout.attempts:
            raise PayoutRefused("A node is quarantined: decide about it first.")
        # Only a restore counts an attempt for a held payout.
        is_restored = is_released and payout.attempts and payout.method.kind != BY_HAND
        if is_restored and payout.hold_reason == RESTORED:
            raise PayoutRefused("Ask its provider first: manage.py runpayouts --reconcile.")
        payout.hold_reason = RESTORED if is_restored else reason
        payout.save(update_fields=["hold_reason"])
        if not payout.hold_reason:
            _queue(payout)
        return payout


def hold_unsent(organization_id: int) -> None:
    """Hold an operator's payouts for a quarantine; those that a provider has cannot be stopped."""
    with transaction.atomic():
        rows = Payout.objects.select_for_update(of=("self",)).select_related("method")
        for payout in rows.filter(organization_id=organization_id, state__in=OPEN, hold_reason=""):
            if _can_be_stopped(payout):
                payout.hold_reason = QUARANTINED
                payout.save(update_fields=["hold_reason"])


def release_cleared() -> None:
    """Let payouts go on that quarantines held, where staff has decided about all of these."""
    rows = Payout.objects.filter(hold_reason__regex=f"^({QUARANTINED}|{HELD_BEFORE})$")
    for payout in rows.filter(state__in=OPEN):
        if not Quarantine.undecided_of(payout.organization_id).exists():
            hold(payout.pk, reason="")


def waits_for_answer(organization_id: int) -> bool:
    """True if a payout may have been paid: one by hand, or one that was held since a restore."""
    rows = Payout.objects.filter(organization_id=organization_id, state__in=OPEN, attempts__gt=0)
    return rows.filter(Q(method__kind=BY_HAND) | ~Q(hold_reason="")).exists()


def reverse_unsent(organization_id: int, failure: str, *, actor: str, now: datetime) -> None:
    """Make payouts that were never sent payable again, held ones as well."""
    with transaction.atomic():
        rows = Payout.objects.select_for_update().filter(
            organization_id=organization_id, state=Payout.State.DEBITED, attempts=0
        )
        for payout in rows:
            _reverse(payout, failure, actor=actor, now=now)


def locked(payout_id: UUID) -> Payout:
    """Return a payout that no other transaction changes now. Raises PayoutNotFound."""
    rows = Payout.objects.select_for_update(of=("self",)).select_related("method")
    payout = rows.filter(pk=payout_id).first()
    if payout is None:
        raise PayoutNotFound
    return payout


def open_payouts() -> list[Payout]:
    """Return the payouts that are debited or sent, oldest first."""
    return list(Payout.objects.filter(state__in=OPEN).select_related("method").order_by("id"))


def _can_be_stopped(payout: Payout) -> bool:
    """True if no provider may have it; one by hand is ``sent`` while staff has yet to pay it."""
    is_unsent = payout.state == Payout.State.DEBITED and not payout.attempts
    return is_unsent or (payout.state in OPEN and payout.method.kind == BY_HAND)


def _debit(method: PayoutMethod, cents: int, *, by: str) -> Payout:
    payout = Payout.objects.create(
        organization_id=method.organization_id,
        method=method,
        amount_cents=cents,
        amount_ucr=cents * UCR_PER_CENT,
        currency=settings.BILLING.currency,
        state=Payout.State.DEBITED,
        requested_by=by,
    )
    _move(Journal.Kind.PAYOUT, payout, AccountKind.PAYABLE, AccountKind.SENT, actor=by)
    return payout


def _reverse(payout: Payout, failure: str, *, actor: str, now: datetime) -> Payout:
    source = AccountKind.CASH if payout.state == Payout.State.CONFIRMED else AccountKind.SENT
    _move(Journal.Kind.PAYOUT_REVERSED, payout, source, AccountKind.PAYABLE, actor=actor)
    payout.state = Payout.State.REVERSED
    payout.failure, payout.changed_at = failure[:500], now
    payout.save()
    _emit(payout)
    log.warning("billing_payout_reversed", payout=str(payout.pk), failure=failure)
    return payout


def _emit(payout: Payout) -> None:
    data = {
        "payout_id": str(payout.pk),
        "state": str(payout.state),
        "amount_cents": payout.amount_cents,
        "currency": payout.currency,
    }
    events.emit(payout.organization_id, "payout.state_changed", data)


def _move(
    kind: Journal.Kind,
    payout: Payout,
    source: AccountKind,
    target: AccountKind,
    *,
    actor: str = "task",
) -> None:
    def owner(account: AccountKind) -> int | None:
        return payout.organization_id if account == AccountKind.PAYABLE else None

    ledger.post(
        kind,
        f"{kind}:{payout.pk}",
        [
            Posting(source, owner(source), -payout.amount_ucr),
            Posting(target, owner(target), payout.amount_ucr),
        ],
        actor=actor,
    )


def _queue(payout: Payout) -> None:
    # In the same transaction: a payout that is debited will be sent.
    job("billing.tasks.send_payout").defer(payout_id=str(payout.pk))
