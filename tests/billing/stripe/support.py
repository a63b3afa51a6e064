"""Delivering events as Stripe does."""

from typing import Any

from billing.models.payouts import ConnectedAccount
from tests.billing.stripe.server import ACCOUNT, event, signature
from tests.cast import Answer, Caller


def post(body: bytes, header: str) -> Answer:
    """Send a body with a signature."""
    path = "/v1/billing/webhooks/stripe"
    return Caller().call("POST", path, body, STRIPE_SIGNATURE=header)


def delivered(kind: str, thing: dict[str, Any], **fields: Any) -> Answer:
    """Deliver an event about an object."""
    body = event(kind, thing, **fields)
    return post(body, signature(body))


def own(organization_id: int) -> None:
    """Let the connected account be one that was opened for an organization."""
    fields = {"kind": "stripe", "account": ACCOUNT, "created_by": "x"}
    ConnectedAccount.objects.get_or_create(organization_id=organization_id, defaults=fields)
