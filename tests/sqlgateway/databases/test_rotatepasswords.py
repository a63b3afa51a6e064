"""The command and the action of staff that rotate passwords."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from audit.models import AuditEvent
from common.principals import Scope
from environments import environments
from environments.models import Organization
from sqlgateway.databases import stock, tasks
from sqlgateway.management.commands import rotatepasswords
from sqlgateway.models import Cluster, Database
from tests.commands import facts, misused, refused, run
from tests.sqlgateway.support import Caller
from tests.staff import staff_inside

pytestmark = [pytest.mark.provisions, pytest.mark.slow]

COMMAND = "rotatepasswords"
# Nothing listens there.
NOWHERE = "postgresql://zonal:x@127.0.0.1:1/postgres"


@pytest.fixture
def staging(alice: Caller) -> Caller:
    """Return Alice in another environment of her organization, which has a database as well."""
    made = environments.create(alice.scope.organization_id, "staging")
    someone = Caller(Scope(alice.scope.organization_id, made.pk))
    for each in (alice, someone):
        each.value("SELECT 1")
    return someone


def secrets() -> dict[int, str]:
    """Return the secrets of every database."""
    return dict(Database.objects.values_list("pk", "secrets"))


def changed(before: dict[int, str]) -> set[int]:
    """Return the databases whose passwords are others than before."""
    return {pk for pk, kept in secrets().items() if kept != before.get(pk)}


def unfinished(*arguments: str) -> tuple[dict[str, Any], str]:
    """Run the command, which ends with status 4; return its facts and what it said meanwhile."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command(COMMAND, *arguments, "--json", stdout=out, stderr=err)
    assert caught.value.returncode == 4
    return json.loads(out.getvalue()), err.getvalue()


def test_one_environment_an_organization_or_all_get_new_passwords(
    alice: Caller, staging: Caller, charlie: Caller
) -> None:
    charlie.value("SELECT 1")
    stock.refill(1)
    organization = str(alice.scope.organization_id)
    own = {alice.database.pk, staging.database.pk}
    everything = {*secrets()}
    assert len(everything) == 4

    for arguments, expected in (
        ([organization, "live"], {alice.database.pk}),
        ([organization], own),
        (["--cluster", "default"], everything),
        (["--all"], everything),
    ):
        before = secrets()
        dry = facts(COMMAND, *arguments, "--dry-run")
        assert (dry["databases"], changed(before)) == (len(expected), set())

        done = facts(COMMAND, *arguments)

        assert done == {"databases": len(expected), "failed": [], "dry_run": False}
        assert changed(before) == expected
    assert "New passwords for databases: 4." in run(COMMAND, "--all")
    for someone in (alice, staging, charlie):
        assert someone.value("SELECT 1") == 1


def test_what_was_interrupted_goes_on_with_the_rest(alice: Caller, staging: Caller) -> None:
    long_ago = timezone.now() - timedelta(hours=3)
    Database.objects.update(created_at=long_ago)
    facts(COMMAND, str(alice.scope.organization_id), "live")
    before = secrets()

    assert facts(COMMAND, "--all", "--older-than", "2")["databases"] == 1
    assert changed(before) == {staging.database.pk}
    assert facts(COMMAND, "--all", "--older-than", "2")["databases"] == 0
    Database.objects.update(passwords_since=long_ago)
    assert facts(COMMAND, "--all", "--older-than", "2.5", "--dry-run")["databases"] == 2


def test_one_that_fails_does_not_stop_the_others(
    alice: Caller, staging: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotatepasswords, "REPORT_EVERY", 2)
    before = secrets()
    with alice.database.exclusive():
        done, said = unfinished("--all")

    name = {"org_id": alice.scope.organization_id, "environment": "live"}
    failed = {"database": alice.database.pk, **name, "error": "database_busy"}
    assert (done["databases"], done["failed"]) == (1, [failed])
    assert "database_busy" in said
    assert "2 of 2" in said
    assert changed(before) == {staging.database.pk}


def test_a_database_that_is_moving_is_named_as_not_done(alice: Caller) -> None:
    alice.value("SELECT 1")
    row = Database.objects.filter(pk=alice.database.pk)
    row.update(state=Database.State.MOVING)
    try:
        done, _ = unfinished(str(alice.scope.organization_id))
    finally:
        row.update(state=Database.State.ACTIVE)
    assert [each["error"] for each in done["failed"]] == ["database_not_active"]


