"""Top-ups: requested, booked once when their payment arrives, taken back when it is reversed.

Providers report in any order and more than once. A report is recorded first and compared with the
ledger in a second transaction, so that the later of two concurrent reports sees both.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Sum

from billing import consumer_credits, ledger
from billing.errors import PaymentProviderUnavailable, TopUpsTooOften
from billing.models.ledger import AccountKind, Journal
from billing.models.topups import PaymentReversal, TopUp
from billing.money import UCR_PER_CENT
from billing.payouts.providers import PayoutProviderUnavailable
from billing.topups.providers import Payment, provider
from common.errors import InvalidRequest
from outbox.messages.templates import console_link

log = structlog.get_logger(__name__)

MAX_TOP_UPS_AN_HOUR: Final = 20
# Of less, the provider's fees take too large a part.
MIN_CENTS: Final = 500
ACTOR: Final = "provider"


@dataclass(frozen=True, slots=True)
class OpenedTopUp:
    """A top-up, and the page where it is paid."""

    top_up: TopUp
    url: str


def request(organization_id: int, amount_cents: int, *, by: str, now: datetime) -> OpenedTopUp:
    """Open a page where credits are paid for; nothing is booked until the payment arrives.

    Raises InvalidRequest for less than the minimum, TopUpsTooOften, TopUpsUnavailable, and
    PaymentProviderUnavailable.
    """
    if amount_cents < MIN_CENTS:
        raise InvalidRequest.for_field("amount_cents", f"At least {MIN_CENTS} cents.")
    open_page = provider()
    with transaction.atomic():
        # Concurrent requests are counted one after another.
        ledger.locked([(AccountKind.PAID, organization_id)])
        recent = TopUp.objects.filter(
            organization_id=organization_id,
            created_at__gt=now - timedelta(hours=1),
            paid_at=None,
        )
        if recent.count() >= MAX_TOP_UPS_AN_HOUR:
            raise TopUpsTooOften
        top_up = TopUp.objects.create(
            organization_id=organization_id,
            amount_cents=amount_cents,
            currency=settings.BILLING.currency,
            requested_by=by,
            created_at=now,
        )
    # Committed before the provider is asked: a payment finds its row.
    try:
        page = open_page(
            top_up,
            paid_url=console_link("usage", top_up="paid"),
            left_url=console_link("usage", top_up="left"),
        )
    except PayoutProviderUnavailable:
        raise PaymentProviderUnavailable from None
    TopUp.objects.filter(pk=top_up.pk).update(session=page.session)
    return OpenedTopUp(top_up, page.url)


def paid(payment: Payment, *, now: datetime) -> None:
    """Book a payment's credits, once; one that does not fit its top-up books nothing."""
    with transaction.atomic():
        top_up = _locked(payment.top_up_id)
        if top_up is None or not _fits(payment, top_up):
            log.error("billing_payment_not_ours", payment=payment.payment)
            return
        if not top_up.payment:
            top_up.payment, top_up.session = payment.payment, payment.session
            top_up.paid_at = now
            top_up.save(update_fields=["payment", "session", "paid_at"])
            consumer_credits.top_up(
                top_up.organization_id,
                top_up.amount_cents * UCR_PER_CENT,
                reference=top_up.payment,
                reason="Credits bought",
                actor=ACTOR,
            )
    take_back(payment.payment)


def given_back(key: str, payment: str, amount_cents: int) -> None:
    """Take back what was refunded or disputed of a payment, also of one that arrives later.

    key: the provider's id of the dispute or charge. amount_cents: all that it has given back; less
    than it had given back before changes nothing.
    """
    fields = {"payment": payment, "amount_cents": amount_cents}
    PaymentReversal.objects.get_or_create(key=key, defaults=fields)
    rows = PaymentReversal.objects.filter(key=key, amount_cents__lt=amount_cents)
    rows.update(amount_cents=amount_cents)
    take_back(payment)


def take_back(payment: str) -> None:
    """Take back what a provider has reported of a payment, once it is booked."""
    with transaction.atomic():
        # The ledger says what was booked, by hand as well.
        if not Journal.objects.filter(key=f"top_up:{payment}").exists():
            # It has not arrived yet, or it is a payment for something else.
            return
        rows = PaymentReversal.objects.filter(payment=payment)
        total_cents = rows.aggregate(total=Sum("amount_cents"))["total"] or 0
        if total_cents:
            total_ucr = total_cents * UCR_PER_CENT
            consumer_credits.charge_back(
                payment, total_ucr, reason="The payment was reversed", actor=ACTOR
            )


def _locked(top_up_id: str) -> TopUp | None:
    try:
        known = UUID(top_up_id)
    except ValueError:
        return None
    return TopUp.objects.select_for_update().filter(pk=known).first()


def _fits(payment: Payment, top_up: TopUp) -> bool:
    """True if the provider took what was asked for, for the organization that asked."""
    return (
        payment.organization_id == str(top_up.organization_id)
        and payment.amount_cents == top_up.amount_cents
        and payment.currency.upper() == top_up.currency
        # The answer that held the session's id may have been lost.
        and top_up.session in {"", payment.session}
        and top_up.payment in {"", payment.payment}
    )
