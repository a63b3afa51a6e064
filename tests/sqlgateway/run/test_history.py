"""The history of SQL requests: what is kept, for how long, and who reads it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from accounts.models import User
from environments.models import Environment
from sqlgateway import tasks
from sqlgateway.models import SqlRecord
from sqlgateway.run import history
from sqlgateway.run.history import RECORDER, Recorder
from sqlgateway.run.record_writer import BackgroundWriter
from tests import cast
from tests.sqlgateway.support import Caller

PATH = "/v1/sql/history"


@pytest.fixture
def team(databases: None) -> dict[str, cast.Caller]:
    """Return Alice the admin, Bob the operator and Eve the reader of one organization."""
    home = cast.organization()
    roles = {"alice": "admin", "bob": "operator", "eve": "reader"}
    return {
        name: cast.signed_in(cast.member(home, f"{name}@example.com", role=role))
        for name, role in roles.items()
    }


def run(caller: cast.Caller, query: str, **options: Any) -> cast.Answer:
    """Run a text and write the history."""
    answer = caller.post("/v1/sql", {"query": query, **options})
    RECORDER.flush()
    return answer


def history_of(caller: cast.Caller, filters: str = "") -> list[dict[str, Any]]:
    answer = caller.get(f"{PATH}?{filters}")
    assert answer.status == 200, answer.body
    rows: list[dict[str, Any]] = answer.body["results"]
    return rows


def queries_of(caller: cast.Caller, filters: str = "") -> list[str]:
    return [row["query"] for row in history_of(caller, filters)]


def test_a_request_and_its_error_are_in_the_history_without_values(team: Any) -> None:
    done = run(team["alice"], "SELECT $1::text FROM generate_series(1, 3)", params=["hidden"])
    failed = run(team["alice"], "SELECT nonesuch", read_only=True)

    second, first = history_of(team["alice"])

    assert first["request_id"] == done.body["request_id"]
    assert (first["outcome"], first["row_count"], first["sqlstate"]) == ("success", 3, "")
    assert (first["user"], first["role"]) == ("alice@example.com", "admin")
    assert first["elapsed_ms"] > 0
    assert "hidden" not in str(first)
    assert second["request_id"] == failed.body["request_id"]
    assert (second["outcome"], second["sqlstate"]) == ("sql_error", "42703")
    assert second["row_count"] is None


def test_plans_and_measurements_are_told_from_runs(team: Any) -> None:
    for explain in (True, "analyze", None):
        run(team["alice"], "SELECT 1", **({"explain": explain} if explain else {}))
    run(team["alice"], "SELECT nonesuch", explain=True)

    assert [row["explain"] for row in history_of(team["alice"])] == ["plan", "", "analyze", "plan"]


def test_everyone_reads_their_own_and_an_admin_the_environments(team: Any) -> None:
    for name, caller in team.items():
        run(caller, f"SELECT 1 AS {name}")
    stranger = cast.signed_in(cast.member(cast.organization("Charlie's"), "charlie@example.org"))
    elsewhere = cast.signed_in(User.objects.get(email="alice@example.com"), "sandbox")

    assert queries_of(team["eve"]) == ["SELECT 1 AS eve"]
    assert queries_of(team["bob"]) == ["SELECT 1 AS bob"]
    assert len(queries_of(team["alice"])) == 3
    assert queries_of(stranger) == queries_of(elsewhere) == []


def test_filters_and_pages_narrow_the_history(team: Any) -> None:
    alice, bob = team["alice"], team["bob"]
    run(alice, "SELECT 1 AS first")
    run(bob, "SELECT nonesuch")
    run(alice, "SELECT 1 AS Third")
    rows = history_of(alice)
    bobs = rows[1]

    assert queries_of(alice, f"user={bobs['user_id']}") == ["SELECT nonesuch"]
    assert queries_of(alice, "outcome=error") == ["SELECT nonesuch"]
    assert queries_of(alice, "outcome=sql_error&sqlstate=42703") == ["SELECT nonesuch"]
    assert queries_of(alice, "query=third") == ["SELECT 1 AS Third"]
    assert queries_of(alice, f"request_id={bobs['request_id']}") == ["SELECT nonesuch"]
    at = bobs["at"].replace("+", "%2B")
    assert queries_of(alice, f"since={at}") == ["SELECT 1 AS Third", "SELECT nonesuch"]
    assert queries_of(alice, f"until={at}") == ["SELECT 1 AS first"]
    page = alice.get(f"{PATH}?page_size=2")
    assert len(page.body["results"]) == 2
    rest = alice.get(page.body["next"].partition("testserver")[2])
    assert [row["query"] for row in rest.body["results"]] == ["SELECT 1 AS first"]
    assert alice.get(f"{PATH}?querry=x").status == 400


def test_a_text_is_cut(team: Any) -> None:
    text = f"SELECT '{'x' * 2_000}'"
    run(team["alice"], "SELECT 1")
    run(team["alice"], text)
    found = [(row["query"], row["is_cut"]) for row in history_of(team["alice"])]

    assert found == [(text[:2_000], True), ("SELECT 1", False)]


def test_several_statements_are_one_entry(team: Any) -> None:
    team["alice"].post("/v1/sql", {"queries": [{"query": "SELECT 1"}, {"query": "SELECT 2"}]})
    RECORDER.flush()

    (row,) = history_of(team["alice"])

    assert (row["query"], row["statements"]) == ("SELECT 1;\nSELECT 2", 2)


def test_an_organization_keeps_its_newest_rows(team: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "TRIM_EVERY", 2)
    monkeypatch.setattr(history, "MAX_ROWS", 3)
    for number in range(6):
        run(team["alice"], f"SELECT {number}")

    assert queries_of(team["alice"]) == ["SELECT 5", "SELECT 4", "SELECT 3"]


def test_the_task_deletes_what_is_old_or_too_much(
    team: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        run(team["alice"], f"SELECT {number}")
    monkeypatch.setattr(history, "MAX_ROWS", 2)
    tasks.prune_history(0)
    assert queries_of(team["alice"]) == ["SELECT 2", "SELECT 1"]

    tasks.prune_history(0)
    assert len(queries_of(team["alice"])) == 2

    later = timezone.now() + timedelta(days=settings.SQL.history_days, seconds=5)
    history.prune(now=later)
    assert queries_of(team["alice"]) == []


def test_no_history_is_kept_for_zero_days(team: Any) -> None:
    with override_settings(SQL=replace(settings.SQL, history_days=0)):
        run(team["alice"], "SELECT 1")

    assert queries_of(team["alice"]) == []


def test_an_organization_that_floods_the_queue_loses_only_its_own(
    alice: Caller, charlie: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_ENTRIES_OF_ORGANIZATION", 2)
    for _ in range(4):
        alice.value("SELECT 1")
    charlie.value("SELECT 2")

    assert RECORDER.dropped == 2
    RECORDER.flush()

    texts = SqlRecord.objects.order_by("id").values_list("text", flat=True)
    assert list(texts) == ["SELECT 1", "SELECT 1", "SELECT 2"]


def test_an_environment_that_was_deleted_has_no_history(alice: Caller, charlie: Caller) -> None:
    alice.value("SELECT 1")
    charlie.value("SELECT 2")
    environment = Environment.objects.get(pk=alice.scope.environment_pk)
    entries = RECORDER._entries
    entries[0].caller = replace(entries[0].caller, scope=replace(alice.scope, environment_pk=0))
    RECORDER.flush()

    assert environment.organization_id == alice.scope.organization_id
    assert [row.text for row in SqlRecord.objects.all()] == ["SELECT 2"]


def test_the_writer_writes_what_is_queued_when_the_process_ends(
    committed: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, recorder = BackgroundWriter(), Recorder()
    writer.add_job(recorder.flush)
    monkeypatch.setattr(history, "WRITER", writer)
    monkeypatch.setattr(history, "RECORDER", recorder)

    committed.value("SELECT 1")
    committed.value("SELECT 2")
    writer.close()

    assert SqlRecord.objects.count() == 2


def test_the_last_day_is_counted_by_hour_for_its_readers(team: Any) -> None:
    run(team["alice"], "SELECT 1")
    run(team["bob"], "SELECT nonesuch")
    old = SqlRecord.objects.order_by("id").first()
    assert old is not None
    two_days_ago = timezone.now() - timedelta(days=2)
    SqlRecord.objects.filter(pk=old.pk).update(id=history.first_id(two_days_ago))
    run(team["alice"], "SELECT 2")
    everything = team["alice"].get("/v1/sql/activity").body
    assert (everything["requests"], everything["failures"]) == (2, 1)
    assert sum(hour["requests"] for hour in everything["hours"]) == 2
    assert all(hour["slowest_ms"] >= hour["average_ms"] > 0 for hour in everything["hours"])
    bobs = team["bob"].get("/v1/sql/activity").body
    assert (bobs["requests"], bobs["failures"]) == (1, 1)