def test_a_cluster_that_is_away_fails_for_its_databases_only(
    alice: Caller, staging: Caller
) -> None:
    before = secrets()
    away = Cluster(name="away", flags=["template"], server_version=180_006)
    away.url = NOWHERE
    away.save()
    row = Database.objects.filter(pk=staging.database.pk)
    origin = staging.database.cluster
    row.update(cluster=away)
    try:
        done, _ = unfinished("--all")
    finally:
        row.update(cluster=origin)

    assert [each["error"] for each in done["failed"]] == ["sql_unavailable"]
    assert changed(before) == {alice.database.pk}


def test_what_is_not_there_or_not_named_is_refused(alice: Caller) -> None:
    organization = str(alice.scope.organization_id)
    for arguments, code in (
        ([], "choice_missing"),
        ([organization, "--all"], "choice_missing"),
        (["--all", "--cluster", "default"], "choice_missing"),
        ([organization, "live"], "database_not_made"),
        (["0"], "organization_not_found"),
        ([organization, "nowhere"], "environment_not_found"),
        (["--cluster", "nowhere"], "cluster_not_found"),
    ):
        assert refused(COMMAND, *arguments)[1]["code"] == code, arguments
    for hours in ("-1", "nan", "soon"):
        assert misused(COMMAND, "--all", f"--older-than={hours}") == 2
    assert Organization.objects.exists()


@pytest.fixture
def inside(databases: None) -> Client:
    """Return the browser of a member of staff."""
    return staff_inside()


def act(browser: Client, database: Database, **confirmed: str) -> str:
    """Send the form of the list of databases; return the page that follows."""
    form = {"action": "rotate_passwords", "_selected_action": [str(database.pk)], **confirmed}
    path = reverse("admin:sqlgateway_database_changelist")
    return browser.post(path, form, follow=True).content.decode()


def do_jobs() -> None:
    """Do what the task worker does."""
    jobs = ProcrastinateJob.objects.filter(task_name="sqlgateway.databases.tasks.rotate_passwords")
    for job in jobs:
        tasks.rotate_passwords(**job.args)


def events(tag: str) -> list[tuple[str, dict[str, Any]]]:
    """Return outcome and data of the audit events of a tag."""
    found = AuditEvent.objects.filter(tag=tag).order_by("id")
    return [(event.outcome, event.data) for event in found]


def test_staff_rotate_once_after_a_confirmation(alice: Caller, inside: Client) -> None:
    alice.value("SELECT 1")
    before = secrets()
    assert "replaced in the background" in act(inside, alice.database)
    assert not events("admin:database:rotate")

    for _ in range(2):
        page = act(inside, alice.database, confirmed="1", reason="a lost laptop")
    assert "nothing to do" in page
    assert changed(before) == set()
    do_jobs()

    assert changed(before) == {alice.database.pk}
    assert alice.value("SELECT 1") == 1
    said = {"database": alice.database.pk, "reason": "a lost laptop"}
    assert events("admin:database:rotate") == [("success", said)]
    assert [outcome for outcome, _ in events("sql:database:rotate")] == ["success"]


def test_a_rotation_that_staff_asked_for_and_that_fails_is_recorded(
    alice: Caller, inside: Client
) -> None:
    alice.value("SELECT 1")
    before = secrets()
    act(inside, alice.database, confirmed="1", reason="a lost laptop")
    with alice.database.exclusive():
        do_jobs()
    assert changed(before) == set()
    ((outcome, data),) = events("sql:database:rotate")
    assert outcome == "refused"
    assert "Another process" in data["reason"]


def test_a_database_that_is_being_copied_gets_no_new_passwords(
    alice: Caller, inside: Client
) -> None:
    alice.value("SELECT 1")
    row = Database.objects.filter(pk=alice.database.pk)
    row.update(state=Database.State.COPYING)
    try:
        page = act(inside, row.get(), confirmed="1", reason="a lost laptop")
    finally:
        row.update(state=Database.State.ACTIVE)
    assert "only an active one gets new passwords" in page
