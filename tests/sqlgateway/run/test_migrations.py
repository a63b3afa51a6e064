"""The SQL that migration tools write runs in an environment: up, down, and after a failed step.

Django writes its SQL here. That of drizzle-kit 0.31 is as it wrote it: ``drizzle-kit generate``.
Alembic's is run by the command, in tests/clients/cli.
"""

import json
import subprocess
import sys
from pathlib import Path

from django.db import connection

from tests.documents.blocks import ROOT
from tests.sqlgateway.support import Answer, Caller

FOLDER = Path(__file__).parent / "migrations"
NOTES = "tests.sqlgateway.run.migrations.notes"
MANAGE = """
import json, sys
from django.conf import settings
from django.core.management import execute_from_command_line
settings.configure(**json.load(sys.stdin))
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""
TABLES = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'r'"
OWN = f"{TABLES} AND relnamespace = 'public'::regnamespace"


def run(someone: Caller, name: str) -> Answer:
    """Send a file as ``zonal sql -f`` does."""
    return someone.sql((FOLDER / name).read_text())


def django(name: str, *options: str) -> str:
    """Return the SQL of a migration, as ``manage.py sqlmigrate`` of a tenant's project prints it.

    It asks a database which migrations have run; here the platform's own, which has none of these.
    """
    parts = connection.settings_dict
    database = {part: parts[part] for part in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    database["ENGINE"] = "django.db.backends.postgresql"
    done = subprocess.run(
        [sys.executable, "-c", MANAGE, "sqlmigrate", "notes", name, *options],
        input=json.dumps({"INSTALLED_APPS": [NOTES], "DATABASES": {"default": database}}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_django_migrates_up_and_down_and_after_a_failed_step(alice: Caller) -> None:
    assert alice.sql(django("0001")).status == 200
    alice.sql("INSERT INTO notes_note (text, written) VALUES ('first', now())")

    failed = alice.sql(django("0002"))

    assert (failed.status, failed.body["sqlstate"]) == (400, "23502"), failed.body
    assert alice.value(OWN) == "notes_note"
    alice.sql("DELETE FROM notes_note")
    assert alice.sql(django("0002")).status == 200
    assert alice.value(OWN) == "notes_note stars"
    assert alice.sql(django("0002", "--backwards")).status == 200
    assert alice.sql(django("0001", "--backwards")).status == 200
    assert alice.value(OWN) is None


def test_drizzle_migrates_up_and_after_a_failed_step(alice: Caller) -> None:
    assert run(alice, "drizzle_0000_notes.sql").status == 200
    alice.sql(
        "INSERT INTO authors (email) VALUES ('a'); INSERT INTO notes (author, text) VALUES (1, 'b')"
    )
    alice.sql("CREATE INDEX notes_by_author ON notes (author)")

    failed = run(alice, "drizzle_0001_stars.sql")

    assert failed.body["sqlstate"] == "42P07", failed.body
    assert alice.sql("SELECT stars FROM notes").body["sqlstate"] == "42703"
    alice.sql("DROP INDEX notes_by_author")
    assert run(alice, "drizzle_0001_stars.sql").status == 200
    assert alice.value("SELECT stars FROM notes") == 0
