"""In a browser: staff's pages about money, on wide and on narrow screens."""

from dataclasses import dataclass, replace
from datetime import UTC, timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings

from billing import consumer_credits, ledger
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.quarantines import Quarantine
from billing.models.rates import Rate
from billing.models.usage import UsageLine
from billing.money import UCR_PER_CENT
from billing.payouts import methods, requests
from billing.usage import charges_and_shares
from tests import cast
from tests.billing.support import NODE, line, store
from tests.console.accessibility import violations
from tests.console.browser import SCHEMES, Visitor
from tests.platform_site.staff.test_browser_quality import SCROLLS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WIDTHS = (1440, 390)
BY = {"reason": "invoice 4", "actor": "staff:root@example.com"}


@dataclass(frozen=True)
class Books:
    """A consumer that has paid, and by model a row that staff decides about."""

    consumer: int
    rows: dict[str, object]


@pytest.fixture
def books(settings: Settings) -> Books:
    """Return the books of an operator whose node earned and is quarantined, with a payout."""
    settings.BILLING = replace(settings.BILLING, payout_minimum_cents=1)
    now = timezone.now()
    consumer = cast.organization("Consumer Limited").pk
    operator = cast.organization("Nodes of the North").pk
    place = {"operator_id": operator, "used_at": now.isoformat()}
    with transaction.atomic():
        consumer_credits.top_up(consumer, 10**12, reference="invoice 4", **BY)
        store(line(consumer, hits=1500, bytes_served=10**10, **place), now=now)
        methods.replace(operator, "manual", {"account": "DE00 3456"}, by="x", now=now)
        earned = 2575 * UCR_PER_CENT
        sides = [(AccountKind.PAYABLE, operator, earned), (AccountKind.FEES, None, -earned)]
        ledger.post(Journal.Kind.RELEASE, "earned", [Posting(*side) for side in sides])
        payout = requests.request(operator, by="user:olga", now=now + timedelta(days=4))
        reason = "3 of 600 looks found altered bytes"
        quarantine = Quarantine.objects.create(
            event=1, node_id=NODE, organization_id=operator, reason=reason, began_at=now
        )
    charges_and_shares.settle()
    used = UsageLine.objects.get(kind="hit")
    return Books(consumer, {"payout": payout.pk, "quarantine": quarantine.pk, "usageline": used.pk})


def look(page: Page) -> None:
    """Check what is shown, wide and light, and on a dark phone."""
    # A script of the page makes its landmarks.
    page.wait_for_load_state()
    for width, scheme in zip(WIDTHS, SCHEMES, strict=True):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        assert violations(page, scheme=scheme) == [], f"{page.url}, {scheme}"
        assert not page.evaluate(SCROLLS), f"{page.url}, {width}"


def test_a_rate_and_credits_are_set_in_two_steps(staff: Visitor, books: Books) -> None:
    page = staff.page
    page.goto(f"{staff.base}/admin/billing/rate/set-rate/")
    staff.fill("Rate in µcr", "120")
    staff.fill("From (UTC)", "2026-01-01T00:00")
    staff.press("Continue")
    staff.sees("A rate begins in the future.")
    look(page)
    begins_at = timezone.now().astimezone(UTC) + timedelta(hours=2)
    staff.fill("From (UTC)", f"{begins_at:%Y-%m-%dT%H}:00")
    staff.press("Continue")
    staff.sees("instead of 100 µcr.")
    look(page)
    staff.fill("Reason", "announced in October")
    staff.press("Set a rate")
    staff.sees("Done: Hit: 120 µcr")
    assert Rate.objects.filter(rate_ucr=120).exists()

    page.goto(f"{staff.base}/admin/billing/account/grant-credits/")
    look(page)
    staff.fill("Organization's number", str(books.consumer))
    staff.fill("Credits", "12.5")
    staff.press("Continue")
    staff.sees("gets 12.500000 granted credits")
    look(page)
    staff.fill("Reason", "an outage")
    staff.press("Grant credits")
    staff.sees("Done: Consumer Limited")
    assert Journal.objects.filter(kind="grant", reason="an outage").exists()


@pytest.mark.parametrize(
    ("model", "action", "says"),
    [
        ("payout", "Hold", "25.75 USD to organization"),
        ("payout", "Mark as paid", "25.75 USD to organization"),
        ("quarantine", "Forfeit unpaid earnings", "earned 63000.105000 credits"),
        ("usageline", "Refund", "charged"),
    ],
)
def test_an_action_says_what_it_is_about_and_asks_for_a_reason(
    staff: Visitor, books: Books, model: str, action: str, says: str
) -> None:
    page = staff.page
    page.goto(f"{staff.base}/admin/billing/{model}/{books.rows[model]}/change/")
    look(page)
    staff.press(f"{action}…")
    expect(page.get_by_role("heading", name=action, exact=True)).to_be_visible()
    staff.sees(says)
    look(page)
    staff.fill("Reason", "as agreed")
    staff.press(action)
    staff.sees(f"{action}: done for 1 of 1.")
