"""Billing in the admin."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from edgecache.billing import consumer_credits, ledger, settlement
from edgecache.billing.ledger import Posting
from edgecache.billing.models import AccountKind, Journal, Payout
from edgecache.billing.money import UCR_PER_CENT
from edgecache.billing.payouts import methods, payouts
from tests.edgecache.billing.support import NOW, OLGA, line, operator, store
from tests.staff import staff_client

PAGES = ("account", "journal", "rate", "usageline", "rejectedline", "payoutmethod", "payout")


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Client:
    return staff_client(monkeypatch)


@pytest.fixture
def payout(settings: Settings) -> Payout:
    settings.BILLING = replace(settings.BILLING, payout_minimum_cents=1)
    methods.replace(OLGA, "manual", {"account": "DE00 3456"}, by="x", now=NOW)
    earned = 5 * UCR_PER_CENT
    ledger.post(
        Journal.Kind.RELEASE,
        "earned",
        [
            Posting(AccountKind.PAYABLE, OLGA, earned),
            Posting(AccountKind.FEES, None, -earned),
        ],
    )
    return payouts.request(OLGA, by="x", now=NOW + timedelta(days=4))


def act(browser: Client, action: str, payout: Payout) -> None:
    body = {"action": action, "_selected_action": str(payout.pk)}
    assert browser.post("/admin/billing/payout/", body, follow=True).status_code == 200
    payout.refresh_from_db()


@pytest.mark.parametrize("name", PAGES)
def test_staff_see_billing(inside: Client, payout: Payout, name: str) -> None:
    consumer_credits.top_up(1, 1000, reference="x", reason="x", actor="x")
    store(line(hits=1), line(hits=-1))
    settlement.settle()
    assert inside.get(f"/admin/billing/{name}/").status_code == 200


def test_a_journal_shows_its_entries_and_cannot_be_changed(inside: Client, payout: Payout) -> None:
    journal = Journal.objects.get(key="earned")
    page = inside.get(f"/admin/billing/journal/{journal.pk}/change/")
    assert str(5 * UCR_PER_CENT) in page.content.decode()
    assert inside.post(f"/admin/billing/journal/{journal.pk}/change/", {}).status_code == 403
    assert inside.post(f"/admin/billing/payout/{payout.pk}/change/", {}).status_code == 403


def test_staff_hold_release_and_mark_a_payout(inside: Client, payout: Payout) -> None:
    act(inside, "hold", payout)
    assert payout.hold_reason.startswith("held by ")
    act(inside, "release", payout)
    assert payout.hold_reason == ""
    act(inside, "mark_failed", payout)
    assert (payout.state, operator()) == ("reversed", (0, 5 * UCR_PER_CENT, 0))
    act(inside, "mark_paid", payout)
    assert payout.state == "reversed"
