"""Staff move a database to another cluster in the admin: confirmed, in the background, recorded."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from procrastinate.contrib.django.models import ProcrastinateJob

from audit.models import AuditEvent
from sqlgateway.databases import tasks
from sqlgateway.models import Cluster, Database
from tests.sqlgateway.support import Caller
from tests.staff import staff_inside

pytestmark = [pytest.mark.provisions, pytest.mark.slow]


@pytest.fixture
def inside(databases: None) -> Client:
    """Return the browser of a member of staff."""
    return staff_inside()


def do(browser: Client, database: Database, target: Cluster, **confirmed: str) -> str:
    """Send the form of the list of databases; return the page that follows."""
    form = {"action": f"move_{target.pk}", "_selected_action": [str(database.pk)], **confirmed}
    path = reverse("admin:sqlgateway_database_changelist")
    return browser.post(path, form, follow=True).content.decode()


def run_moves() -> None:
    """Do what the task worker does."""
    jobs = ProcrastinateJob.objects.filter(task_name="sqlgateway.databases.tasks.move_database")
    for job in jobs:
        tasks.move_database(**job.args)


def events(tag: str) -> list[tuple[str, dict[str, Any]]]:
    """Return outcome and data of the audit events of a tag."""
    found = AuditEvent.objects.filter(tag=tag).order_by("id")
    return [(event.outcome, event.data) for event in found]


def test_a_database_is_moved_once_after_a_confirmation(
    alice: Caller, second: Cluster, inside: Client
) -> None:
    alice.sql("CREATE TABLE lakes AS SELECT 7 AS id")
    database = alice.database
    assert "copied to the cluster second" in do(inside, database, second)
    assert not events("admin:database:move")

    for _ in range(2):
        page = do(inside, database, second, confirmed="1", reason="a full disk")
    assert "nothing to do" in page
    assert alice.database.cluster == database.cluster
    run_moves()

    assert alice.database.cluster == second
    assert alice.value("SELECT id FROM lakes") == 7
    said = {"database": database.pk, "cluster": "second", "reason": "a full disk"}
    assert events("admin:database:move") == [("success", said)]
    assert [outcome for outcome, _ in events("sql:database:move")] == ["success"]


def test_a_move_that_is_refused_leaves_the_database_and_says_why(
    alice: Caller, second: Cluster, inside: Client
) -> None:
    alice.value("SELECT 1")
    before = alice.database.cluster
    do(inside, alice.database, second, confirmed="1", reason="a full disk")
    Cluster.objects.filter(pk=second.pk).update(state=Cluster.State.DRAINING)
    run_moves()
    assert alice.database.cluster == before
    ((outcome, data),) = events("sql:database:move")
    assert outcome == "refused"
    assert "draining" in data["reason"]


def test_a_database_that_is_being_copied_cannot_be_moved(
    alice: Caller, second: Cluster, inside: Client
) -> None:
    alice.value("SELECT 1")
    row = Database.objects.filter(pk=alice.database.pk)
    row.update(state=Database.State.COPYING)
    try:
        page = do(inside, row.get(), second, confirmed="1", reason="a full disk")
    finally:
        row.update(state=Database.State.ACTIVE)
    assert "only an active one can be moved" in page
    assert not ProcrastinateJob.objects.filter(
        task_name="sqlgateway.databases.tasks.move_database"
    ).exists()
