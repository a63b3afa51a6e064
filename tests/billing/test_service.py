"""Credits that run out: notices, a grace, a stop that reaches the brain, and a way back."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from billing import consumer_credits, tasks
from billing.models.service import ServiceState
from billing.service import brain_notifications, spend_caps, states
from billing.usage import charges_and_shares
from edgecache.api import client
from edgecache.api.errors import CacheUnavailable
from tests.billing.support import NOW, line, store
from tests.cast import session_of, signed_in
from tests.inbox import notices_to
from tests.outbox.webhooks.support import emitted, subscribe

DAY = timedelta(days=1)
WORDS = {"reason": "invoice", "actor": "staff"}


@pytest.fixture(autouse=True)
def enforced(settings: Settings) -> None:
    settings.BILLING = replace(settings.BILLING, grace_days=7)


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> list[tuple[str, Any]]:
    """Return the decisions that the brain receives."""
    settings.CACHE = replace(settings.CACHE, is_enabled=True)
    calls: list[tuple[str, Any]] = []
    monkeypatch.setattr(client, "call", lambda _, path, **sent: calls.append((path, sent["body"])))
    return calls


def use(user: User, now: datetime = NOW) -> None:
    """Use 100 µcr that may have to be paid later, and take the steps that are due."""
    store(line(user.organization_id, hits=1, operator_id=None, used_at=now.isoformat()), now=now)
    charges_and_shares.settle()
    states.refresh_all(now=now)


def pay(user: User, amount_ucr: int, reference: str = "invoice") -> None:
    consumer_credits.top_up(user.organization_id, amount_ucr, reference=reference, **WORDS)


def mails(user: User) -> list[str]:
    return notices_to(str(user.email))


def test_credits_that_run_out_are_events(alice: User) -> None:
    subscribe(alice.organization_id, "credits.running_out")
    use(alice)
    for after in (5 * DAY, 6 * DAY, 7 * DAY, 8 * DAY):
        states.refresh_all(now=NOW + after)
    assert [data["status"] for _, data in emitted()] == ["ran_out", "stops_soon", "stopped"]
    assert {data["stops_at"] for _, data in emitted()} == {(NOW + 7 * DAY).isoformat()}


def test_a_spend_cap_that_is_reached_is_an_event(alice: User) -> None:
    subscribe(alice.organization_id, "quota.reached")
    spend_caps.replace(alice.organization_id, 0, by="alice", now=NOW)
    for _ in range(2):
        use(alice)
    assert [data["quota"] for _, data in emitted()] == ["spend_cap"]


def test_a_grace_begins_with_the_first_debt_and_ends_with_a_stop(alice: User, bob: User) -> None:
    pay(alice, 100)
    use(alice)
    assert signed_in(alice).get("/v1/balance").body["service"] == "ok"
    use(alice)
    shown = signed_in(alice).get("/v1/balance").body
    assert shown["service"] == "grace"
    assert datetime.fromisoformat(shown["grace_until"]) == NOW + 7 * DAY
    for after in (5 * DAY - DAY / 24, 5 * DAY, 6 * DAY, 7 * DAY - DAY / 24):
        states.refresh_all(now=NOW + after)
    assert mails(alice) == ["credits_ran_out", "service_stops_soon"]
    for after in (7 * DAY, 8 * DAY):
        states.refresh_all(now=NOW + after)
    assert mails(alice) == ["credits_ran_out", "service_stops_soon", "service_stopped"]
    # Members that cannot buy credits get no mails.
    assert mails(bob) == []
    shown = signed_in(alice).get("/v1/balance").body
    assert (shown["service"], shown["grace_until"]) == ("stopped", None)


def test_only_a_payment_of_all_debts_ends_the_stop_and_does_so_immediately(
    alice: User, decisions: list[Any]
) -> None:
    use(alice)
    states.refresh_all(now=NOW + 7 * DAY)
    pay(alice, 99)
    assert states.current(alice.organization_id).status == "stopped"
    pay(alice, 1, "rest")
    assert states.current(alice.organization_id).status == "ok"
    brain_notifications.notify(alice.organization_id)
    assert [sent["is_stopped"] for _, sent in decisions] == [False]
    # The next debt begins a grace of its own.
    use(alice, NOW + 8 * DAY)
    assert states.current(alice.organization_id).status == "grace"
    assert mails(alice).count("credits_ran_out") == 2


def test_a_brain_that_was_away_hears_it_later_and_once(
    alice: User, decisions: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(alice)
    states.refresh_all(now=NOW + 7 * DAY)

    def away(*_: object, **__: object) -> None:
        raise CacheUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(client, "call", away)
        with pytest.raises(CacheUnavailable):
            tasks.notify_brain(organization_id=alice.organization_id)
    for _ in range(2):
        brain_notifications.send_unconfirmed()
    ((path, sent),) = decisions
    assert path == f"/v1/organizations/{alice.organization_id}/service"
    assert sent["is_stopped"]
    # It may have lost its database since: each night it gets all decisions again, as newer ones.
    tasks.decide_again(timestamp=0)
    brain_notifications.send_unconfirmed()
    assert decisions[1][1]["is_stopped"]
    assert decisions[1][1]["version"] > sent["version"]


def test_nothing_stops_unless_the_platform_enforces_it(alice: User, settings: Settings) -> None:
    use(alice)
    states.refresh_all(now=NOW + 7 * DAY)
    assert states.current(alice.organization_id).status == "stopped"
    settings.BILLING = replace(settings.BILLING, grace_days=None)
    states.refresh_all(now=NOW + 7 * DAY)
    assert states.current(alice.organization_id).status == "ok"
    use(alice)
    assert ServiceState.objects.exclude(ran_out_at=None).count() == 0
    assert mails(alice) == ["credits_ran_out", "service_stopped"]


def test_without_a_grace_the_stop_is_immediate(alice: User, settings: Settings) -> None:
    settings.BILLING = replace(settings.BILLING, grace_days=0)
    use(alice)
    assert states.current(alice.organization_id).status == "stopped"
    assert mails(alice) == ["service_stopped"]


def spend(user: User, hits: int, now: datetime = NOW) -> None:
    fields = {"hits": hits, "operator_id": None, "used_at": now.isoformat()}
    store(line(user.organization_id, **fields), now=now)
    charges_and_shares.settle()
    states.refresh_all(now=now)


def cap(user: User, cents: int | None, now: datetime = NOW) -> str:
    """Set the cap (one cent pays 10,000,000 hits); return what it leads to."""
    spend_caps.replace(user.organization_id, cents, by="user:1", now=now)
    states.refresh(user.organization_id, now=now)
    return states.current(user.organization_id).status


def test_a_spend_cap_is_mailed_about_twice_and_stops_until_the_next_month(
    alice: User, decisions: list[Any]
) -> None:
    pay(alice, 10**12)
    cap(alice, 10)
    for hits in (79_999_999, 1, 1, 19_999_998, 1, 1):
        spend(alice, hits)
        brain_notifications.send_unconfirmed()
    assert mails(alice) == ["spend_cap_near", "spend_cap_reached"]
    assert [sent["is_stopped"] for _, sent in decisions] == [True]
    assert states.current(alice.organization_id).stopped_by == "spend_cap"
    # A higher cap has mails of its own; credits have nothing to do with it.
    pay(alice, 10**12, "more")
    assert cap(alice, 10) == "stopped"
    assert cap(alice, 11) == "ok"
    assert mails(alice)[2:] == ["spend_cap_reached", "spend_cap_near"]
    assert cap(alice, 1) == "stopped"
    states.refresh_all(now=NOW + 11 * DAY)
    assert states.current(alice.organization_id).status == "ok"
    assert (cap(alice, 0), cap(alice, None)) == ("stopped", "ok")


def test_an_admin_sets_the_cap_and_members_read_it(alice: User, bob: User) -> None:
    caller, member = signed_in(alice), signed_in(bob)
    path = "/v1/balance/spend-cap"
    assert caller.get(path).body == {"cap_cents": None, "spent_ucr": 0, "is_reached": False}
    shown = caller.call("PUT", path, {"cap_cents": 0}).body
    assert shown == {"cap_cents": 0, "spent_ucr": 0, "is_reached": True}
    balance = caller.get("/v1/balance").body
    assert (balance["service"], balance["stopped_by"]) == ("stopped", "spend_cap")
    assert member.call("PUT", path, {"cap_cents": 5}).status == 403
    assert member.call("DELETE", path).status == 403
    assert caller.call("PUT", path, {"cap_cents": -1}).status == 400
    assert caller.call("DELETE", path).status == 204
    assert caller.get("/v1/balance").body["service"] == "ok"


def test_a_cap_is_not_removed_without_what_follows(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cap(alice, 0) == "stopped"

    def crash(*_: object, **__: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(states, "refresh", crash)
        assert signed_in(alice).call("DELETE", "/v1/balance/spend-cap").status == 500
    assert spend_caps.current(alice.organization_id) is not None
    assert signed_in(alice).call("DELETE", "/v1/balance/spend-cap").status == 204
    assert states.current(alice.organization_id).status == "ok"


def test_the_brain_learns_where_operators_members_come_from(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.CACHE = replace(settings.CACHE, is_enabled=True)
    now = timezone.now()
    for user, address, age in (
        (alice, "198.51.100.7", 1),
        (alice, "198.51.100.9", 2),
        (alice, "2001:db8:7:123::1", 29),
        (alice, "192.0.2.1", 31),
        (charlie, "203.0.113.5", 1),
    ):
        session = session_of(user)
        session.address, session.rotated_at = address, now - age * DAY
        session.save()
    nodes = {
        "nodes": [{"organization_id": owner} for owner in (None, *[alice.organization_id] * 2)]
    }
    said: list[Any] = []

    def call(method: str, path: str, **sent: Any) -> Any:
        return nodes if method == "GET" else said.append((path, sent["body"]))

    monkeypatch.setattr(client, "call", call)
    brain_notifications.send_networks(now=now)
    ((path, body),) = said
    assert path == f"/v1/operators/{alice.organization_id}/networks"
    assert body == {"networks": ["198.51.100.0/24", "2001:db8:7:100::/56"]}
