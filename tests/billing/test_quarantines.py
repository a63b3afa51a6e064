"""Quarantined nodes: who is mailed, what can be taken, and how it is returned."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from billing import consumer_credits, debts, ledger, quarantines
from billing.errors import AppealRefused, ForfeitRefused, PayoutRefused
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.payouts import Payout
from billing.models.quarantines import Quarantine
from billing.models.usage import UsageLine
from billing.money import UCR_PER_CENT
from billing.payouts import methods, requests
from billing.usage import charges_and_shares
from edgecache.api import client
from outbox.models import Delivery
from tests.billing.support import NODE, NOW, line, operator, store
from tests.cast import signed_in
from tests.edgecache.api.brain import SECRET, ScriptedBrain
from tests.staff import staff_client, staff_inside

OTHER_NODE = UUID(int=78)
CONSUMER = 40_000
RESTED = NOW + timedelta(hours=73)


@pytest.fixture
def brain(settings: Settings) -> Iterator[ScriptedBrain]:
    """Return a brain that has quarantined Alice's node."""
    scripted = ScriptedBrain()
    settings.CACHE = replace(
        settings.CACHE, brain_url=scripted.url, secret=SECRET, timeout_s=1, is_enabled=True
    )
    client.breaker.succeeded()
    client._sessions.clear()
    yield scripted
    for session in client._sessions.values():
        session.close()
    client._sessions.clear()
    scripted.close()


def event(organization_id: int, number: int = 1) -> dict[str, Any]:
    """Return a quarantine as the brain lists it."""
    return {
        "id": number,
        "node_id": str(NODE),
        "organization_id": organization_id,
        "reason": "wrong bytes for 3 blobs in 300 looks",
        "began_at": (NOW + timedelta(minutes=number)).isoformat(),
    }


def listed(
    brain: ScriptedBrain,
    *events: dict[str, Any],
    status: str = "quarantined",
    status_at: datetime = NOW + timedelta(hours=1),
) -> None:
    """Let the brain list quarantines, and the node with a status; '' for a node that is gone."""
    node = {"node_id": str(NODE), "status": status, "status_at": status_at.isoformat()}
    nodes = [node] if status else []
    brain.say("GET /v1/quarantines", 200, {"quarantines": list(events)})
    brain.say("GET /v1/nodes", 200, {"nodes": nodes})


@pytest.fixture
def earned(alice: User) -> int:
    """Let Alice's two nodes earn; return what the first one did."""
    paid_ucr = 100 * UCR_PER_CENT
    consumer_credits.top_up(CONSUMER, paid_ucr, reference="invoice", reason="x", actor="x")
    served = {"operator_id": alice.organization_id, "bytes_served": 10**9}
    store(
        line(CONSUMER, **served),
        line(CONSUMER, **served, node_id=str(OTHER_NODE)),
    )
    charges_and_shares.settle()
    return 9 * 10**9 * 7 // 10


@pytest.fixture
def case(brain: ScriptedBrain, alice: User, earned: int) -> Quarantine:
    """Return the quarantine of Alice's node, after it was followed."""
    listed(brain, event(alice.organization_id))
    assert quarantines.record_new(now=NOW) == 1
    return Quarantine.objects.get()


def mails(user: User) -> list[str]:
    """Return the templates of the mails to a user, oldest first."""
    rows = Delivery.objects.filter(user_id=user.pk).order_by("pk")
    return list(rows.values_list("template", flat=True))


def take(case: Quarantine) -> Quarantine:
    """Forfeit."""
    return quarantines.forfeit(case.pk, reason="altered files", actor="staff:x", now=NOW)


def decide(case: Quarantine, *, is_granted: bool) -> Quarantine:
    """Decide the appeal."""
    return quarantines.decide(
        case.pk, is_granted=is_granted, reason="It was.", actor="staff:x", now=NOW
    )


