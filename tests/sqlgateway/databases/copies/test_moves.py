"""An environment moves to another server: nothing is lost, nothing is opened, a crash is undone."""

import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from common.commands import CommandRefused
from sqlgateway.clusters import servers
from sqlgateway.databases import provisioning, retirement, tasks, tenant_databases
from sqlgateway.databases.copies import CopyFailed, moves, switching
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Cluster, Database, RetiredDatabase
from sqlgateway.pg import pool
from tests.commands import facts, refused
from tests.sqlgateway import support
from tests.sqlgateway.databases.copies.rich_database import check_copy, furnish
from tests.sqlgateway.support import Caller

pytestmark = [pytest.mark.provisions, pytest.mark.slow]


def _move(someone: Caller, to: str) -> Any:
    return facts("moveenvironment", str(someone.scope.organization_id), "live", "--to", to)


def test_a_moved_environment_keeps_its_data_its_owners_and_what_was_closed(
    alice: Caller, second: Cluster
) -> None:
    alice.value("SELECT 1")
    origin = alice.database.cluster
    target = Cluster.objects.exclude(pk=origin.pk).get()
    furnish(alice)
    once = {"query": "CREATE TABLE once ()"}
    assert alice.post(once, Idempotency_Key="k").status == 200

    answer = _move(alice, target.name)

    assert answer["cluster"] == target.name
    assert 0 < answer["stopped_ms"] <= answer["elapsed_ms"]
    assert alice.database.cluster == target
    check_copy(alice)
    # Keys are still known, and their table is no tenant's.
    assert alice.post(once, Idempotency_Key="k").status == 200
    assert alice.sql("DROP TABLE zonal.idempotency").body["sqlstate"] == "42501"
    # The old database is kept for a while, and no role of the tenant reaches it.
    (kept,) = RetiredDatabase.objects.all()
    assert (kept.cluster, kept.dbname) == (origin, alice.database.dbname)
    assert _move(alice, target.name)["elapsed_ms"] == 0
    # Back, over the kept copy.
    _move(alice, origin.name)
    assert alice.value("SELECT count(*) FROM items") == 51
    assert [row.cluster for row in RetiredDatabase.objects.all()] == [target]
    assert retirement.drop_due(now=timezone.now()) == 0
    RetiredDatabase.objects.update(drop_after=timezone.now())
    assert retirement.drop_due(now=timezone.now()) == 1
    assert alice.value("SELECT 1") == 1


def test_no_acknowledged_write_is_lost_while_a_database_moves(
    committed: Caller, second: Cluster
) -> None:
    committed.sql("CREATE TABLE log (id int)")
    target = Cluster.objects.exclude(pk=committed.database.cluster_id).get()
    done = threading.Event()
    acknowledged: list[int] = []
    refusals: set[str] = set()

    def write() -> None:
        number = 0
        try:
            while not done.is_set():
                number += 1
                answer = committed.be("operator").sql("INSERT INTO log VALUES ($1)", [number])
                if answer.status == 200:
                    acknowledged.append(number)
                else:
                    refusals.add(answer.code)
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        moves.move(committed.database, target)
        before = len(acknowledged)
        while len(acknowledged) < before + 3 and writer.is_alive():
            done.wait(0.01)
    finally:
        done.set()
        writer.join()

    assert committed.database.cluster == target
    rows = committed.sql("SELECT id FROM log ORDER BY id", rows="arrays").rows
    written = {number for (number,) in rows}
    assert set(acknowledged) <= written
    assert refusals <= {"database_not_ready", "sql_error", "sql_unavailable", "outcome_unknown"}


