"""In a browser: usage and what it costs, and the pages of operators of nodes."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings

from accounts.models import User
from billing import consumer_credits
from billing.models.payouts import Payout, PayoutMethod
from billing.models.topups import TopUp
from billing.money import UCR_PER_CENT
from billing.usage import charges_and_shares, usage_import
from environments.models import Environment
from sqlgateway.models import SqlUsage
from tests.billing.payouts.test_payouts import earn
from tests.billing.support import line, store
from tests.cast import organization
from tests.console.browser import Visitor
from tests.console.data.test_browser_cache import brain
from tests.console.journeys import sign_up
from tests.edgecache.api.brain import METRICS, ScriptedBrain
from tests.edgecache.api.test_endpoints import AUDITS, MINE, node

__all__ = ["brain"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
BY = {"reason": "test", "actor": "staff"}


def test_usage_is_charted_and_listed_by_bucket_with_a_forecast(
    visitor: Visitor, picture: Callable[[Page, str], None], settings: Settings
) -> None:
    settings.TOP_UP_PROVIDER = settings.STRIPE_CHECKOUT
    sign_up(visitor)
    user, now = User.objects.get(), timezone.now()
    live = Environment.objects.get(slug="live")
    place = {"used_at": now.isoformat(), "environment_pk": live.pk}
    with transaction.atomic():
        consumer_credits.top_up(user.organization_id, 10**13, reference="invoice", **BY)
        store(line(user.organization_id, hits=1500, bytes_served=10**9, **place), now=now)
        used = {"statements": 1234, "milliseconds": 56_500, "bytes_out": 2_000_000}
        SqlUsage.objects.create(
            batch=uuid4(),
            organization_id=user.organization_id,
            environment_pk=live.pk,
            hour=now.replace(minute=0, second=0, microsecond=0),
            **used,
        )
        usage_import.import_sql(now=now, is_complete=True)
    charges_and_shares.settle()
    visitor.go("/console/usage#top_up=paid")
    visitor.sees_status("The credits are booked as soon as the payment is confirmed.")
    row = visitor.page.get_by_role("row", name="live assets")
    expect(row).to_contain_text("1,500")
    expect(row).to_contain_text("1 GB")
    expect(visitor.page.locator("#chart [role=img]")).to_have_attribute(
        "aria-label", "Charges in credits. live: now 9,000, least 0, most 9,000."
    )
    expect(visitor.page.locator('[data-slot="month"]')).to_have_text("9,000")
    of_sql = visitor.page.get_by_role("region", name="SQL by environment")
    expect(of_sql.get_by_role("row", name="live 1,234 56.5 2 MB")).to_be_visible()
    expect(visitor.page.locator("#sql-chart [role=img]")).to_have_attribute(
        "aria-label", "Statements. live: now 1,234, least 0, most 1,234."
    )
    visitor.page.get_by_label("SQL metric").select_option("Seconds")
    expect(visitor.page.locator("#sql-chart figcaption")).to_contain_text("live 56.5")
    visitor.page.locator("#measure").select_option("Delivered")
    of_cache = visitor.page.locator("#chart figcaption")
    expect(of_cache).to_contain_text("live 1 GB")
    visitor.page.locator("#by").select_option("in total")
    expect(of_cache).to_contain_text("all 1 GB")
    visitor.page.reload()
    visitor.settle()
    expect(of_cache).to_contain_text("all 1 GB")
    expect(visitor.page.locator("#sql-chart figcaption")).to_contain_text("live 56.5")
    visitor.page.go_back()
    expect(of_cache).to_contain_text("live 1 GB")
    visitor.fill("Most in a month, in USD", "0.05")
    visitor.press("Set the cap")
    visitor.sees("$0.09 of $0.05 are spent this month: the cap is reached.")
    visitor.press("Remove the cap")
    expect(visitor.page.get_by_role("alertdialog")).to_contain_text("limits")
    visitor.agrees("Remove")
    visitor.sees("There is no cap. $0.09 are spent this month.")
    picture(visitor.page, "usage")
    visitor.fill("Amount in USD", "0.50")
    visitor.sees("50,000 credits")
    visitor.press("Go to the payment")
    expect(
        visitor.page.get_by_role("alert")
        .locator("visible=true")
        .or_(visitor.page.locator("#amount-error"))
        .first
    ).to_contain_text("At least 500 cents.")
    assert not TopUp.objects.exists()


def test_a_node_is_registered_with_the_lines_to_paste_and_its_audits_are_shown(
    visitor: Visitor,
    brain: ScriptedBrain,
) -> None:
    sign_up(visitor)
    own = node(MINE, User.objects.get().organization_id)
    made = own | {"node_secret": "shown-once", "brain_url": "https://brain.example.com:8083"}
    brain.say("POST /v1/nodes", 201, made | {"status": "pending"})
    brain.say("GET /v1/nodes", 200, {"nodes": [own | {"status": "pending"}]})
    brain.say(f"GET /v1/nodes/{MINE}", 200, own)
    brain.say(f"GET /v1/nodes/{MINE}/metrics", 200, METRICS | {"node_id": MINE, "load": 0.2})
    brain.say(f"GET /v1/nodes/{MINE}/audits", 200, AUDITS)
    visitor.go("/console/operator")
    visitor.page.get_by_text("Register a node").click()
    visitor.fill("Address", "https://cache.example.com")
    visitor.fill("Region", "eu-central")
    visitor.fill("Capacity in GiB", "100")
    visitor.page.get_by_role("button", name="Register", exact=True).dblclick()
    lines = visitor.page.get_by_label("Lines that start the worker").first
    expect(lines).to_contain_text("--brain https://brain.example.com:8083")
    expect(lines).to_contain_text("'shown-once' > node-secret")
    assert brain.last("POST").body["capacity_bytes"] == 100 * 2**30
    assert [call.method for call in brain.calls].count("POST") == 1
    visitor.press("I have saved them")
    assert "shown-once" not in visitor.page.content()
    visitor.sees("waits for the approval of the platform's staff")
    # The list is loaded again.
    visitor.page.wait_for_load_state("networkidle")
    visitor.page.get_by_text("Traffic and audits").click()
    visitor.sees("https://cache.example.com")


def test_earnings_are_charted_by_day(
    visitor: Visitor,
    brain: ScriptedBrain,
    picture: Callable[[Page, str], None],
) -> None:
    sign_up(visitor)
    operator_id = User.objects.get().organization_id
    own = node(MINE, operator_id) | {"capacity_bytes": 100 * 2**30, "used_bytes": 37 * 2**30}
    brain.say("GET /v1/nodes", 200, {"nodes": [own]})
    brain.say(f"GET /v1/nodes/{MINE}", 200, own)
    brain.say(f"GET /v1/nodes/{MINE}/metrics", 200, METRICS | {"node_id": MINE, "load": 0.2})
    brain.say(f"GET /v1/nodes/{MINE}/audits", 200, AUDITS)
    payer, now = organization("Rivers").pk, timezone.now()
    with transaction.atomic():
        consumer_credits.top_up(payer, 10**13, reference="invoice", **BY)
        for day, gigabytes in enumerate((80, 55, 120, 40)):
            used_at = (now - timedelta(days=day)).isoformat()
            served = {"hits": 1000, "bytes_served": gigabytes * 10**9}
            of_node = {"node_id": MINE, "operator_id": operator_id, "used_at": used_at}
            store(line(payer, **of_node, **served), now=now)
        usage_import.import_sql(now=now, is_complete=True)
    charges_and_shares.settle()
    visitor.go("/console/operator")
    # 70 % of 9 µcr a byte; 10^11 µcr are a dollar's.
    expect(visitor.page.locator("#chart [role=img]")).to_have_attribute(
        "aria-label", "Earned by day. eu-central: now $5.04, least $0.00, most $7.56."
    )
    visitor.page.get_by_text("Traffic and audits").click()
    visitor.sees("https://cache.example.com")
    picture(visitor.page, "operator")


def test_a_payout_method_is_set_and_a_payout_below_the_minimum_says_why(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/operator")
    visitor.page.get_by_text("Set the payout method").click()
    visitor.fill("Account", "DE00 1234 5678 3456")
    visitor.press("Set")
    visitor.sees_status("The payout method is set.")
    visitor.sees("…3456")
    expect(visitor.page.locator("#method-now")).to_contain_text(
        re.compile("used from .* (UTC|GMT).* on")
    )
    visitor.press("Request a payout")
    visitor.agrees("Request the payout")
    expect(visitor.page.locator("#payouts [data-problem]")).not_to_be_empty()
    assert not Payout.objects.exists()
    earn(10_000 * UCR_PER_CENT, User.objects.get().organization_id)
    PayoutMethod.objects.update(usable_from=timezone.now())
    visitor.go("/console/operator")
    visitor.press("Request a payout")
    visitor.agrees("Request the payout")
    visitor.sees_status("The payout is requested.")
    visitor.page.get_by_role("button", name="Cancel the payout of").click()
    expect(visitor.page.get_by_role("alertdialog")).to_contain_text("payable again")
    assert Payout.objects.get().state == "debited"
    visitor.agrees("Cancel the payout")
    visitor.sees_status("The payout is cancelled")
    with visitor.page.expect_download() as saved:
        visitor.press("Download CSV")
    assert Path(saved.value.path()).read_text().startswith("usage_id,used_at,node_id")
