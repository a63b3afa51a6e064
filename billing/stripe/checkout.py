"""Top-ups paid on a page of Stripe's (https://docs.stripe.com/api/checkout/sessions)."""

from billing.models.topups import TopUp
from billing.payouts.providers import PayoutProviderUnavailable
from billing.stripe.account import StripeRefusal, calls, client
from billing.topups.providers import Checkout


def checkout(top_up: TopUp, *, paid_url: str, left_url: str) -> Checkout:
    """Open the page where a top-up is paid; the same one for the same top-up.

    paid_url, left_url: where it sends the browser afterwards. Neither proves a payment, which is
    reported by webhook. Raises PayoutProviderUnavailable.
    """
    try:
        with calls():
            session = client().v1.checkout.sessions.create(
                {
                    "mode": "payment",
                    "client_reference_id": str(top_up.pk),
                    "metadata": {
                        "top_up": str(top_up.pk),
                        "organization": str(top_up.organization_id),
                    },
                    "line_items": [
                        {
                            "quantity": 1,
                            "price_data": {
                                "currency": top_up.currency.lower(),
                                "unit_amount": top_up.amount_cents,
                                "product_data": {"name": "Credits"},
                            },
                        }
                    ],
                    # A conversion to the payer's own currency would change the amount.
                    "adaptive_pricing": {"enabled": False},
                    "success_url": paid_url,
                    "cancel_url": left_url,
                },
                {"idempotency_key": str(top_up.pk)},
            )
    except StripeRefusal:
        # The platform's own request: the caller cannot act on a refusal.
        raise PayoutProviderUnavailable from None
    name, url = getattr(session, "id", ""), getattr(session, "url", None) or ""
    if not name or not url.startswith("https://"):
        raise PayoutProviderUnavailable
    return Checkout(name, url)