def test_the_operator_is_mailed_once_and_sees_why(
    case: Quarantine, brain: ScriptedBrain, alice: User, bob: User, charlie: User
) -> None:
    # A brain that was restored lists an event again.
    assert quarantines.record_new(now=NOW) == 0
    assert brain.last("GET").path == "/v1/nodes"
    assert mails(alice) == ["node_quarantined"]
    assert (mails(bob), mails(charlie)) == ([], [])
    (shown,) = signed_in(alice).get("/v1/cache/quarantines").body["results"]
    assert (shown["node_id"], shown["state"]) == (str(NODE), "open")
    assert shown["reason"] == "wrong bytes for 3 blobs in 300 looks"
    assert AuditEvent.objects.filter(tag="sync:node:quarantine").count() == 1


@pytest.mark.parametrize("count", [1, 3], ids=["fewer events", "more events"])
def test_a_restored_brain_that_reuses_numbers_of_events_is_followed(
    brain: ScriptedBrain, alice: User, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    place = alice.organization_id
    events = [event(place, number) for number in (1, 2)]
    called = client.call

    def call(method: str, path: str, **words: Any) -> Any:
        if path != "/v1/quarantines":
            return called(method, path, **words)
        return {"quarantines": [one for one in events if one["id"] > words["query"]["after"]]}

    listed(brain)
    monkeypatch.setattr(client, "call", call)
    assert quarantines.record_new(now=NOW) == 2
    # The backup was made before both; these have their numbers.
    events[:] = [event(place, 10 + number) | {"id": number} for number in range(1, count + 1)]
    assert [quarantines.record_new(now=NOW) for _ in range(2)] == [count, 0]
    events.append(event(place, 20) | {"id": count + 1})
    assert quarantines.record_new(now=NOW) == 1
    assert mails(alice) == ["node_quarantined"] * (count + 3)


def test_payouts_wait_until_staff_has_decided(
    case: Quarantine, brain: ScriptedBrain, alice: User, settings: Settings
) -> None:
    settings.BILLING = replace(settings.BILLING, payout_minimum_cents=1)
    place = alice.organization_id
    methods.replace(place, "manual", {"account": "DE00 3456"}, by="x", now=NOW)
    release = [
        Posting(AccountKind.HELD, place, -5 * UCR_PER_CENT),
        Posting(AccountKind.PAYABLE, place, 5 * UCR_PER_CENT),
    ]
    ledger.post(Journal.Kind.RELEASE, "released", release)
    with pytest.raises(PayoutRefused, match="quarantined"):
        requests.request(place, by="x", now=RESTED)
    assert operator(place)[1] == 5 * UCR_PER_CENT
    # The node is approved again.
    listed(brain, status="active")
    quarantines.record_new(now=NOW)
    payout = requests.request(place, by="x", now=RESTED)
    # One that was not sent yet is held by the next quarantine.
    listed(brain, event(place, 2))
    quarantines.record_new(now=NOW)
    assert requests.send(payout.pk, now=RESTED).state == Payout.State.DEBITED


def test_a_brain_from_a_backup_that_knows_no_quarantine_does_not_end_it(
    case: Quarantine, brain: ScriptedBrain
) -> None:
    listed(brain, status="active", status_at=case.began_at - timedelta(days=1))
    quarantines.record_new(now=NOW)
    case.refresh_from_db()
    assert case.ended_at is None


def test_a_node_that_its_operator_removes_stays_under_suspicion(
    case: Quarantine, brain: ScriptedBrain
) -> None:
    listed(brain, status="")
    quarantines.record_new(now=NOW)
    case.refresh_from_db()
    assert case.ended_at is None
    assert take(case).forfeited_ucr > 0


def test_only_what_the_node_earned_is_forfeited_and_only_once(
    case: Quarantine, alice: User, earned: int
) -> None:
    assert take(case).forfeited_ucr == earned
    assert operator(alice.organization_id) == (earned, 0, earned)
    with pytest.raises(ForfeitRefused) as refusal:
        take(case)
    assert refusal.value.code == "forfeit_refused"
    assert mails(alice) == ["node_quarantined", "earnings_forfeited"]
    journal = Journal.objects.get(kind=Journal.Kind.FORFEIT)
    assert (journal.reason, journal.actor) == ("altered files", "staff:x")


def test_a_second_quarantine_takes_nothing_twice(
    case: Quarantine, brain: ScriptedBrain, alice: User
) -> None:
    take(case)
    listed(brain, event(alice.organization_id, 2))
    quarantines.record_new(now=NOW)
    with pytest.raises(ForfeitRefused, match="not paid out"):
        take(Quarantine.objects.get(event=2))


def test_an_appeal_that_is_granted_returns_what_was_forfeited(
    case: Quarantine, alice: User, earned: int
) -> None:
    take(case)
    path = f"/v1/cache/quarantines/{case.pk}"
    said = signed_in(alice).post(f"{path}/appeal", {"text": "A switch of ours was faulty."})
    assert (said.status, said.body["state"]) == (200, "appealed")
    again = signed_in(alice).post(f"{path}/appeal", {"text": "Again."})
    assert (again.status, again.code) == (409, "appeal_refused")
    decide(case, is_granted=True)
    # Held again, as they were.
    assert operator(alice.organization_id) == (2 * earned, 0, 0)
    shown = signed_in(alice).get(path).body
    assert (shown["state"], shown["decision_reason"]) == ("granted", "It was.")
    assert mails(alice)[-1] == "appeal_decided"
    for is_granted in (True, False):
        with pytest.raises(AppealRefused):
            decide(case, is_granted=is_granted)
    assert operator(alice.organization_id) == (2 * earned, 0, 0)


def refund(node: UUID) -> None:
    """Refund what a node served."""
    (pk,) = UsageLine.objects.filter(node_id=node).values_list("pk", flat=True)
    debts.refund(CONSUMER, [pk], key=f"fault {node}", reason="x", actor="x")


def test_a_refund_of_another_node_leaves_what_was_forfeited(
    case: Quarantine, alice: User, earned: int
) -> None:
    place = alice.organization_id
    take(case)
    refund(OTHER_NODE)
    assert operator(place) == (0, 0, earned)
    quarantines.appeal(place, case.pk, "please", by="x", now=NOW)
    decide(case, is_granted=True)
    assert operator(place) == (earned, 0, 0)
    # Nothing is forfeited any more.
    refund(NODE)
    assert operator(place) == (0, 0, 0)


def test_a_refund_of_the_node_itself_takes_what_was_forfeited(
    case: Quarantine, alice: User, earned: int
) -> None:
    take(case)
    refund(NODE)
    assert operator(alice.organization_id) == (earned, 0, 0)


def test_an_appeal_that_is_rejected_changes_no_balance(
    case: Quarantine, alice: User, earned: int
) -> None:
    with pytest.raises(AppealRefused, match="waits"):
        decide(case, is_granted=False)
    take(case)
    quarantines.appeal(alice.organization_id, case.pk, "please", by="x", now=NOW)
    assert decide(case, is_granted=False).state == "rejected"
    assert operator(alice.organization_id) == (earned, 0, earned)


def test_an_appeal_that_is_rejected_first_is_followed_by_the_forfeiture(
    case: Quarantine, alice: User, earned: int
) -> None:
    place = alice.organization_id
    quarantines.appeal(place, case.pk, "please", by="x", now=NOW)
    decide(case, is_granted=False)
    assert Quarantine.undecided_of(place).exists()
    assert take(case).forfeited_ucr == earned
    assert operator(place) == (earned, 0, earned)
    assert not Quarantine.undecided_of(place).exists()
    with pytest.raises(ForfeitRefused, match="already"):
        take(case)


def test_a_rejected_appeal_can_be_closed_when_nothing_is_left(
    case: Quarantine, brain: ScriptedBrain, alice: User
) -> None:
    take(case)
    place = alice.organization_id
    listed(brain, event(place, 2))
    quarantines.record_new(now=NOW)
    second = Quarantine.objects.get(event=2)
    quarantines.appeal(place, second.pk, "please", by="x", now=NOW)
    decide(second, is_granted=False)
    assert take(second).forfeited_ucr == 0
    assert not Quarantine.undecided_of(place).exists()


def test_a_granted_appeal_is_not_followed_by_a_forfeiture(case: Quarantine, alice: User) -> None:
    quarantines.appeal(alice.organization_id, case.pk, "please", by="x", now=NOW)
    decide(case, is_granted=True)
    assert not Quarantine.undecided_of(alice.organization_id).exists()
    with pytest.raises(ForfeitRefused, match="already"):
        take(case)


def test_only_the_operators_admins_appeal(case: Quarantine, bob: User, charlie: User) -> None:
    path = f"/v1/cache/quarantines/{case.pk}/appeal"
    assert signed_in(bob).post(path, {"text": "x"}).status == 403
    other = signed_in(charlie).post(path, {"text": "x"})
    assert (other.status, other.code) == (404, "quarantine_not_found")
    assert signed_in(charlie).get("/v1/cache/quarantines").body["results"] == []
    case.refresh_from_db()
    assert case.state == "open"


def test_an_appeal_has_a_text(case: Quarantine, alice: User) -> None:
    path = f"/v1/cache/quarantines/{case.pk}/appeal"
    for body in ({}, {"text": ""}, {"text": "x" * 2001}):
        assert signed_in(alice).post(path, body).status == 400


def run(*words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run the command; return its facts or its error."""
    try:
        call_command("quarantines", *words, "--json")
    except CommandError as exc:
        if exc.returncode != 1:
            raise
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def test_the_command_does_nothing_without_yes(
    case: Quarantine, alice: User, earned: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--forfeit", str(case.pk), "--reason", "altered")
    asked = run(*words, capsys=capsys)["error"]
    assert asked["code"] == "not_confirmed"
    assert "6300.000000" in asked["message"]
    assert run("--forfeit", str(case.pk), "--yes", capsys=capsys)["error"]["code"] == (
        "reason_missing"
    )
    unknown = run("--grant", str(uuid4()), "--reason", "x", "--yes", capsys=capsys)
    assert unknown["error"]["code"] == "quarantine_not_found"
    assert operator(alice.organization_id) == (2 * earned, 0, 0)
    (row,) = run(*words, "--yes", capsys=capsys)["quarantines"]
    assert (row["state"], row["forfeited_ucr"]) == ("forfeited", earned)
    recorded = AuditEvent.objects.get(tag="admin:earnings:forfeit")
    assert (recorded.organization_id, recorded.data["reason"]) == (alice.organization_id, "altered")


def test_staff_confirm_with_a_reason_in_the_admin(
    case: Quarantine, alice: User, earned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: Client = staff_client(monkeypatch)
    page = "/admin/billing/quarantine/"
    form = {"action": "forfeit", "_selected_action": str(case.pk)}
    asked = inside.post(page, form).content.decode()
    assert "6300.000000" in asked
    assert operator(alice.organization_id) == (2 * earned, 0, 0)
    inside.post(page, form | {"confirmed": "1", "reason": "altered files"})
    assert operator(alice.organization_id) == (earned, 0, earned)
    quarantines.appeal(alice.organization_id, case.pk, "please", by="x", now=NOW)
    assert "please" in inside.get(page).content.decode()
    inside.post(page, form | {"action": "grant", "confirmed": "2", "reason": "fine"})
    assert operator(alice.organization_id) == (2 * earned, 0, 0)
    assert AuditEvent.objects.filter(tag="admin:appeal:decide").count() == 1


@pytest.mark.parametrize("action", ["forfeit", "grant", "reject"])
def test_staff_that_may_only_look_decides_nothing(
    case: Quarantine, alice: User, earned: int, action: str
) -> None:
    inside = staff_inside()
    User.objects.filter(is_staff=True).update(is_view_only=True)
    quarantines.appeal(alice.organization_id, case.pk, "please", by="x", now=NOW)
    body = {"action": action, "_selected_action": str(case.pk), "confirmed": "1", "reason": "x"}
    page = "/admin/billing/quarantine/"
    assert inside.get(page).status_code == 200
    assert inside.post(page, body).status_code == 403
    case.refresh_from_db()
    assert (case.forfeited_ucr, case.decision) == (0, "")
    assert operator(alice.organization_id) == (2 * earned, 0, 0)
