"""A clone that cannot be made fails at its first attempt, and its tenant gets the reason."""

from collections.abc import Callable
from typing import Any

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.models import User
from audit.models import AuditEvent
from environments import environments
from sqlgateway.databases import provisioning, tasks
from sqlgateway.databases.copies import ProgramsMissing, programs
from sqlgateway.models import Database
from tests.cast import Caller, signed_in
from tests.sqlgateway.databases.copies.common_schemas import FUNCTIONS

pytestmark = [pytest.mark.provisions, pytest.mark.slow]

SignIn = Callable[[str], Caller]
STAGING = "/v1/environments/staging"
# Statements that work, and PostgreSQL's sentence about the copy.
REFUSED = {
    "time that has passed": (
        """CREATE TABLE "A b" (e timestamptz CONSTRAINT fresh CHECK (e > now()));
        INSERT INTO "A b" VALUES (now() + interval '1 ms')""",
        'rows of table A b: new row for relation "A b" violates check constraint "fresh"',
    ),
    "function that was replaced": (
        """CREATE FUNCTION ok(i int) RETURNS bool LANGUAGE sql AS 'SELECT true';
        CREATE TABLE a (secret int CONSTRAINT c CHECK (ok(secret))); INSERT INTO a VALUES (4711);
        CREATE OR REPLACE FUNCTION ok(i int) RETURNS bool LANGUAGE sql AS 'SELECT false'""",
        'constraint c of public.a: check constraint "c" of relation "a" is violated by some row',
    ),
    "function that fails": (
        """CREATE TABLE a (n text, s text GENERATED ALWAYS AS (slow_slug(n)) STORED);
        INSERT INTO a (n) VALUES ('N');
        CREATE OR REPLACE FUNCTION slug(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql
            AS $$ BEGIN RAISE 'as % says', current_user; END $$""",
        "rows of table a: as role says (PL/pgSQL function slug(text) line 1 at RAISE)",
    ),
    "unique index": (
        """CREATE TABLE a (n text); CREATE UNIQUE INDEX i ON a (slow_slug(n));
        INSERT INTO a VALUES ('N'), ('M');
        CREATE OR REPLACE FUNCTION slug(t text) RETURNS text IMMUTABLE LANGUAGE sql
            AS $$ SELECT 'same' $$""",
        'index i: could not create unique index "i"',
    ),
}


def _run_jobs() -> None:
    for job in ProcrastinateJob.objects.filter(
        task_name="sqlgateway.databases.tasks.clone_database"
    ):
        tasks.clone_database(**job.args)


def _clone(admin: Caller) -> dict[str, Any]:
    """Clone ``live`` as ``staging`` with one attempt; return what the API says then."""
    assert admin.post("/v1/environments", {"name": "staging", "from": "live"}).status == 201
    _run_jobs()
    detail: dict[str, Any] = admin.get(STAGING).body
    return detail


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_copied_fails_immediately_with_postgresqls_sentence(
    name: str, signed_in_as: SignIn
) -> None:
    text, sentence = REFUSED[name]
    admin = signed_in_as("admin")
    assert admin.post("/v1/sql", {"query": FUNCTIONS + text}).status == 200

    detail = _clone(admin)

    assert (detail["database_state"], detail["database_error"]) == ("failed", sentence)
    assert detail in [{**row, "database_progress": None} for row in _listed(admin)]
    event = AuditEvent.objects.get(tag="sql:database:clone")
    assert (event.outcome, event.environment_id) == ("failed", "staging")
    assert event.data == {"from": "live", "reason": sentence}
    assert "4711" not in str(event.data)
    environment = environments.find(event.organization_id or 0, "staging")
    row = Database.objects.get(environment=environment)
    assert row.copy_attempts == 1
    assert provisioning.error_of(environment.pk) == sentence


def test_sql_in_a_failed_clone_says_why(signed_in_as: SignIn) -> None:
    text, sentence = REFUSED["time that has passed"]
    admin = signed_in_as("admin")
    admin.post("/v1/sql", {"query": text})
    _clone(admin)

    there = signed_in(User.objects.get(email="admin@example.com"), "staging")
    answer = there.post("/v1/sql", {"query": "SELECT 1"})

    assert (answer.status, answer.code, answer.body["detail"]) == (409, "clone_failed", sentence)


def test_a_clone_without_programs_fails_immediately(
    signed_in_as: SignIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    admin = signed_in_as("admin")
    admin.post("/v1/sql", {"query": "CREATE TABLE a (id int)"})

    def missing(major: int) -> None:
        raise ProgramsMissing(major, " /usr/bin has 14.2, which is older than the server.")

    monkeypatch.setattr(programs, "folder", missing)
    detail = _clone(admin)

    assert detail["database_error"] == (
        "The platform lacks the programs that copy databases: tell its operator."
    )
    assert "/usr/bin has 14.2" in caplog.text


def test_a_clone_of_a_deleted_environment_fails_immediately(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    admin.post("/v1/sql", {"query": "CREATE TABLE a (id int)"})
    admin.post("/v1/environments", {"name": "staging", "from": "live"})
    Database.objects.filter(copy_source=None).update(state=Database.State.SUSPENDED)
    _run_jobs()

    detail = admin.get(STAGING).body
    assert detail["database_error"] == "The environment to copy from was deleted."


def test_a_failure_that_may_pass_is_tried_again(signed_in_as: SignIn) -> None:
    """The source is being moved at the first attempt."""
    admin = signed_in_as("admin")
    admin.post("/v1/sql", {"query": "CREATE TABLE a AS SELECT 1 AS id"})
    admin.post("/v1/environments", {"name": "staging", "from": "live"})
    Database.objects.filter(copy_source=None).update(state=Database.State.MOVING)
    _run_jobs()
    assert admin.get(STAGING).body["database_state"] == "copying"
    Database.objects.filter(copy_source=None).update(state=Database.State.ACTIVE)
    _run_jobs()

    assert admin.get(STAGING).body["database_state"] == "ready"


def _listed(admin: Caller) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = admin.get("/v1/environments").body["results"]
    return rows
