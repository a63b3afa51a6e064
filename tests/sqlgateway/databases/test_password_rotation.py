"""New passwords for an environment's roles: no request fails, and the old ones open nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import structlog
from django.conf import settings
from django.db import connection
from django.utils import timezone
from psycopg.conninfo import make_conninfo

from audit.models import AuditEvent
from common.commands import CommandRefused
from common.permissions import Role
from common.scoping import unscoped
from sqlgateway.clusters.placements import PLACEMENT_CACHE, Placement
from sqlgateway.databases import password_rotation, provisioning, stock, tasks
from sqlgateway.hardening.scram import scram_of
from sqlgateway.models import Database
from sqlgateway.pg import pool
from sqlgateway.pg.changed_roles import ROLE_CHECK
from tests.sqlgateway.support import Answer, Caller, as_provisioner, backends_of
from tests.sqlgateway.transfer.test_imports import send
from tests.sqlgateway.transfer.test_streams import stream
from tests.waiting import wait_until

pytestmark = pytest.mark.provisions

ROLES: tuple[Role, ...] = ("admin", "operator", "reader")
CHANGE = "BEGIN READ WRITE; ALTER ROLE CURRENT_USER PASSWORD 'x'; {}; COMMIT"
# Requests of the control database that wait for a row.
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"


def log_in(row: Database, role: Role) -> psycopg.Connection:
    """Log in as somebody who has a password that the row held."""
    own = {"dbname": row.dbname, "user": row.roles[role], "password": row.passwords[role]}
    return psycopg.connect(make_conninfo(settings.SQL.cluster_url, **own), autocommit=True)


def lets_in(row: Database, role: Role = "admin") -> bool:
    """True if the server accepts the password that the row held."""
    with suppress(psycopg.OperationalError):
        log_in(row, role).close()
        return True
    return False


def placement(someone: Caller) -> Placement:
    """Return the placement as a web process has read it."""
    return provisioning.database_for(someone.scope)


def go_back(someone: Caller, before: Placement) -> None:
    """Be a web process without connections that does not know of a rotation."""
    pool.CONNECTION_POOL.clear()
    PLACEMENT_CACHE.put(someone.scope.environment_pk, before)


def in_thread(someone: Caller, text: str) -> Answer:
    """Run a text, and give the control database's connection back."""
    try:
        return someone.sql(text)
    finally:
        connection.close()


