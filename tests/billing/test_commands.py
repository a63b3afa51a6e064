"""The commands of billing, as operators and their scripts call them."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from audit.models import AuditEvent
from billing import consumer_credits, ledger, verify_statement
from billing.errors import JournalRefused
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.payouts import Payout, PayoutMethod
from billing.models.rates import Rate
from billing.models.usage import Progress, UsageLine
from billing.money import UCR_PER_CENT
from billing.payouts import methods, reconciliation, requests
from billing.usage import charges_and_shares
from environments.models import Organization
from tests.billing.payouts.test_payouts import RESTED, Bank, bank, earn
from tests.billing.support import ALICE, NOW, OLGA, consumer, line, operator, store

__all__ = ["bank"]


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    try:
        call_command(*arguments, "--json")
    except CommandError as exc:
        if exc.returncode != 1:
            raise
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


@pytest.fixture
def organization() -> int:
    return Organization.objects.create(name="Alice's").pk


def test_credits_are_granted_and_booked_once(
    organization: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("grantcredits", str(organization), "0.5", "--reason", "welcome")
    paid = (*words, "--paid", "--reference", "invoice 7")
    assert run(*words, "--dry-run", capsys=capsys)["posted"] is False
    assert consumer(organization) == (0, 0, 0)
    assert run(*words, capsys=capsys)["granted_ucr"] == 500_000
    assert [run(*paid, capsys=capsys)["posted"] for _ in range(2)] == [True, False]
    assert consumer(organization) == (500_000, 500_000, 0)


@pytest.mark.parametrize("kind", [(), ("--paid",)])
def test_a_reference_of_other_credits_is_refused(
    organization: int, kind: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """A script would take them for booked."""
    other = Organization.objects.create(name="Charlie's").pk
    rest = ("--reason", "x", "--reference", "invoice 7", *kind)
    assert run("grantcredits", str(organization), "5", *rest, capsys=capsys)["posted"]
    for words in [(str(organization), "6"), (str(other), "5")]:
        said = run("grantcredits", *words, *rest, capsys=capsys)
        assert said["error"]["code"] == "reference_taken"
    assert not run("grantcredits", str(organization), "5", *rest, capsys=capsys)["posted"]
    assert sum(consumer(organization)) == 5_000_000
    assert consumer(other) == (0, 0, 0)


def test_credits_need_words_that_can_be_kept(organization: int) -> None:
    for option, text in [
        ("--reason", ""),
        ("--reason", "x" * 301),
        ("--reason", "a\0b"),
        ("--reference", ""),
        ("--reference", "x" * 101),
        ("--reference", "a\0b"),
    ]:
        words = ["grantcredits", str(organization), "5", "--reason", "x", "--reference", "r"]
        with pytest.raises(CommandError, match="printable characters"):
            call_command(*words, option, text)


def test_an_amount_that_is_none_is_refused(
    organization: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for amount in ["0", "-1", "NaN", "x", "0.0000001", "1e30", "1e999999"]:
        words = ("grantcredits", "--reason", "x", "--", str(organization), amount)
        with pytest.raises(CommandError, match="must be positive"):
            call_command(*words)


def test_credits_that_no_account_holds_are_refused(
    organization: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(JournalRefused) as refusal:
        consumer_credits.charge_back("no payment", reason="x", actor="x")
    assert refusal.value.code == "journal_refused"
    with pytest.raises(JournalRefused):
        consumer_credits.grant(1, 2**62, key="a slip", reason="x", actor="x")
    said = run("grantcredits", "0", "1", "--reason", "x", capsys=capsys)["error"]
    assert said["code"] == "organization_not_found"


def test_settling_is_repeatable_and_a_dry_run_keeps_nothing(
    capsys: pytest.CaptureFixture[str], switched_off: None
) -> None:
    store(line(hits=10))
    assert run("settle", "--dry-run", capsys=capsys)["charged_ucr"] == 1000
    assert run("settle", capsys=capsys)["charged_ucr"] == 1000
    assert run("settle", capsys=capsys)["settled"] == 0
    assert operator() == (0, 0, 0)


def test_a_rate_of_the_past_or_a_half_hour_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for moment in ("2026-01-01T00:00Z", "2100-01-01T00:30Z"):
        said = run("setrate", "hit", "5", "--from", moment, capsys=capsys)
        assert said["error"]["code"] == "rate_refused"
    assert run("setrate", "hit", "5", capsys=capsys)["error"]["code"] == "incomplete"
    run("setrate", "hit", "5", "--from", "2100-01-01T00:00", "--dry-run", capsys=capsys)
    assert Rate.objects.count() == 8
    run("setrate", "hit", "5", "--from", "2100-01-01T00:00", capsys=capsys)
    assert Rate.objects.filter(kind="hit", rate_ucr=5).count() == 1


def test_the_first_fault_of_the_ledger_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    store(line(hits=10))
    charges_and_shares.settle()
    assert run("verifyledger", capsys=capsys)["journals"] == 1
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE billing_account SET balance_ucr = balance_ucr - 1 WHERE kind = 'debt'"
        )
        said = run("verifyledger", capsys=capsys)["error"]
        assert (said["code"], "debt account" in said["message"]) == ("ledger_broken", True)
        cursor.execute(
            "UPDATE billing_account SET balance_ucr = balance_ucr + 1 WHERE kind = 'debt'"
        )


def test_a_line_that_was_passed_over_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    store(line(hits=10))
    passed = Progress.objects.filter(name="settle")
    passed.update(position=UsageLine.objects.get().pk)
    said = run("verifyledger", capsys=capsys)["error"]
    assert "was passed over" in said["message"]
    passed.update(position=0)


def test_payouts_by_hand_are_listed_and_marked(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.BILLING = replace(settings.BILLING, payout_minimum_cents=1)
    methods.replace(OLGA, "manual", {"account": "=1+1"}, by="x", now=NOW)
    ledger.post(
        Journal.Kind.RELEASE,
        "earned",
        [
            Posting(AccountKind.PAYABLE, OLGA, 5 * UCR_PER_CENT),
            Posting(AccountKind.FEES, None, -5 * UCR_PER_CENT),
        ],
    )
    payout = requests.request(OLGA, by="x", now=NOW + timedelta(days=4))
    (row,) = run("runpayouts", "--hold", str(payout.pk), capsys=capsys)["payouts"]
    assert (row["hold_reason"], row["account"]) == ("stopped by staff", "=1+1")
    assert run("runpayouts", capsys=capsys)["payouts"][0]["state"] == "debited"
    run("runpayouts", "--release", str(payout.pk), capsys=capsys)
    assert run("runpayouts", capsys=capsys)["payouts"][0]["state"] == "sent"
    call_command("runpayouts", "--csv")
    # Not a formula in a spreadsheet.
    assert ",'=1+1,5,USD,sent" in capsys.readouterr().out
    for _ in range(2):
        said = run("runpayouts", "--paid", str(payout.pk), "--reference", "7", capsys=capsys)
        assert said["payouts"] == []
    run("runpayouts", "--failed", str(payout.pk), capsys=capsys)
    said = run("runpayouts", "--paid", str(payout.pk), capsys=capsys)
    assert said["error"]["code"] == "payout_is_closed"
    assert operator() == (0, 5 * UCR_PER_CENT, 0)
    assert run("runpayouts", "--paid", str(uuid4()), capsys=capsys)["error"]["code"] == (
        "payout_not_found"
    )


@pytest.fixture
def by_bank(bank: type[Bank]) -> Payout:
    """Return a requested payout of a provider."""
    earn(5 * UCR_PER_CENT * 100)
    return requests.request(OLGA, by="x", now=RESTED)


def tags() -> list[str]:
    """Return the tags of the audit trail, oldest first."""
    return list(AuditEvent.objects.order_by("id").values_list("tag", flat=True))


@pytest.mark.parametrize("times_sent", [0, 2])
def test_a_payout_of_a_provider_is_not_marked_by_the_command(
    by_bank: Payout, times_sent: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(times_sent):
        requests.send(by_bank.pk, now=RESTED)
    for option in ("--failed", "--paid"):
        said = run("runpayouts", option, str(by_bank.pk), capsys=capsys)
        assert said["error"]["code"] == "payout_refused"
    by_bank.refresh_from_db()
    assert (by_bank.state, operator()) == ("confirmed" if times_sent else "debited", (0, 0, 0))
    assert tags() == []


def test_a_held_payout_is_not_marked_as_paid_but_after_a_restore(
    by_bank: Payout, capsys: pytest.CaptureFixture[str]
) -> None:
    PayoutMethod.objects.update(kind="manual")
    words = ("runpayouts", "--paid", str(by_bank.pk))
    run("runpayouts", "--hold", str(by_bank.pk), "--reason", "odd", capsys=capsys)
    assert run(*words, capsys=capsys)["error"]["code"] == "payout_refused"
    run("runpayouts", "--release", str(by_bank.pk), capsys=capsys)
    reconciliation.begin()
    assert run(*words, capsys=capsys)["payouts"] == []


def test_commands_that_move_money_are_in_the_audit_trail(
    organization: int, by_bank: Payout, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    PayoutMethod.objects.update(kind="manual")
    run("grantcredits", str(organization), "1", "--reason", "x", "--dry-run", capsys=capsys)
    for _ in range(2):
        run(
            "grantcredits",
            str(organization),
            "1",
            "--reason",
            "x",
            "--reference",
            "7",
            capsys=capsys,
        )
    run("setrate", "hit", "5", "--from", "2100-01-01T00:00", capsys=capsys)
    payout = str(by_bank.pk)
    for option in ("--hold", "--release", "--paid", "--paid", "--failed", "--failed"):
        run("runpayouts", option, payout, "--reason", "agreed", capsys=capsys)
    paid = ("--record", str(OLGA), "--cents", "200", "--reference", "tr_9")
    for _ in range(2):
        run("runpayouts", *paid, capsys=capsys)
    assert tags() == [
        "admin:credits:grant",
        "admin:rate:set",
        "admin:payout:hold",
        "admin:payout:approve",
        "admin:payout:confirm",
        "admin:payout:reverse",
        "admin:payout:record",
    ]
    held = AuditEvent.objects.get(tag="admin:payout:hold")
    assert (held.organization_id, held.actor, held.data["reason"]) == (OLGA, "command", "agreed")


def test_an_exported_statement_is_recomputed_by_a_script_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    consumer_credits.top_up(ALICE, 2500, reference="x", reason="x", actor="x")
    store(line(hits=10), line(bytes_served=200))
    charges_and_shares.settle()
    call_command("exportstatement", str(OLGA), "2026-11")
    statement = tmp_path / "statement.csv"
    statement.write_text(capsys.readouterr().out)

    def recompute() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", verify_statement.__file__, str(statement)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    right = recompute()
    assert (right.returncode, right.stdout) == (
        0,
        "2 lines, 0 wrong; 1750 µcr, 0 whole cents\n",
    )
    statement.write_text(statement.read_text().replace(",700000,700\n", ",700000,701\n"))
    wrong = recompute()
    assert wrong.returncode == 1
    assert "the amount is 701, not 700" in wrong.stdout
