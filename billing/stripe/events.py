"""Events that Stripe sends (https://docs.stripe.com/webhooks), in any order and more than once."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
import stripe
import structlog
from django.conf import settings
from django.utils import timezone

from billing.errors import WebhookRefused
from billing.payouts import requests as payout_requests
from billing.payouts.providers import PayoutOutcome, ProviderAnswer
from billing.stripe.connect import REVERSED, payout_of
from billing.topups import requests as topup_requests
from billing.topups.providers import Payment
from common.errors import MalformedJson

log = structlog.get_logger(__name__)

TOLERANCE_S: Final = 300
Facts = Mapping[str, Any]


def receive(body: bytes, signature: str) -> None:
    """Carry out an event; unknown kinds of events are ignored.

    body: as it was sent. signature: the header ``Stripe-Signature``.

    Raises WebhookRefused, and MalformedJson for an event with unexpected fields.
    """
    try:
        stripe.WebhookSignature.verify_header(
            body, signature, settings.STRIPE.webhook_secret, TOLERANCE_S
        )
    # ValueError: not UTF-8. TypeError: a signature that is not ASCII.
    except (stripe.SignatureVerificationError, ValueError, TypeError):
        raise WebhookRefused from None
    try:
        event = orjson.loads(body)
        handle = HANDLERS.get(event["type"])
        if handle is not None and _is_ours(event):
            handle(event["data"]["object"])
    except (KeyError, TypeError, orjson.JSONDecodeError):
        log.exception("billing_event_not_understood")
        raise MalformedJson("The event has a form that is not understood.") from None


def _is_ours(event: Facts) -> bool:
    """True for an event of the platform's own account, with real money if its key is live.

    Events of connected accounts may contain any of the platform's ids.
    """
    is_live = settings.STRIPE.secret_key.startswith(("sk_live_", "rk_live_"))
    return not event.get("account") and event["livemode"] is is_live


def _transfer_reversed(transfer: Facts) -> None:
    payout = payout_of(transfer)
    if payout is None:
        # Possibly of a payout that a restore lost: staff compares what providers paid.
        log.error("billing_reversal_of_unknown_transfer", transfer=transfer["id"])
        return
    if not transfer["reversed"]:
        log.error("billing_transfer_partly_reversed", payout=str(payout.pk))
        return
    answer = ProviderAnswer(PayoutOutcome.REFUSED, reference=transfer["id"], failure=REVERSED)
    payout_requests.settle_answer(payout.pk, answer, now=timezone.now())


def _session_paid(session: Facts) -> None:
    metadata = session["metadata"] or {}
    # A delayed payment is reported by async_payment_succeeded.
    if session["payment_status"] != "paid" or "top_up" not in metadata:
        return
    topup_requests.paid(
        Payment(
            top_up_id=metadata["top_up"],
            organization_id=metadata["organization"],
            session=session["id"],
            payment=session["payment_intent"] or session["id"],
            amount_cents=session["amount_total"],
            currency=session["currency"],
        ),
        now=timezone.now(),
    )


def _charge_refunded(charge: Facts) -> None:
    if charge["payment_intent"] and charge["amount_refunded"] > 0:
        topup_requests.given_back(charge["id"], charge["payment_intent"], charge["amount_refunded"])


def _disputed(dispute: Facts) -> None:
    # An inquiry takes no money; if it becomes a dispute, funds_withdrawn follows.
    is_inquiry = dispute["status"].startswith("warning_")
    if dispute["payment_intent"] and dispute["amount"] > 0 and not is_inquiry:
        topup_requests.given_back(dispute["id"], dispute["payment_intent"], dispute["amount"])


HANDLERS: Final[Mapping[str, Callable[[Facts], None]]] = {
    "transfer.reversed": _transfer_reversed,
    "checkout.session.completed": _session_paid,
    "checkout.session.async_payment_succeeded": _session_paid,
    "charge.refunded": _charge_refunded,
    "charge.dispute.created": _disputed,
    "charge.dispute.funds_withdrawn": _disputed,
}
