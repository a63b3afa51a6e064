"""How long the audit trail is kept, and how it is exported."""

import csv
import json
import re
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules
from procrastinate.contrib.django import app

from accounts.models import User
from audit import trail
from audit.conf import AuditSettings
from audit.models import AuditEvent
from common.settings.env import Env, SettingError
from common.settings.table import load
from operations.management.commands import exportaudit
from tests.audit.test_trail import happened
from tests.commands import facts, help_of, misused, refused, run
from tests.conformance import document

pytestmark = pytest.mark.django_db


def aged(days: int, tag: str = "test:old:create") -> None:
    """Record an event of some days ago: the trail's own guard allows no change, but this."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_auditevent (id, at, tag, outcome, environment_id, actor,"
            " address, agent, request_id, data)"
            " VALUES (gen_random_uuid(), %s, %s, 'success', '', '', '', '', '', '{}')",
            [timezone.now() - timedelta(days=days), tag],
        )


def kept() -> int:
    return AuditEvent.objects.count()


def test_events_older_than_the_retention_are_deleted() -> None:
    for days in (1, 364, 366, 4000):
        aged(days)
    assert trail.prune(retention_days=365, now=timezone.now()) == 2
    assert kept() == 2


def test_what_tells_the_age_of_a_key_is_kept() -> None:
    aged(4000, "system:key:see")
    assert trail.prune(retention_days=365, now=timezone.now()) == 0
    assert kept() == 1


def test_a_retention_of_zero_deletes_no_event() -> None:
    aged(4000)
    assert trail.prune(retention_days=0, now=timezone.now()) == 0
    assert kept() == 1


def test_many_go_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail, "BATCH", 2)
    for _ in range(5):
        aged(400)
    assert trail.prune(retention_days=365, now=timezone.now()) == 5


@pytest.mark.parametrize("days", [0, 1, 29])
def test_the_last_thirty_days_are_kept_for_any_caller(days: int) -> None:
    aged(days)
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("DELETE FROM audit_auditevent")
    assert trail.prune(retention_days=1, now=timezone.now()) == 0
    assert kept() == 1


@pytest.mark.parametrize("text", ["1", "29", "-1", "x"])
def test_a_retention_that_is_too_short_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(SettingError, match="ZAUDIT_RETENTION_DAYS"):
        load(AuditSettings, Env({"ZAUDIT_RETENTION_DAYS": text}, {}))


def test_events_leave_as_json_lines_oldest_first(alice: User, charlie: User) -> None:
    happened(alice, "api:one:create", data={"name": "Müller"})
    happened(charlie, "api:two:create")
    lines = [json.loads(line) for line in run("exportaudit").splitlines()]
    assert [line["tag"] for line in lines] == ["api:one:create", "api:two:create"]
    assert lines[0]["data"] == {"name": "Müller"}
    only = run("exportaudit", "--organization", str(alice.organization_id)).splitlines()
    assert len(only) == 1


def test_an_export_of_the_trail_is_in_the_trail(alice: User, tmp_path: Path) -> None:
    happened(alice, "api:one:create")
    number = alice.organization_id
    chosen = ("--organization", str(number), "--since", "2020-01-01")
    run("exportaudit", *chosen)
    facts("exportaudit", "--output", str(tmp_path / "audit.jsonl"))
    first, second = AuditEvent.objects.filter(tag="cli:audit:export").order_by("id")
    assert first.organization_id == number
    assert first.data == {"events": 1, "filters": {"since": "2020-01-01 00:00:00+00:00"}}
    assert (second.organization_id, second.data) == (None, {"events": 2, "filters": {}})


def test_filters_are_those_of_the_api(alice: User) -> None:
    happened(alice, "api:one:create")
    happened(alice, "api:two:create", outcome="refused")
    assert len(run("exportaudit", "--outcome", "refused").splitlines()) == 1
    assert len(run("exportaudit", "--tag", "api:one").splitlines()) == 1
    # The exports above are events, too.
    assert len(run("exportaudit", "--search", " ").splitlines()) == 4
    happened(alice, "api:three:create", environment_id="sandbox", request_id="req-7")
    for filtered in (["--environment", "sandbox"], ["--request-id", "req-7"]):
        (line,) = run("exportaudit", *filtered).splitlines()
        assert json.loads(line)["tag"] == "api:three:create"
    offered = help_of("exportaudit")
    for parameter in document()["paths"]["/v1/audit"]["get"]["parameters"]:
        if parameter["name"] not in {"cursor", "page_size"}:
            assert f"--{parameter['name'].replace('_', '-')} " in offered
    assert run("exportaudit", "--until", "2020-01-01") == ""
    assert misused("exportaudit", "--since", "yesterday") == 2
    span = ("--since", "2026-11-21", "--until", "2026-11-20")
    assert refused("exportaudit", *span)[1]["code"] == "span_empty"


@pytest.mark.parametrize(
    "name", ["--tag", "--outcome", "--environment", "--actor", "--request-id", "--since"]
)
def test_a_filter_that_is_empty_is_not_everything(alice: User, name: str) -> None:
    """As a script's unset variable makes it."""
    happened(alice, "api:one:create")
    assert misused("exportaudit", name, "") == 2


def test_a_cell_that_a_spreadsheet_would_run_is_made_text(alice: User, tmp_path: Path) -> None:
    happened(alice, "api:one:create", agent="=cmd|' /C calc'!A0")
    path = tmp_path / "audit.csv"
    said = facts("exportaudit", "--format", "csv", "--output", str(path))
    assert said == {"events": 1, "output": str(path)}
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert row["agent"] == "'=cmd|' /C calc'!A0"
    assert row["tag"] == "api:one:create"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text("mine")
    assert refused("exportaudit", "--output", str(path))[1]["code"] == "output_refused"
    assert path.read_text() == "mine"
    assert refused("exportaudit")[1]["code"] == "output_missing"


def test_a_file_has_its_name_once_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a trail, of a process that was killed, looks like a whole one."""
    path = tmp_path / "audit.jsonl"
    (tmp_path / "audit.jsonl.unfinished").write_text("of a process that was killed")

    def write(_rows: object, _write: object) -> int:
        assert not path.exists()
        assert [stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()] == [0o600]
        raise KeyboardInterrupt

    monkeypatch.setitem(exportaudit.WRITERS, "jsonl", write)
    with pytest.raises(KeyboardInterrupt):
        run("exportaudit", "--output", str(path))
    assert not list(tmp_path.iterdir())


def test_pruning_by_hand_does_what_the_queue_does() -> None:
    aged(4000)
    ran = facts("pruneexpired")["ran"]
    assert "accounts.forget_expired" in ran
    assert kept() == 0


def test_pruning_by_hand_forgets_all_that_the_queue_forgets() -> None:
    # As the worker does; otherwise only the tasks are known that other tests have used.
    autodiscover_modules("tasks")
    periodic = [task.task.name for task in app.periodic_registry.periodic_tasks.values()]
    prunes = [name for name in periodic if re.search(r"\.(forget|delete|drop|maintain)_\w+$", name)]
    ran = facts("pruneexpired")["ran"]
    assert sorted(ran) == sorted(name.replace(".tasks.", ".") for name in prunes)
