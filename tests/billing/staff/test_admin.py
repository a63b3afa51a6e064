"""Billing in the admin."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from billing import consumer_credits, ledger
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.payouts import Payout, PayoutMethod
from billing.models.usage import UsageLine
from billing.money import UCR_PER_CENT
from billing.payouts import methods, requests
from billing.usage import charges_and_shares
from tests.billing.support import NOW, OLGA, line, operator, store
from tests.staff import staff_inside

pytestmark = pytest.mark.slow

PAGES = (
    "account",
    "journal",
    "rate",
    "usageline",
    "rejectedline",
    "payoutmethod",
    "payout",
    "quarantine",
)


@pytest.fixture
def inside(db: None) -> Client:
    return staff_inside()


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
    return requests.request(OLGA, by="x", now=NOW + timedelta(days=4))


def act(browser: Client, action: str, payout: Payout) -> str:
    """Confirm an action; return the page that follows."""
    body = {"action": action, "_selected_action": str(payout.pk)}
    asked = browser.post("/admin/billing/payout/", body).content.decode()
    assert 'name="reason"' in asked
    assert f"0.05 USD to organization {OLGA}, {payout.state}" in asked
    confirmed = body | {"confirmed": "1", "reason": f"{action}, as agreed"}
    page = browser.post("/admin/billing/payout/", confirmed, follow=True)
    payout.refresh_from_db()
    return page.content.decode()


def test_staff_see_billing(inside: Client, payout: Payout) -> None:
    consumer_credits.top_up(1, 1000, reference="x", reason="x", actor="x")
    store(line(hits=1), line(hits=-1))
    charges_and_shares.settle()
    for name in PAGES:
        assert inside.get(f"/admin/billing/{name}/").status_code == 200, name


def test_a_journal_shows_its_entries_and_cannot_be_changed(inside: Client, payout: Payout) -> None:
    journal = Journal.objects.get(key="earned")
    page = inside.get(f"/admin/billing/journal/{journal.pk}/change/")
    assert str(5 * UCR_PER_CENT) in page.content.decode()
    assert inside.post(f"/admin/billing/journal/{journal.pk}/change/", {}).status_code == 403
    assert inside.post(f"/admin/billing/payout/{payout.pk}/change/", {}).status_code == 403


def test_staff_hold_approve_and_mark_a_payout_once(inside: Client, payout: Payout) -> None:
    act(inside, "hold", payout)
    assert payout.hold_reason == "hold, as agreed"
    assert "approve it first" in act(inside, "mark_paid", payout)
    assert "nothing to do" in act(inside, "hold", payout)
    act(inside, "approve", payout)
    assert payout.hold_reason == ""
    act(inside, "mark_failed", payout)
    assert (payout.state, operator()) == ("reversed", (0, 5 * UCR_PER_CENT, 0))
    assert "nothing to do" in act(inside, "mark_paid", payout)
    assert payout.state == "reversed"
    events = AuditEvent.objects.filter(tag__startswith="admin:payout").order_by("id")
    assert [(event.tag, event.data["reason"]) for event in events] == [
        ("admin:payout:hold", "hold, as agreed"),
        ("admin:payout:approve", "approve, as agreed"),
        ("admin:payout:reverse", "mark_failed, as agreed"),
    ]


def test_the_operator_does_not_read_who_marked_a_payout(inside: Client, payout: Payout) -> None:
    act(inside, "mark_paid", payout)
    assert (payout.state, payout.reference) == ("confirmed", "by staff")
    assert "@" in AuditEvent.objects.get(tag="admin:payout:confirm").actor


def test_a_payout_of_a_provider_is_not_marked_by_hand(inside: Client, payout: Payout) -> None:
    PayoutMethod.objects.update(kind="stripe")
    assert "Its provider reports" in act(inside, "mark_paid", payout)
    assert payout.state == "debited"


def test_a_line_is_refunded_once_however_often_the_form_is_sent(inside: Client) -> None:
    consumer_credits.top_up(1, 10**9, reference="x", reason="x", actor="x")
    store(line(hits=1000))
    charges_and_shares.settle()
    charged = ledger.balance(AccountKind.PAID, 1)
    lines = [str(row.pk) for row in UsageLine.objects.all()]
    body = {"action": "refund", "_selected_action": lines, "confirmed": "1", "reason": "outage"}
    chosen = {name: body[name] for name in ("action", "_selected_action")}
    asked = inside.post("/admin/billing/usageline/", chosen).content.decode()
    assert "1,000 of hit in assets, charged 0.100000 credits" in asked

    for again in ({}, {}, {"confirmed": "2"}):
        inside.post("/admin/billing/usageline/", body | again)

    assert charged < ledger.balance(AccountKind.PAID, 1) == 10**9
    assert Journal.objects.filter(kind="refund", reason="outage").count() == 1
    event = AuditEvent.objects.get(tag="admin:usage:refund")
    assert (event.organization_id, event.data["reason"]) == (1, "outage")


def test_staff_that_may_only_look_cannot_act(inside: Client, payout: Payout) -> None:
    User.objects.update(is_view_only=True)
    body = {"action": "hold", "_selected_action": str(payout.pk), "confirmed": "1", "reason": "x"}
    assert inside.get("/admin/billing/payout/").status_code == 200
    assert inside.post("/admin/billing/payout/", body).status_code == 403
    payout.refresh_from_db()
    assert payout.hold_reason == ""