def test_a_move_whose_process_was_killed_is_undone(
    alice: Caller, second: Cluster, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlgateway.run.gateway.MOVE_WAIT_MS", 0)
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    origin = alice.database.cluster
    target = Cluster.objects.exclude(pk=origin.pk).get()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(moves, "copy_database", killed)
        patched.setattr(switching, "try_roll_back", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            moves.move(alice.database, target)

    assert alice.database.state == Database.State.MOVING
    waiting = alice.sql("SELECT 1")
    assert (waiting.status, waiting.code) == (503, "database_not_ready")
    assert waiting.headers["Retry-After"] == "2"
    with alice.database.exclusive():
        # The process that holds the lock is alive.
        switching.recover()
        assert alice.database.state == Database.State.MOVING
    tasks.recover_copies(0)

    assert (alice.database.state, alice.database.cluster) == (Database.State.ACTIVE, origin)
    assert alice.value("SELECT id FROM t") == 1
    there = "SELECT count(*) FROM pg_database WHERE datname = %s"
    with servers.administer(servers.address_of(target)) as server:
        assert server.execute(there, [alice.database.dbname]).fetchone() == (0,)


def test_an_environment_moves_back_to_where_it_was_restored(
    alice: Caller, second: Cluster, tmp_path: Path
) -> None:
    """The database that the restore replaced is kept there, and belongs to the same roles."""
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    origin, organization = alice.database.cluster, str(alice.scope.organization_id)
    target = Cluster.objects.exclude(pk=origin.pk).get()
    file = str(tmp_path / "live.dump")
    facts("dumpenvironment", organization, "live", file)
    facts("restoreenvironment", organization, "live", file)
    _move(alice, target.name)

    _move(alice, origin.name)

    assert alice.value("SELECT id FROM t") == 1
    RetiredDatabase.objects.update(drop_after=timezone.now())
    assert retirement.drop_due(now=timezone.now()) == 2
    # Roles that are in use stay and log in, and none is left where it went.
    pool.CONNECTION_POOL.clear()
    assert alice.value("SELECT id FROM t") == 1
    assert _roles_at(target, alice.database) == 0
    _move(alice, target.name)
    RetiredDatabase.objects.update(drop_after=timezone.now())
    assert retirement.drop_due(now=timezone.now()) == 1
    assert _roles_at(origin, alice.database) == 0


def _roles_at(cluster: Cluster, database: Database) -> int:
    roles = list(database.roles.values())
    with servers.administer(servers.address_of(cluster)) as server:
        query = "SELECT count(*) FROM pg_roles WHERE rolname = ANY(%s)"
        return sum(count for (count,) in server.execute(query, [roles]))


def test_a_move_that_cannot_be_undone_yet_stops_no_other(
    alice: Caller, charlie: Caller, second: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for someone in (alice, charlie):
        someone.value("SELECT 1")
        Database.objects.filter(pk=someone.database.pk).update(
            state=Database.State.MOVING, moving_to=second, moving_dbname=someone.database.dbname
        )
    bad, drop = alice.database.dbname, tenant_databases.drop_named

    def refuse(cluster: Cluster, dbname: str, roles: list[str]) -> None:
        if dbname == bad:
            raise psycopg.errors.ObjectInUse
        drop(cluster, dbname, roles)

    monkeypatch.setattr(tenant_databases, "drop_named", refuse)
    switching.recover()
    assert charlie.database.moving_to is None
    assert alice.database.moving_to == second
    assert {each.database.state for each in (alice, charlie)} == {Database.State.ACTIVE}


def test_a_switch_that_comes_while_it_is_undone_is_refused(
    alice: Caller, second: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restart of the control database, which ends the lock, but not the move."""
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    origin, switch, set_open = alice.database.cluster, switching.switch, tenant_databases.set_open

    def undo_meanwhile(database: Database, *arguments: Any, stopped_at: float) -> int:
        def come_late(*_: object, is_open: bool) -> None:
            monkeypatch.setattr(tenant_databases, "set_open", set_open)
            with pytest.raises(CommandRefused):
                switch(database, *arguments, stopped_at=stopped_at)
            set_open(database, is_open=is_open)

        monkeypatch.setattr(tenant_databases, "set_open", come_late)
        switching.roll_back(Database.objects.get(pk=database.pk))
        raise KeyboardInterrupt

    monkeypatch.setattr(switching, "switch", undo_meanwhile)
    with pytest.raises(KeyboardInterrupt):
        moves.move(alice.database, second)

    assert (alice.database.state, alice.database.cluster) == (Database.State.ACTIVE, origin)
    assert alice.value("SELECT id FROM t") == 1


def test_a_copy_that_differs_is_not_used(
    alice: Caller, second: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    origin = alice.database.cluster
    target = Cluster.objects.exclude(pk=origin.pk).get()

    def lossy(source: Database, _: Database) -> None:
        raise CopyFailed(f"The copy of {source.pk} has other rows.")

    monkeypatch.setattr(moves, "copy_database", lossy)
    arguments = (str(alice.scope.organization_id), "live", "--to", target.name)
    sentence, error = refused("moveenvironment", *arguments)

    assert error["code"] == "copy_failed"
    assert sentence.startswith("Nothing was changed.")
    assert alice.database.cluster == origin
    assert alice.value("SELECT id FROM t") == 1


def test_an_environment_that_is_deleted_while_it_moves_stays_deleted(
    alice: Caller, second: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    origin = alice.database.cluster
    target = Cluster.objects.exclude(pk=origin.pk).get()

    def delete(*_: object) -> None:
        provisioning.on_environment_deleted(alice.scope.environment_pk)

    monkeypatch.setattr(moves, "copy_database", delete)
    arguments = (str(alice.scope.organization_id), "live", "--to", target.name)

    assert refused("moveenvironment", *arguments)[1]["code"] == "database_not_active"
    assert alice.database.state == Database.State.SUSPENDED
    assert alice.sql("SELECT 1").status == 404


def test_an_environment_that_is_deleted_while_its_move_is_undone_stays_deleted(
    alice: Caller, second: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    set_login = tenant_databases.set_login

    def fail(*_: object) -> None:
        raise CopyFailed("No.")

    def slow(database: Database, *, allowed: bool) -> None:
        if allowed:
            provisioning.on_environment_deleted(alice.scope.environment_pk)
        set_login(database, allowed=allowed)

    monkeypatch.setattr(moves, "copy_database", fail)
    monkeypatch.setattr(tenant_databases, "set_login", slow)
    with pytest.raises(CommandRefused):
        moves.move(alice.database, second)

    assert alice.database.state == Database.State.SUSPENDED
    logins = "SELECT count(*) FROM pg_roles WHERE rolcanlogin AND rolname = ANY(%s)"
    roles = list(alice.database.roles.values())
    assert support.as_provisioner(logins, [roles]) == [(0,)]


def test_an_environment_is_dropped_with_the_copy_that_a_killed_move_left(
    alice: Caller, second: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    database = alice.database

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(moves, "copy_database", killed)
        patched.setattr(switching, "try_roll_back", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            moves.move(database, second)
    provisioning.on_environment_deleted(alice.scope.environment_pk)
    with database.exclusive(), pytest.raises(EngineUnavailable):
        provisioning.on_environment_dropped(alice.scope.environment_pk)

    provisioning.on_environment_dropped(alice.scope.environment_pk)

    assert not Database.objects.filter(pk=database.pk).exists()
    there = "SELECT count(*) FROM pg_database WHERE datname = %s"
    with servers.administer(servers.address_of(second)) as server:
        assert server.execute(there, [database.dbname]).fetchone() == (0,)
    assert _roles_at(second, database) == 0


def test_a_drained_cluster_moves_its_environments(alice: Caller, second: Cluster) -> None:
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    origin = alice.database.cluster

    shown = facts("draincluster", origin.name, "--move", "--dry-run")
    assert (shown["state"], len(shown["moved"]), shown["dry_run"]) == ("open", 1, True)
    assert facts("draincluster", origin.name, "--move", "--dry-run") == shown
    answer = facts("draincluster", origin.name, "--move")

    assert [row["environment"] for row in answer["moved"]] == ["live"]
    assert (answer["failed"], answer["state"]) == ([], "draining")
    RetiredDatabase.objects.update(drop_after=timezone.now())
    tasks.drop_retired(0)
    assert facts("draincluster", origin.name)["state"] == "closed"
    assert alice.value("SELECT id FROM t") == 1


def test_a_move_that_cannot_be_is_refused_before_anything_stops(
    alice: Caller, second: Cluster
) -> None:
    organization = str(alice.scope.organization_id)
    missing = refused("moveenvironment", organization, "live", "--to", "second")[1]
    assert missing["code"] == "database_not_made"
    alice.value("SELECT 1")
    target = Cluster.objects.exclude(pk=alice.database.cluster_id).get()

    Cluster.objects.filter(pk=target.pk).update(capacity=0)
    arguments = (organization, "live", "--to", target.name)
    assert refused("moveenvironment", *arguments)[1]["code"] == "cluster_full"
    Cluster.objects.filter(pk=target.pk).update(state="draining")
    assert refused("moveenvironment", *arguments)[1]["code"] == "cluster_not_open"
    twin = Cluster(name="twin", capacity=9)
    twin.url = alice.database.cluster.url
    twin.save()
    arguments = (organization, "live", "--to", "twin")
    assert refused("moveenvironment", *arguments)[1]["code"] == "cluster_taken"
    with alice.database.exclusive():
        assert refused("moveenvironment", *arguments)[1]["code"] == "database_busy"
    assert alice.value("SELECT 1") == 1
