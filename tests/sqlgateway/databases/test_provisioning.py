"""From an environment to its database: once, quickly, and to be repeated after a crash."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.db.models import ProtectedError
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from common.errors import NotFound
from common.principals import Scope
from environments import environments
from environments.models import Environment
from sqlgateway.clusters import servers
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.databases import provisioning, stock, tenant_databases
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Database
from tests.sqlgateway import support
from tests.sqlgateway.support import Caller, as_provisioner

pytestmark = [pytest.mark.provisions, pytest.mark.slow]

IS_THERE = "SELECT count(*) FROM pg_database WHERE datname = %s"
ROLES = "SELECT count(*) FROM pg_roles WHERE rolname = ANY(%s)"


def _is_there(database: Database) -> bool:
    ((databases,),) = as_provisioner(IS_THERE, [database.dbname])
    ((roles,),) = as_provisioner(ROLES, [list(database.roles.values())])
    assert (databases, roles) in {(0, 0), (1, 3)}
    return bool(databases)


def test_the_same_scope_gets_the_same_database(alice: Caller) -> None:
    first = provisioning.database_for(alice.scope)
    PLACEMENT_CACHE.clear()

    assert provisioning.database_for(alice.scope) == first
    assert Database.objects.count() == 1


def test_a_first_request_claims_from_the_stock_and_asks_for_more(alice: Caller) -> None:
    assert stock.refill(2) == 2
    assert stock.refill(2) == 0
    ready = set(Database.objects.values_list("pk", flat=True))

    assert alice.value("SELECT 1") == 1

    database = alice.database
    assert database.pk in ready
    assert database.claimed_at is not None
    assert stock.size() == 1
    jobs = ProcrastinateJob.objects.filter(task_name="sqlgateway.databases.tasks.refill_stock")
    assert jobs.count() == 1


def test_an_unfinished_database_is_finished_by_the_next_refill(databases: None) -> None:
    torso = stock.new_row(servers.default())
    torso.save()
    tenant_databases.create(torso)

    assert stock.refill(1) == 1
    assert stock.size() == 1
    torso.refresh_from_db()
    assert torso.state == Database.State.STOCK


def test_an_unfinished_database_of_an_environment_is_finished_by_its_next_request(
    alice: Caller,
) -> None:
    torso = stock.new_row(servers.default())
    torso.organization_id = alice.scope.organization_id
    torso.environment_id = alice.scope.environment_pk
    torso.save()
    stock.refill(1)

    assert alice.value("SELECT 1") == 1
    assert alice.database.pk == torso.pk


def test_a_database_hardened_by_older_rules_is_not_handed_out(alice: Caller) -> None:
    stock.refill(1)
    Database.objects.update(hardening=0)

    assert stock.size() == 0
    assert alice.value("SELECT 1") == 1
    assert Database.objects.count() == 2


def test_an_environment_that_is_not_there_gets_nothing(alice: Caller) -> None:
    with transaction.atomic():
        connection.cursor().execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(NotFound):
            provisioning.database_for(Scope(alice.scope.organization_id, 0))


def test_a_deleted_environment_is_cut_off_at_once(
    alice: Caller, django_capture_on_commit_callbacks: Any
) -> None:
    alice.value("SELECT 1")
    database = alice.database

    with django_capture_on_commit_callbacks(execute=True):
        provisioning.on_environment_deleted(alice.scope.environment_pk)

    assert alice.sql("SELECT 1").status == 404
    assert alice.database.state == Database.State.SUSPENDED
    ((sessions,),) = as_provisioner(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [database.dbname]
    )
    assert sessions == 0
    ((logins,),) = as_provisioner(
        "SELECT count(*) FROM pg_roles WHERE rolcanlogin AND rolname = ANY(%s)",
        [list(database.roles.values())],
    )
    assert logins == 0
    assert _is_there(database)


def test_an_environment_is_deleted_while_its_cluster_is_away(
    alice: Caller, django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise EngineUnavailable

    alice.value("SELECT 1")
    monkeypatch.setattr(tenant_databases, "administer", away)
    with django_capture_on_commit_callbacks() as callbacks:
        provisioning.on_environment_deleted(alice.scope.environment_pk)
    (callback,) = callbacks
    with pytest.raises(EngineUnavailable):
        callback()
    # Django logs what fails after a commit by its name, and itself fails without one.
    assert callback.__qualname__
    assert alice.database.state == Database.State.SUSPENDED


def test_a_dropped_environment_leaves_nothing_and_may_be_dropped_twice(alice: Caller) -> None:
    alice.value("SELECT 1")
    database = alice.database

    provisioning.on_environment_dropped(alice.scope.environment_pk)
    provisioning.on_environment_dropped(alice.scope.environment_pk)

    assert not _is_there(database)
    assert Database.objects.count() == 0


def test_an_environments_whole_life(alice: Caller, settings: Settings) -> None:
    # No brain runs here: what it does then is tested in tests/edgecache/api.
    settings.CACHE = replace(settings.CACHE, is_enabled=False)
    staging = environments.create(alice.scope.organization_id, "staging")
    someone = Caller(Scope(alice.scope.organization_id, staging.pk))
    assert someone.value("SELECT 1") == 1
    database = someone.database

    environments.delete(alice.scope.organization_id, "staging", now=timezone.now())
    environments.drop(staging.pk)

    assert not _is_there(database)
    assert not Environment.objects.filter(pk=staging.pk).exists()


def test_an_environment_with_a_database_cannot_be_deleted_over_its_head(alice: Caller) -> None:
    alice.value("SELECT 1")

    with pytest.raises(ProtectedError):
        Environment.objects.get(pk=alice.scope.environment_pk).delete()


def test_the_command_fills_the_stock_and_makes_one_environments_database(
    alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("provision", "--stock", "1")
    call_command("provision", str(alice.scope.organization_id), "live")

    assert "1 made, 1 in stock." in capsys.readouterr().out
    assert alice.database.state == Database.State.ACTIVE
    with pytest.raises(CommandError, match="no such environment"):
        call_command("provision", str(alice.scope.organization_id), "nonesuch")


@pytest.mark.parametrize("in_stock", [0, 3])
def test_first_requests_at_once_get_one_database(committed: Caller, in_stock: int) -> None:
    stock.refill(in_stock)
    barrier = threading.Barrier(6)

    def first_request(_: int) -> str:
        try:
            barrier.wait()
            return provisioning.database_for(committed.scope).dbname
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        names = set(pool.map(first_request, range(6)))

    assert len(names) == 1
    assert Database.objects.filter(environment_id=committed.scope.environment_pk).count() == 1


def test_claims_at_once_get_different_databases(committed: Caller) -> None:
    stock.refill(2)
    others = support.caller(support.organization("Charlie's")), committed
    barrier = threading.Barrier(2)

    def first_request(someone: Caller) -> str:
        try:
            barrier.wait()
            return provisioning.database_for(someone.scope).dbname
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(first_request, others))) == 2


def test_refills_at_once_make_no_database_twice(committed: Caller) -> None:
    barrier = threading.Barrier(3)

    def refill(_: int) -> int:
        try:
            barrier.wait()
            return stock.refill(2)
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        made = sum(pool.map(refill, range(3)))

    assert stock.size() == made >= 2
