"""Events count only with a fresh signature of Stripe's."""

from dataclasses import replace

import pytest
from pytest_django import Settings

from billing.models.topups import PaymentReversal
from tests.billing.stripe.server import Stripe, event, signature
from tests.billing.stripe.support import post

CHARGE = {"id": "ch_1", "payment_intent": "pi_1", "amount_refunded": 100}
BODY = event("charge.refunded", CHARGE)
OTHER = "whsec_of_somebody_else"

REFUSED = {
    "none": (BODY, ""),
    "another secret": (BODY, signature(BODY, secret=OTHER)),
    "too old": (BODY, signature(BODY, age_s=301)),
    "another body": (BODY.replace(b"100", b"999"), signature(BODY)),
    "no scheme that counts": (BODY, signature(BODY).replace("v1=", "v2=")),
    "no time": (BODY, signature(BODY).partition(",")[2]),
    "not ASCII": (BODY, "t=1,v1=é"),
    "not UTF-8": (b"\xff", signature(b"\xff")),
    "nothing at all": (b"", signature(b"")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_event_without_a_valid_signature_is_refused(stripe: Stripe, case: str) -> None:
    answer = post(*REFUSED[case])
    assert (answer.status, answer.code) == (400, "webhook_signature_invalid")
    assert not PaymentReversal.objects.exists()


def test_while_the_secret_is_rolled_over_one_of_two_signatures_is_enough(stripe: Stripe) -> None:
    both = signature(BODY, secret=OTHER) + "," + signature(BODY).partition(",")[2]
    assert post(BODY, both).status == 204
    assert PaymentReversal.objects.get().amount_cents == 100


@pytest.mark.parametrize("is_known", [True, False])
def test_without_a_secret_every_event_is_refused(
    stripe: Stripe, settings: Settings, *, is_known: bool
) -> None:
    settings.STRIPE = replace(settings.STRIPE, webhook_secret="")
    if not is_known:
        settings.PAYMENT_WEBHOOKS = {}
    answer = post(BODY, signature(BODY, secret=""))
    assert answer.code == "webhook_signature_invalid"


@pytest.mark.parametrize("body", [b"{}", b"[1]", b"{", event("charge.refunded", {})])
def test_an_event_of_another_form_is_refused(stripe: Stripe, body: bytes) -> None:
    answer = post(body, signature(body))
    assert (answer.status, answer.code) == (400, "malformed_json")


def test_an_event_of_no_interest_changes_nothing(stripe: Stripe) -> None:
    body = event("customer.created", {})
    assert post(body, signature(body)).status == 204


def test_a_long_body_is_refused(stripe: Stripe) -> None:
    body = b"x" * (2**18 + 1)
    assert post(body, signature(body)).code == "payload_too_large"