def rotate_and_die(row: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """End a rotation between its change of the server and of the row."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(password_rotation, "_record", killed)
        with pytest.raises(KeyboardInterrupt):
            password_rotation.rotate(row)


def test_old_passwords_open_nothing_and_others_are_untouched(
    alice: Caller, charlie: Caller
) -> None:
    alice.sql("CREATE TABLE t AS SELECT 1 AS id")
    charlie.value("SELECT 1")
    before, others = alice.database, charlie.database
    assert all(lets_in(before, role) for role in ROLES)

    password_rotation.rotate(before)

    now = alice.database
    assert not any(lets_in(before, role) for role in ROLES)
    assert all(lets_in(now, role) for role in ROLES)
    assert {*before.passwords.values()}.isdisjoint(now.passwords.values())
    kept = "SELECT rolpassword FROM pg_authid WHERE rolname = %s"
    for role, user in now.roles.items():
        verifier = scram_of(user, now.passwords[role]).verifier
        assert as_provisioner(kept, [user]) == [(verifier,)]
        assert alice.be(role).value("SELECT id FROM t") == 1
    assert charlie.database.secrets == others.secrets
    assert lets_in(others)
    event = AuditEvent.objects.get(tag="sql:database:rotate")
    assert (event.organization_id, event.environment_id) == (alice.scope.organization_id, "live")


@pytest.mark.parametrize("role", ROLES)
def test_a_process_with_the_old_passwords_answers_without_a_repair(
    alice: Caller, role: str
) -> None:
    someone = alice.be(role)
    someone.value("SELECT 1")
    before = placement(alice)
    password_rotation.rotate(alice.database)
    go_back(alice, before)

    with structlog.testing.capture_logs() as logs:
        assert someone.value("SELECT 1") == 1

    assert not [log for log in logs if "role" in log["event"]]
    assert not AuditEvent.objects.filter(tag="sql:role:repair").exists()


def test_streams_and_imports_get_through_with_old_passwords(alice: Caller) -> None:
    alice.sql("CREATE TYPE mood AS ENUM ('calm'); CREATE TABLE items (id int, felt mood)")
    before = placement(alice)
    password_rotation.rotate(alice.database)

    go_back(alice, before)
    assert send(alice, b"id,felt\n1,calm\n", table="items").status == 200
    go_back(alice, before)
    records = stream(alice, "SELECT id, felt FROM items").records

    assert records[0]["columns"][1]["type"] == "mood"
    assert "end" in records[-1]


def test_the_type_of_a_stream_is_found_though_its_session_has_the_old_password(
    alice: Caller,
) -> None:
    """Types are looked up on a second connection, which has to log in."""
    alice.sql("CREATE TYPE mood AS ENUM ('calm')")
    before = placement(alice)
    pool.CONNECTION_POOL.clear()
    session = pool.CONNECTION_POOL.checkout(before.login("admin"))
    pool.CONNECTION_POOL.release(session)
    password_rotation.rotate(alice.database)
    PLACEMENT_CACHE.put(alice.scope.environment_pk, before)

    records = stream(alice, "SELECT 'calm'::mood AS felt").records

    assert records[0]["columns"][0]["type"] == "mood"


def test_a_request_between_the_server_and_the_row_waits_for_the_new_passwords(
    committed: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed.value("SELECT 1")
    row, before = committed.database, placement(committed)
    is_set, go_on, record = threading.Event(), threading.Event(), password_rotation._record

    def paused(changed: Database) -> None:
        is_set.set()
        assert go_on.wait(60)
        record(changed)

    @unscoped("operators rotate passwords")
    def rotate() -> None:
        try:
            password_rotation.rotate(row)
        finally:
            connection.close()

    monkeypatch.setattr(password_rotation, "_record", paused)
    with ThreadPoolExecutor(2) as executor:
        rotated = executor.submit(rotate)
        assert is_set.wait(60)
        go_back(committed, before)
        answered = executor.submit(in_thread, committed, "SELECT 1 AS one")
        wait_until(_somebody_waits)
        go_on.set()
        rotated.result(60)

        assert answered.result(60).rows == [{"one": 1}]
    assert not AuditEvent.objects.filter(tag="sql:role:repair").exists()


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        return bool(cursor.fetchone()[0])


def test_no_request_fails_while_passwords_rotate_again_and_again(committed: Caller) -> None:
    """Each request logs in, with passwords that are old, new, or changed this moment."""
    committed.sql("CREATE TABLE t AS SELECT 1 AS id")
    before, over = placement(committed), threading.Event()

    def ask(role: str) -> list[Answer]:
        answers = []
        while not over.is_set():
            go_back(committed, before)
            answers.append(in_thread(committed.be(role), "SELECT id FROM t"))
        return answers

    with ThreadPoolExecutor(4) as executor:
        asked = [executor.submit(ask, role) for role in ("admin", "reader", "reader", "operator")]
        try:
            for _ in range(15):
                password_rotation.rotate(committed.database)
        finally:
            over.set()
        answers = [answer for each in asked for answer in each.result(60)]

    assert len(answers) >= 15
    assert {(answer.status, answer.body.get("code")) for answer in answers} == {(200, None)}
    assert not AuditEvent.objects.filter(tag="sql:role:repair").exists()


@pytest.mark.parametrize("is_checked", [False, True])
def test_a_rotation_that_was_killed_in_between_is_repaired(
    alice: Caller, monkeypatch: pytest.MonkeyPatch, is_checked: bool
) -> None:
    for role in ROLES:
        alice.be(role).value("SELECT 1")
    row = alice.database
    rotate_and_die(row, monkeypatch)
    assert alice.database.secrets == row.secrets
    assert not lets_in(row)
    if is_checked:
        ROLE_CHECK.run()
        assert lets_in(row)
    pool.CONNECTION_POOL.clear()

    for role in ROLES:
        assert alice.be(role).value("SELECT 1") == 1
        assert lets_in(row, role)
    password_rotation.rotate(row)

    assert not lets_in(row)
    assert alice.value("SELECT 1") == 1


def test_a_password_that_a_tenant_changed_is_restored_after_a_rotation(alice: Caller) -> None:
    alice.value("SELECT 1")
    before = placement(alice)
    password_rotation.rotate(alice.database)
    assert alice.sql(CHANGE.format("SELECT 1")).status == 200
    go_back(alice, before)

    assert alice.value("SELECT 1") == 1

    assert AuditEvent.objects.get(tag="sql:role:repair").data == {"role": "admin"}
    assert lets_in(alice.database)


def test_a_tenant_that_holds_its_role_cannot_stop_a_rotation(committed: Caller) -> None:
    committed.value("SELECT 1")
    before = committed.database
    with ThreadPoolExecutor(1) as executor:
        held = executor.submit(in_thread, committed, CHANGE.format("SELECT pg_sleep(20)"))
        wait_until(lambda: any("pg_sleep" in query for _, _, query in backends_of(committed)))

        password_rotation.rotate(before)

        assert held.result(10).body["sqlstate"] == "57P01"
    assert lets_in(committed.database)


def test_connections_of_old_passwords_are_closed_and_those_at_work_go_on(alice: Caller) -> None:
    alice.value("SELECT 1")
    login = placement(alice).login("admin")
    at_work, idle = pool.CONNECTION_POOL.checkout(login), pool.CONNECTION_POOL.checkout(login)
    pool.CONNECTION_POOL.release(idle)

    password_rotation.rotate(alice.database)

    assert alice.value("SELECT pg_backend_pid()") != idle.pid
    at_work.run(b"SELECT 1")
    pool.CONNECTION_POOL.discard(at_work)


def test_sessions_that_a_thief_has_opened_end(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.value("SELECT 1")
    row, late_s = alice.database, password_rotation.max_request_s()
    with closing(log_in(row, "reader")) as idle, closing(log_in(row, "admin")) as busy:
        busy.execute("BEGIN")
        password_rotation.rotate(row)
        # The platform's own may be in use.
        tasks.end_old_sessions(0)
        assert _are_alive(idle, busy) == [True, True]

        monkeypatch.setattr(password_rotation, "KNOWN_AFTER_S", 0)
        tasks.end_old_sessions(0)
        wait_until(lambda: _are_alive(idle, busy) == [False, True])

        monkeypatch.setattr(password_rotation, "max_request_s", lambda: 0)
        with closing(log_in(alice.database, "admin")) as new:
            tasks.end_old_sessions(0)
            wait_until(lambda: _are_alive(busy, new) == [False, True])
    assert late_s >= settings.SQL.transaction_life_s
    assert alice.value("SELECT 1") == 1


def _are_alive(*sessions: psycopg.Connection) -> list[bool]:
    pids = [session.info.backend_pid for session in sessions]
    query = "SELECT pid FROM pg_stat_activity WHERE pid = ANY(%s)"
    found = {pid for (pid,) in as_provisioner(query, [pids])}
    return [pid in found for pid in pids]


def test_a_database_that_is_moved_or_gone_is_refused(alice: Caller) -> None:
    alice.value("SELECT 1")
    row = alice.database
    with row.exclusive(), pytest.raises(CommandRefused) as busy:
        password_rotation.rotate(row)
    Database.objects.filter(pk=row.pk).update(state=Database.State.MOVING)
    with pytest.raises(CommandRefused) as moving:
        password_rotation.rotate(row)
    Database.objects.filter(pk=row.pk).update(state=Database.State.ACTIVE)

    assert (busy.value.code, moving.value.code) == ("database_busy", "database_not_active")
    assert lets_in(row)


def test_no_password_is_in_a_log_an_event_or_a_statement(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.value("SELECT 1")
    sent: list[str] = []
    execute = psycopg.Connection.execute

    def noted(self: psycopg.Connection, query: Any, *rest: Any, **more: Any) -> Any:
        sent.append(query if isinstance(query, str) else f"{query!r}")
        return execute(self, query, *rest, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", noted)
    with structlog.testing.capture_logs() as logs:
        before = alice.database
        password_rotation.rotate(before)

    said = f"{sent} {logs} {list(AuditEvent.objects.values())}"
    assert "SCRAM-SHA-256$" in said
    passwords = (*before.passwords.values(), *alice.database.passwords.values())
    assert not [password for password in passwords if password in said]


def test_the_stock_is_rotated_as_well_and_claimed_afterwards(alice: Caller) -> None:
    stock.refill(1)
    (row,) = Database.objects.filter(state=Database.State.STOCK)
    password_rotation.rotate(row)

    assert alice.value("SELECT 1") == 1
    assert alice.database.pk == row.pk
    assert not lets_in(row)
    assert alice.database.passwords_since is not None
    assert timezone.now() - alice.database.passwords_since < timedelta(minutes=5)
