"""A clone of an environment: another one with the same data, made in the background."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import Job
from pytest_django import Settings

from common.jobs import long_job_lock
from common.principals import Scope
from environments import environments
from environments.errors import EnvironmentNotFound, EnvironmentNotReady
from environments.models import Environment
from outbox.messages.queue import send_mail
from sqlgateway.clusters import servers
from sqlgateway.databases import provisioning, tasks, tenant_databases
from sqlgateway.databases.copies import CopyFailed, clones
from sqlgateway.errors import DatabaseNotReady
from sqlgateway.models import Cluster, Database
from tests.sqlgateway import support
from tests.sqlgateway.databases.copies.rich_database import check_copy, furnish
from tests.sqlgateway.support import Caller
from tests.waiting import wait_until

pytestmark = [pytest.mark.provisions, pytest.mark.slow]

NOTICE = {"account": "b…", "at": "today", "security_link": "https://zonal.example/"}


def _clone(someone: Caller, name: str = "staging", source: str = "live") -> Caller:
    made = environments.create(someone.scope.organization_id, name, copy_from=source)
    return Caller(Scope(someone.scope.organization_id, made.pk), someone.role)


def _run_jobs() -> None:
    jobs = ProcrastinateJob.objects.filter(task_name="sqlgateway.databases.tasks.clone_database")
    for job in jobs:
        tasks.clone_database(**job.args)


def test_a_clone_has_the_data_the_owners_and_what_was_closed(
    alice: Caller, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlgateway.run.gateway.MOVE_WAIT_MS", 0)
    alice.value("SELECT 1")
    furnish(alice)

    staging = _clone(alice)
    early = staging.sql("SELECT 1")
    assert (early.status, early.code) == (503, "database_not_ready")
    assert provisioning.state_of(staging.scope.environment_pk) == "copying"
    assert provisioning.progress_of(staging.scope.environment_pk) == 0
    tenant_databases.create(staging.database)
    assert 0 < (provisioning.progress_of(staging.scope.environment_pk) or 0) < 1
    _run_jobs()

    assert provisioning.state_of(staging.scope.environment_pk) == "ready"
    assert provisioning.progress_of(staging.scope.environment_pk) is None
    check_copy(staging)
    # Two databases from now on: neither roles nor rows are shared.
    assert alice.value("SELECT count(*) FROM items") == 50
    assert not set(staging.database.roles.values()) & set(alice.database.roles.values())
    _run_jobs()
    assert staging.value("SELECT count(*) FROM items") == 51


def test_a_clone_of_an_environment_without_data_is_empty(alice: Caller) -> None:
    staging = _clone(alice)

    assert not ProcrastinateJob.objects.filter(
        task_name="sqlgateway.databases.tasks.clone_database"
    ).exists()
    assert provisioning.state_of(staging.scope.environment_pk) == "none"
    assert staging.value("SELECT 1") == 1


def test_a_clone_is_deleted_before_its_copy_is_made(
    alice: Caller, django_capture_on_commit_callbacks: Any
) -> None:
    alice.value("SELECT 1")
    staging = _clone(alice)
    with django_capture_on_commit_callbacks(execute=True):
        provisioning.on_environment_deleted(staging.scope.environment_pk)
    _run_jobs()
    assert staging.sql("SELECT 1").status == 404


def test_only_an_environment_of_the_own_organization_is_cloned(
    alice: Caller, charlie: Caller
) -> None:
    Environment.objects.filter(pk=charlie.scope.environment_pk).update(slug="charlies")

    with pytest.raises(EnvironmentNotFound):
        _clone(alice, source="charlies")
    assert clones.prepare(alice.scope.organization_id, charlie.scope.environment_pk, 0) is None


def test_a_clone_that_fails_is_tried_again_and_then_given_up(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.value("SELECT 1")
    staging = _clone(alice)

    def fail(*_: Any) -> None:
        raise CopyFailed("No.")

    with monkeypatch.context() as patched:
        patched.setattr(clones, "copy_database", fail)
        for _ in range(clones.MAX_ATTEMPTS - 1):
            _run_jobs()
        assert provisioning.state_of(staging.scope.environment_pk) == "copying"
        tasks.recover_copies(0)
        _run_jobs()

    answer = staging.sql("SELECT 1")
    assert (answer.status, answer.code) == (409, "clone_failed")
    with pytest.raises(EnvironmentNotReady) as refusal:
        _clone(alice, "another", "staging")
    assert refusal.value.code == "environment_not_ready"
    provisioning.on_environment_deleted(staging.scope.environment_pk)
    provisioning.on_environment_dropped(staging.scope.environment_pk)
    assert Database.objects.get().environment_id == alice.scope.environment_pk


def test_a_clone_that_goes_elsewhere_leaves_nothing_where_it_failed(
    alice: Caller, second: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    staging = _clone(alice)
    database = staging.database

    def fail(*_: Any) -> None:
        raise CopyFailed("No.")

    with monkeypatch.context() as patched:
        patched.setattr(clones, "copy_database", fail)
        _run_jobs()
    Cluster.objects.filter(pk=database.cluster_id).update(state="draining")
    _run_jobs()

    assert staging.database.cluster_id != database.cluster_id
    tasks.drop_retired(0)
    there = "SELECT count(*) FROM pg_database WHERE datname = %s"
    roles = "SELECT count(*) FROM pg_roles WHERE rolname = ANY(%s)"
    with servers.administer(servers.address_of(database.cluster)) as server:
        assert server.execute(there, [database.dbname]).fetchone() == (0,)
        assert server.execute(roles, [list(database.roles.values())]).fetchone() == (0,)
    assert staging.value("SELECT id FROM t") == 1


def test_a_clone_is_not_made_where_nothing_answers(alice: Caller, second: Cluster) -> None:
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    origin = alice.database.cluster
    away = Cluster.objects.exclude(pk=origin.pk).get()
    staging = _clone(alice)
    Database.objects.filter(pk=staging.database.pk).update(cluster=away)
    answering, away.url = away.url, "postgresql://nobody:x@127.0.0.1:1/postgres"
    away.save()

    _run_jobs()

    assert staging.database.cluster == origin
    assert staging.value("SELECT id FROM t") == 1
    away.url = answering
    away.save()


SLOW = """
    CREATE FUNCTION slow() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
    CREATE MATERIALIZED VIEW m AS SELECT public.slow() AS x;
    CREATE OR REPLACE FUNCTION slow() RETURNS int LANGUAGE plpgsql AS 'BEGIN LOOP END LOOP; END';
