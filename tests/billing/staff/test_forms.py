"""Rates and credits by staff: shown first, confirmed with a reason, done once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEvent
from billing import ledger
from billing.models.ledger import AccountKind, Journal
from billing.models.rates import Rate
from tests import cast
from tests.staff import staff_inside

RATES = "/admin/billing/rate/set-rate/"
CREDITS = "/admin/billing/account/grant-credits/"


@pytest.fixture
def inside(db: None) -> Client:
    return staff_inside()


def later(hours: int = 2) -> datetime:
    hour = timezone.now().astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return hour + timedelta(hours=hours)


def new_rate(**fields: Any) -> dict[str, Any]:
    """Return a form as a browser sends it."""
    begins_at = f"{later():%Y-%m-%dT%H:%M}"
    return {"kind": "hit", "rate_ucr": "120", "begins_at": begins_at} | fields


def post(inside: Client, path: str, body: dict[str, Any]) -> str:
    return inside.post(path, body, follow=True).content.decode()


def test_a_rate_is_shown_then_set_with_a_reason(inside: Client) -> None:
    assert RATES in inside.get("/admin/billing/rate/").content.decode()
    assert 'type="datetime-local"' in inside.get(RATES).content.decode()
    shown = post(inside, RATES, new_rate())
    assert f"120 µcr from {later():%Y-%m-%d %H:%M} UTC on, instead of 100 µcr." in shown
    assert 'name="reason"' in shown
    assert not Rate.objects.filter(rate_ucr=120).exists()
    assert "A reason is required" in post(inside, RATES, new_rate(confirmed="1"))

    confirmed = new_rate(confirmed="1", reason="announced in October")
    assert "Done" in post(inside, RATES, confirmed)
    assert "nothing to do" in post(inside, RATES, confirmed)

    assert Rate.objects.get(rate_ucr=120).begins_at == later()
    event = AuditEvent.objects.get(tag="admin:rate:set")
    assert (event.data["kind"], event.data["rate_ucr"]) == ("hit", 120)
    assert event.data["reason"] == "announced in October"


def test_a_rate_that_cannot_be_is_refused_before_it_is_confirmed(inside: Client) -> None:
    before = Rate.objects.count()
    wrong: tuple[tuple[dict[str, str], str], ...] = (
        ({"begins_at": "2026-01-01T00:00"}, "A rate begins in the future."),
        ({"begins_at": f"{later():%Y-%m-%dT%H}:30"}, "full hour"),
        ({"rate_ucr": "-1"}, "greater than or equal to 0"),
        ({"rate_ucr": str(10**15)}, "The highest rate"),
        ({"kind": "rent"}, "not one of the available choices"),
    )
    for fields, problem in wrong:
        page = post(inside, RATES, new_rate(**fields, confirmed="1", reason="x"))
        assert problem in page
        assert 'name="confirmed"' not in page
    assert Rate.objects.count() == before


def test_credits_are_granted_once_however_often_the_form_is_sent(inside: Client) -> None:
    home = cast.organization("Acme")
    body = {"organization": str(home.pk), "credits": "12.5"}
    shown = post(inside, CREDITS, body)
    assert f"Acme (organization {home.pk}) gets 12.500000 granted credits." in shown
    assert ledger.balance(AccountKind.GRANTED, home.pk) == 0

    confirmed = body | {"confirmed": "one key", "reason": "an outage"}
    assert "Done" in post(inside, CREDITS, confirmed)
    assert "nothing to do" in post(inside, CREDITS, confirmed)

    assert ledger.balance(AccountKind.GRANTED, home.pk) == 12_500_000
    journal = Journal.objects.get(kind="grant", reason="an outage")
    assert journal.actor == "staff:root@example.com"
    event = AuditEvent.objects.get(tag="admin:credits:grant")
    assert (event.organization_id, event.data["amount_ucr"]) == (home.pk, 12_500_000)
    assert event.data["reason"] == "an outage"


def test_paid_credits_are_booked_once_for_each_reference(inside: Client) -> None:
    home = cast.organization("Acme")
    body = {"organization": str(home.pk), "credits": "7", "is_paid": "on", "reason": "invoice 4"}
    assert "A payment has a reference." in post(inside, CREDITS, body | {"confirmed": "1"})
    for key in ("2", "3"):
        post(inside, CREDITS, body | {"reference": "bank 4", "confirmed": key})
    assert ledger.balance(AccountKind.PAID, home.pk) == 7_000_000
    assert AuditEvent.objects.filter(tag="admin:credits:grant").count() == 1


def test_credits_that_cannot_be_are_refused(inside: Client) -> None:
    body = {"organization": str(cast.organization("Acme").pk), "credits": "1"}
    journals = Journal.objects.count()
    wrong = (
        ({"organization": "0"}, "greater than or equal to 1"),
        ({"organization": "999999"}, "There is no such organization."),
        ({"credits": "0"}, "greater than or equal to"),
        ({"credits": "0.0000001"}, "no more than 6 decimal places"),
        ({"credits": "1e12"}, "less than or equal to"),
        ({"credits": "NaN"}, "Enter a number."),
    )
    for fields, problem in wrong:
        page = post(inside, CREDITS, body | fields | {"confirmed": "1", "reason": "x"})
        assert problem in page
    assert Journal.objects.count() == journals


def test_staff_that_may_only_look_sets_nothing(inside: Client) -> None:
    User.objects.update(is_view_only=True)
    before = Rate.objects.count()
    assert RATES not in inside.get("/admin/billing/rate/").content.decode()
    for path in (RATES, CREDITS):
        assert inside.get(path).status_code == 403
        body = new_rate(confirmed="1", reason="x", organization="1", credits="5")
        assert inside.post(path, body).status_code == 403
    assert Rate.objects.count() == before
    assert not Journal.objects.exists()


def test_without_a_sign_in_there_is_no_form(db: None) -> None:
    for path in (RATES, CREDITS):
        assert "/admin/login/" in Client().post(path, {}).headers["Location"]
