"""Backups are whole, encrypted, incremental and checked."""

import json
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.fixtures import Settings

from audit.models import AuditEvent
from edgecache.brain.conf.stores import StoreSettings
from environments.models import Organization
from operations.backup import control
from sqlgateway.models import Database
from tests.commands import facts, refused, run
from tests.operations.backup.fill import OBJECTS

pytestmark = pytest.mark.slow


def _code(*words: str) -> str:
    return str(refused("backup", *words)[1]["code"])


def test_a_backup_has_everything_once_and_nothing_readable(
    home: Organization, store: Path, settings: Settings
) -> None:
    made = facts("backup")
    assert (made["environments"], made["failed"], made["missing_objects"]) == (3, 0, 0)
    assert made["objects"] == made["uploaded_objects"] == OBJECTS
    files = [path for path in store.rglob("*") if path.is_file()]
    assert len(list(store.glob(f"backups/{made['id']}/environments/*"))) == 3
    for word in (b"kept", b"alice", b"object 3"):
        assert not [path for path in files if word in path.read_bytes()]
    # Nothing of it stays on the platform's own disk, where only its user looks.
    backup = settings.DATA_DIR / "backup"
    assert not [path for path in backup.rglob("*") if path.is_file()]
    assert stat.S_IMODE(backup.stat().st_mode) & 0o077 == 0

    again = facts("backup")
    assert (again["objects"], again["uploaded_objects"]) == (OBJECTS, 0)
    # One environment alone pushes no backup of everything out.
    single = facts("backup", "--environment", f"{home.pk}:sandbox-2")
    assert (single["kind"], single["environments"], single["objects"]) == ("environment", 1, 0)
    listed = facts("backup", "--list")["backups"]
    assert {each["id"] for each in listed} == {made["id"], again["id"], single["id"]}
    assert {each["state"] for each in listed} == {"complete"}
    assert facts("backup", "--drilled", again["id"])["drilled"] is True
    assert _code("--drilled", single["id"]) == "backup_of_environment"
    assert _code("--drilled", "20200101T000000.000Z-00000000") == "backup_not_found"
    would = facts("backup", "--prune", "1", "--dry-run")
    assert (would["deleted"], would["dry_run"]) == ([made["id"]], True)
    assert _code("--dry-run") == "dry_run_misplaced"
    assert facts("backup", "--list")["backups"] == listed
    for _ in range(2):
        gone = facts("backup", "--prune", "1")["deleted"]
        assert gone in ([made["id"]], [])
    event = AuditEvent.objects.get(tag="cli:backup:delete")
    assert event.data["deleted"] == [made["id"]]
    for left in (again, single):
        assert facts("backup", "--verify", left["id"])["verified"]
    assert len(list(store.glob("objects/*/*"))) == OBJECTS
    empty = [folder for folder in store.rglob("*") if folder.is_dir() and not any(folder.iterdir())]
    assert {folder.name for folder in empty} <= {"backups-unfinished", "objects-unfinished"}


def test_a_copy_without_data_is_named_and_not_counted(home: Organization, store: Path) -> None:
    copy = Database.objects.get(environment__slug="sandbox-2")
    Database.objects.filter(pk=copy.pk).update(state=Database.State.FAILED)
    made = facts("backup")
    assert (made["environments"], made["failed"]) == (2, 0)
    assert made["without_data"] == [{"org_id": home.pk, "environment": "sandbox-2"}]
    text = run("backup")
    assert f"Environment {home.pk}:sandbox-2 is a copy that was not finished" in text
    assert "2 environments" in text


def test_a_part_of_the_objects_is_verified_each_day(home: Organization, store: Path) -> None:
    facts("backup")
    altered = next(store.glob("objects/*/*"))
    altered.write_bytes(altered.read_bytes()[:-1])
    found = 0
    for day in range(3):
        with time_machine.travel(timezone.now() + timedelta(days=day)):
            try:
                facts("backup", "--verify", "--one-in", "3")
            except CommandError:
                found += 1
    assert found == 1
    altered.unlink()
    assert _code("--verify", "--one-in", "30") == "backup_altered"
    assert _code("--one-in", "2") == _code("--verify", "--one-in", "0") == "one_in_invalid"


def test_a_backup_that_was_altered_or_has_no_end_is_none(
    home: Organization, store: Path, settings: Settings
) -> None:
    made = facts("backup")
    folder = store / "backups" / made["id"]
    some_object = next(store.glob("objects/*/*"))
    for file in (folder / "default.dump.age", folder / "environments" / "1.dump.age", some_object):
        data = file.read_bytes()
        half = len(data) // 2
        for wrong in (data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :], data[:-1], None):
            if wrong is None:
                file.unlink()
            else:
                file.write_bytes(wrong)
            assert _code("--verify") == "backup_altered"
        file.write_bytes(data)
    manifest = folder / "manifest.json"
    given = json.loads(manifest.read_text())
    body = given["body"].replace(f'"objects": {OBJECTS}', '"objects": 1')
    manifest.write_text(json.dumps(given | {"body": body}))
    assert _code("--verify", made["id"]) == "backup_altered"
    # Another platform's is distinguished from a damaged one.
    ours = settings.SECRET_KEYS
    settings.SECRET_KEYS = (Fernet.generate_key().decode(),)
    assert _code("--verify", made["id"]) == "keys_differ"
    settings.SECRET_KEYS = ours
    manifest.unlink()
    assert [each["state"] for each in facts("backup", "--list")["backups"]] == ["unfinished"]
    assert _code("--verify") == "backup_not_found"
    # It may yet be continued.
    assert facts("backup", "--prune", "1")["deleted"] == []


@pytest.mark.django_db(transaction=True)
def test_what_is_called_wrongly_says_so(store: Path, settings: Settings) -> None:
    assert _code("--environment", "1:absent") == "environment_not_found"
    assert _code("--environment", "live") == "environment_invalid"
    assert _code("--prune", "0") == "keep_invalid"
    settings.BACKUP = replace(settings.BACKUP, store=StoreSettings(url=f"file://{store}/absent"))
    with pytest.raises(CommandError) as caught:
        call_command("backup")
    assert caught.value.returncode == 3
    settings.BACKUP = replace(settings.BACKUP, store=StoreSettings(url=""))
    assert _code() == "backup_not_configured"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("label", ["accounts.Gone", "gone.Session", "brain.Gone"])
@pytest.mark.parametrize("words", [("backup",), ("restore", "--after-recovery")])
def test_a_label_without_a_model_stops_what_would_keep_its_rows(
    store: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], label: str
) -> None:
    """Its rows, credentials under another name, would be in the backup."""
    before = AuditEvent.objects.count()
    monkeypatch.setattr(control, "CREDENTIALS_AND_QUEUES", control.CREDENTIALS_AND_QUEUES | {label})
    monkeypatch.setattr(control, "OMITTED", control.OMITTED | {label})
    sentence, error = refused(*words)
    assert (error["code"], error["label"]) == ("model_unknown", label)
    assert label in sentence
    assert not [path for path in store.rglob("*") if path.is_file()]
    assert AuditEvent.objects.count() == before
