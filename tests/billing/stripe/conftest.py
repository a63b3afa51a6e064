"""A platform with an account at a Stripe on loopback."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.conf import settings as configured
from pytest_django import Settings

from tests.billing.stripe.server import KEY, WEBHOOK_SECRET, Stripe, serving


@pytest.fixture(scope="package")
def stripe_server() -> Iterator[Stripe]:
    """Run one server for all tests."""
    with serving() as server:
        yield server


@pytest.fixture
def stripe(stripe_server: Stripe, settings: Settings) -> Stripe:
    """Return an empty Stripe that the platform is configured for."""
    url = stripe_server.url
    stripe_server.__dict__.update(Stripe(url=url).__dict__)
    stripe_server.connect()
    settings.STRIPE = replace(
        settings.STRIPE, secret_key=KEY, webhook_secret=WEBHOOK_SECRET, api_base=url
    )
    settings.TOP_UP_PROVIDER = configured.STRIPE_CHECKOUT
    settings.PAYMENT_WEBHOOKS = configured.STRIPE_EVENTS
    settings.PAYOUT_METHODS = configured.PAYOUT_METHODS | configured.STRIPE_PAYOUTS
    return stripe_server