"""


def test_a_clone_that_takes_too_long_runs_on_nowhere(alice: Caller, settings: Settings) -> None:
    """The copy computes what the tenant's materialized views say."""
    settings.SQL = replace(settings.SQL, copy_timeout_s=2)
    assert alice.sql(SLOW).status == 200
    staging = _clone(alice)
    _run_jobs()

    running = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
    with servers.administer(servers.address_of(staging.database.cluster)) as server:

        def is_over() -> bool:
            return server.execute(running, [staging.database.dbname]).fetchone() == (0,)

        wait_until(is_over)


def test_clones_of_one_organization_leave_places_of_the_task_worker_to_mails(
    alice: Caller,
) -> None:
    alice.value("SELECT 1")
    for number in range(4):
        _clone(alice, f"staging-{number}")
    send_mail("bob@example.com", "password_changed", NOTICE, organization_id=None)

    started = _take_jobs(places=4)

    assert started.count("sqlgateway.databases.tasks.clone_database") == 1
    assert "outbox.messages.deliver" in started


def test_a_clone_that_fails_waits_behind_the_clones_of_others(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.value("SELECT 1")
    staging, second = _clone(alice), _clone(alice, "second")
    neighbour = _with_the_same_lock(alice)
    others = _clone(neighbour)

    def fail(*_: Any) -> None:
        # The check of every minute comes while the copy is being made.
        tasks.recover_copies(0)
        raise CopyFailed("No.")

    with monkeypatch.context() as patched:
        patched.setattr(clones, "copy_database", fail)
        assert _work() == staging.database.pk

    assert [_work() for _ in range(4)] == [
        others.database.pk,
        second.database.pk,
        staging.database.pk,
        None,
    ]
    for each in (staging, second, others):
        assert provisioning.state_of(each.scope.environment_pk) == "ready"


def test_a_clone_whose_worker_is_killed_each_time_is_given_up(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.value("SELECT 1")
    staging = _clone(alice)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(clones, "copy_database", killed)
        for _ in range(clones.MAX_ATTEMPTS):
            with pytest.raises(KeyboardInterrupt):
                _run_jobs()
        _run_jobs()

    assert provisioning.state_of(staging.scope.environment_pk) == "failed"


def _with_the_same_lock(someone: Caller) -> Caller:
    """Return the admin of another organization, whose long jobs wait for the same lock."""
    while True:
        other = support.caller(support.organization("Another"))
        own, others = someone.scope.organization_id, other.scope.organization_id
        if long_job_lock(own) == long_job_lock(others):
            other.value("SELECT 1")
            return other


def _work() -> int | None:
    """Do the next clone's job as the task worker does; return its database's key."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT procrastinate_register_worker_v1()")
        ((worker,),) = cursor.fetchall()
        cursor.execute("SELECT id FROM procrastinate_fetch_job_v2(NULL, %s)", [worker])
        ((number,),) = cursor.fetchall()
        if number is None:
            return None
        row = ProcrastinateJob.objects.get(pk=number)
        if row.task_name != "sqlgateway.databases.tasks.clone_database":
            return _work()
        try:
            tasks.clone_database(**row.args)
        except DatabaseNotReady as exc:
            job = Job(
                id=number, queue="default", lock=row.lock, queueing_lock=None, task_name="clone"
            )
            again = tasks.clone_database.get_retry_exception(exception=exc, job=job)
            at = again.retry_decision.retry_at if again is not None else None
            cursor.execute(
                "SELECT procrastinate_retry_job_v2(%s, %s, NULL, NULL, NULL)", [number, at]
            )
        else:
            cursor.execute("SELECT procrastinate_finish_job_v1(%s, 'succeeded', false)", [number])
        return int(row.args["database_pk"])


def _take_jobs(places: int) -> list[str]:
    """Return the tasks that a worker with so many places begins."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT procrastinate_register_worker_v1()")
        ((worker,),) = cursor.fetchall()
        started = []
        for _ in range(places):
            cursor.execute("SELECT task_name FROM procrastinate_fetch_job_v2(NULL, %s)", [worker])
            started += [str(name) for (name,) in cursor.fetchall() if name]
    return started
