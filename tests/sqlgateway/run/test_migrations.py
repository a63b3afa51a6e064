"""The SQL that migration tools write runs in an environment: up, down, and after a failed step.

Django writes its SQL here. That of Alembic 1.20 (SQLAlchemy 2.1) and drizzle-kit 0.31 is as these
wrote it: ``alembic upgrade --sql``, ``alembic downgrade --sql``, ``drizzle-kit generate``.
"""

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.sqlgateway.support import Answer, Caller

FOLDER = Path(__file__).parent / "migrations"
NOTES = "tests.sqlgateway.run.migrations.notes"
TABLES = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'r'"
OWN = f"{TABLES} AND relnamespace = 'public'::regnamespace"


def run(someone: Caller, name: str) -> Answer:
    """Send a file as ``zonal sql -f`` does."""
    return someone.sql((FOLDER / name).read_text())


def django(name: str, *, backwards: bool = False) -> str:
    """Return the SQL of a migration."""
    written = io.StringIO()
    call_command("sqlmigrate", "notes", name, backwards=backwards, stdout=written)
    return written.getvalue()


@pytest.fixture
def notes(settings: Any) -> None:
    """Install an application of a tenant."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, NOTES]


def test_alembic_migrates_up_and_down_and_after_a_failed_step(alice: Caller) -> None:
    version = "SELECT version_num FROM alembic_version"
    assert run(alice, "alembic_0001_up.sql").status == 200
    alice.sql("INSERT INTO notes (text) VALUES ('first')")

    failed = run(alice, "alembic_0002_up.sql")

    assert (failed.status, failed.body["sqlstate"]) == (400, "23502"), failed.body
    assert failed.body["column_name"] == "stars"
    assert (alice.value(version), alice.value(OWN)) == ("0001", "alembic_version notes")
    alice.sql("DELETE FROM notes")
    assert run(alice, "alembic_0002_up.sql").status == 200
    assert (alice.value(version), alice.value(OWN)) == ("0002", "alembic_version notes stars")
    assert run(alice, "alembic_down.sql").status == 200
    assert alice.value(OWN) == "alembic_version"
    assert run(alice, "alembic_0001_up.sql").body["sqlstate"] == "42P07"


def test_django_migrates_up_and_down_and_after_a_failed_step(alice: Caller, notes: None) -> None:
    assert alice.sql(django("0001")).status == 200
    alice.sql("INSERT INTO notes_note (text, written) VALUES ('first', now())")

    failed = alice.sql(django("0002"))

    assert (failed.status, failed.body["sqlstate"]) == (400, "23502"), failed.body
    assert alice.value(OWN) == "notes_note"
    alice.sql("DELETE FROM notes_note")
    assert alice.sql(django("0002")).status == 200
    assert alice.value(OWN) == "notes_note stars"
    assert alice.sql(django("0002", backwards=True)).status == 200
    assert alice.sql(django("0001", backwards=True)).status == 200
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
