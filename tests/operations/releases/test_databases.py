"""A database of another release, by Django's record of its migrations."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from operations import releases
from tests.deploy.tools import DEPLOY

pytestmark = pytest.mark.django_db

Record = MigrationRecorder.Migration


def of_before() -> None:
    """Record what an installation of two days before 0.1.0 had."""
    Record.objects.filter(app__in=["common", "audit", "brain"]).delete()
    for number in range(1, 15):
        Record.objects.create(app="brain", name=f"{number:04}_step")


def test_a_database_of_before_the_first_release_is_refused_in_a_sentence() -> None:
    of_before()
    with pytest.raises(CommandError, match=r"before release 0\.1\.0") as refused:
        call_command("migrate", interactive=False)
    assert len(str(refused.value).splitlines()) == 1
    with pytest.raises(CommandError, match=r"before release 0\.1\.0"):
        call_command("bootstrap", "--migrate")


def test_migrate_of_an_older_release_says_that_the_database_is_newer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Record.objects.create(app="brain", name="0002_of_the_next_release")
    call_command("migrate", interactive=False, verbosity=0)
    assert "newer release than this one" in capsys.readouterr().err
    # Upgraded and not rolled back: nothing is said.
    Record.objects.filter(name="0002_of_the_next_release").delete()
    call_command("migrate", interactive=False, verbosity=0)
    assert capsys.readouterr().err == ""


def test_a_migration_of_this_release_may_replace_those_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until `migrate` records it, only the replaced ones are recorded."""
    initial = import_module("edgecache.brain.migrations.0001_initial").Migration
    replaced = [("brain", "0001_before"), ("brain", "0002_before")]
    monkeypatch.setattr(initial, "replaces", replaced)
    Record.objects.filter(app="brain", name="0001_initial").delete()
    for app, name in replaced:
        Record.objects.create(app=app, name=name)
    releases.check_start()
    releases.refuse_too_old()
    assert releases.newer_sentence() == ""
    call_command("migrate", interactive=False, verbosity=0)
    assert Record.objects.filter(app="brain", name="0001_initial").exists()
    assert capsys.readouterr().err == ""


@contextmanager
def copy_of_record() -> Iterator[None]:
    rows = list(Record.objects.values("app", "name"))
    try:
        yield
    finally:
        Record.objects.all().delete()
        Record.objects.bulk_create(Record(**row) for row in rows)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "command",
    [
        ("-m", "gunicorn", "-c", "python:platform_site.gunicorn", "platform_site.wsgi"),
        ("manage.py", "procrastinate", "worker"),
        ("-m", "edgecache.brain"),
    ],
)
def test_no_process_starts_on_a_database_of_before_the_first_release(
    command: tuple[str, ...],
) -> None:
    name = str(connection.settings_dict["NAME"])
    environment = os.environ | {
        "DATABASE_URL": urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl(),
        "ZSECRET_KEYS": ",".join(settings.SECRET_KEYS),
        "ZCACHE_BRAIN_SECRET": "s" * 40,
    }
    with copy_of_record():
        of_before()
        ended = subprocess.run(
            [sys.executable, *command],
            check=False,
            cwd=DEPLOY.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert ended.returncode != 0
    assert "before release 0.1.0" in ended.stderr
    assert "Traceback" not in ended.stderr
