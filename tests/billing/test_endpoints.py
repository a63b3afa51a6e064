"""Billing as consumers and operators see it; another organization's is not theirs to see."""

import csv
import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from billing import consumer_credits, ledger
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.usage import UsageLine
from billing.money import UCR_PER_CENT
from billing.payouts import methods, requests
from billing.usage import charges_and_shares
from tests.billing.support import NODE, line, store
from tests.cast import signed_in
from tests.recovery.support import complete, proven

STAFF = {"reason": "test", "actor": "staff"}
METHOD = {"kind": "manual", "details": {"account": "DE00 1234 5678 3456"}}


@pytest.fixture
def traffic(alice: User, charlie: User) -> None:
    """Let Charlie read through Alice's node."""
    now = timezone.now()
    consumer_credits.top_up(charlie.organization_id, 10_000, reference="invoice", **STAFF)
    place = {"used_at": now.isoformat(), "operator_id": alice.organization_id}
    store(
        line(charlie.organization_id, hits=10, bytes_served=100, **place),
        line(charlie.organization_id, misses=1, storage_byte_hours="7300", **place),
        now=now,
    )
    charges_and_shares.settle()


def test_a_consumer_sees_usage_and_balance(traffic: None, charlie: User) -> None:
    caller = signed_in(charlie)
    balance = caller.get("/v1/balance").body
    assert (balance["paid_ucr"], balance["credits"]) == (6850, "0.006850")
    usage = caller.get("/v1/usage").body
    (row,) = usage["cache"]
    assert (row["bucket"], row["hits"], row["misses"]) == ("assets", 10, 1)
    assert (row["egress_bytes"], row["storage_byte_hours"]) == (100, 7300)
    assert usage["charged_ucr"] == row["charged_ucr"] == 3150
    assert caller.get("/v1/cache/usage").body["cache"] == []
    assert caller.get("/v1/cache/activity").body["hours"] == []
    assert caller.get("/v1/cache/earnings").body["earned_ucr"] == 0


def test_an_operator_sees_earnings_and_a_statement_that_adds_up(
    traffic: None, alice: User, charlie: User
) -> None:
    caller = signed_in(alice)
    earned = caller.get("/v1/cache/earnings").body
    assert earned["earned_ucr"] == caller.get("/v1/balance").body["held_ucr"] == 1330
    (day,) = earned["days"]
    assert (day["node_id"], day["hits"], day["egress_bytes"]) == (str(NODE), 10, 100)
    statement = caller.get("/v1/cache/statement").body
    assert (statement["total_lines"], statement["next"]) == (2, None)
    assert statement["total_amount_ucr"] == sum(one["amount_ucr"] for one in statement["lines"])
    assert signed_in(charlie).get("/v1/cache/statement").body["lines"] == []


def test_a_statement_as_csv_has_the_same_lines(traffic: None, alice: User) -> None:
    caller = signed_in(alice)
    lines = caller.get("/v1/cache/statement").body["lines"]
    answer = caller.get("/v1/cache/statement", ACCEPT="text/csv")
    # Any: the stubs know the whole answer of a view only.
    raw: Any = answer.raw
    body = b"".join(raw.streaming_content).decode()
    rows = list(csv.DictReader(io.StringIO(body)))
    assert [(row["usage_id"], int(row["amount_ucr"])) for row in rows] == [
        (one["usage_id"], one["amount_ucr"]) for one in lines
    ]


def test_a_long_statement_comes_in_pages(
    traffic: None, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("billing.statements.PAGE_LINES", 1)
    caller = signed_in(alice)
    first = caller.get("/v1/cache/statement").body
    second = caller.get(f"/v1/cache/statement?after={first['next']}").body
    assert first["lines"][0]["kind"] != second["lines"][0]["kind"]
    assert UsageLine.objects.count() == 4


@pytest.mark.parametrize(
    "query", ["since=2026-01-01&until=2025-01-01", "since=2024-01-01&until=2026-01-01", "x=1"]
)
def test_a_period_that_is_none_is_refused(alice: User, query: str) -> None:
    assert signed_in(alice).get(f"/v1/usage?{query}").status == 400


def test_a_day_far_from_now_is_refused(alice: User) -> None:
    caller = signed_in(alice)
    for path in ["/v1/usage", "/v1/cache/usage", "/v1/cache/earnings"]:
        for until in ["0001-01-01", "1999-12-31", "3000-01-01", "9999-12-31"]:
            assert caller.get(f"{path}?until={until}").status == 400


def test_earnings_do_not_go_to_an_attacker_who_used_the_owners_address(
    alice: User, charlie: User
) -> None:
    for user in (alice, charlie):
        signed_in(user).call("PUT", "/v1/cache/payout-method", METHOD)
    assert complete(proven(alice)).status == 204
    owner = User.objects.get(email=alice.email)
    assert owner.organization_id != alice.organization_id
    assert signed_in(owner).get("/v1/cache/payout-method").code == "payout_method_not_found"
    assert signed_in(charlie).get("/v1/cache/payout-method").status == 200


def test_a_method_and_a_payout_of_nothing(alice: User, charlie: User) -> None:
    caller = signed_in(alice)
    assert caller.get("/v1/cache/payout-method").code == "payout_method_not_found"
    assert caller.post("/v1/cache/payouts").code == "payout_method_not_found"
    assert caller.call("PUT", "/v1/cache/payout-method", METHOD | {"kind": "x"}).status == 400
    body = METHOD | {"details": {"account": ""}}
    assert caller.call("PUT", "/v1/cache/payout-method", body).status == 400
    shown = caller.call("PUT", "/v1/cache/payout-method", METHOD).body
    assert (shown["account"], shown["is_usable"]) == ("…3456", False)
    refused = caller.post("/v1/cache/payouts")
    assert (refused.status, refused.code) == (409, "payout_refused")
    assert caller.get("/v1/cache/payouts").body["results"] == []
    path = f"/v1/cache/payouts/{NODE}/cancel"
    assert signed_in(charlie).post(path).code == "payout_not_found"
    assert caller.call("DELETE", "/v1/cache/payout-method").status == 204


def test_an_operator_reads_and_cancels_its_payout(
    alice: User, charlie: User, settings: Settings
) -> None:
    settings.BILLING = replace(settings.BILLING, payout_minimum_cents=1)
    operator, now = alice.organization_id, timezone.now()
    methods.replace(operator, "manual", {"account": "DE00 3456"}, by="x", now=now)
    earned = Posting(AccountKind.PAYABLE, operator, 2500 * UCR_PER_CENT)
    fees = Posting(AccountKind.FEES, None, -earned.amount_ucr)
    ledger.post(Journal.Kind.RELEASE, "earned", [earned, fees])
    payout = requests.request(operator, by="x", now=now + timedelta(days=4))
    caller, path = signed_in(alice), f"/v1/cache/payouts/{payout.pk}"
    assert signed_in(charlie).get(path).code == "payout_not_found"
    shown = caller.get(path).body
    assert (shown["amount_cents"], shown["state"]) == (2500, "debited")
    assert caller.get("/v1/cache/payouts").body["results"] == [shown]
    assert caller.post(f"{path}/cancel").body["state"] == "reversed"
    assert caller.post(f"{path}/cancel").code == "payout_refused"
