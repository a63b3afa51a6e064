"""Delivering events as Stripe does."""

from typing import Any

from tests.cast import Answer, Caller
from tests.edgecache.billing.stripe.server import event, signature


def post(body: bytes, header: str) -> Answer:
    """Send a body with a signature."""
    path = "/v1/billing/webhooks/stripe"
    return Caller().call("POST", path, body, STRIPE_SIGNATURE=header)


def delivered(kind: str, thing: dict[str, Any], **fields: Any) -> Answer:
    """Deliver an event about an object."""
    body = event(kind, thing, **fields)
    return post(body, signature(body))
