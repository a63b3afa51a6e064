"""The gateway behind PgBouncer: sessions are pooled, start-up options and process ids are lost."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from common.permissions import Role
from common.principals import Scope
from environments import environments
from sqlgateway.clusters import servers
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.databases import password_rotation, provisioning
from sqlgateway.databases.copies import clones
from sqlgateway.errors import EngineUnavailable
from sqlgateway.isolation import check
from sqlgateway.models import Cluster
from sqlgateway.pg import pool
from sqlgateway.pg.changed_roles import ROLE_CHECK
from sqlgateway.pg.pool import LoginRefused
from sqlgateway.run import admission
from tests.cast import Caller as SignedIn
from tests.commands import refused
from tests.load import load
from tests.sqlgateway.pooler.pgbouncer import PgBouncer
from tests.sqlgateway.support import Answer, Caller, as_provisioner, backends_of
from tests.sqlgateway.transactions.support import begin, sql
from tests.sqlgateway.transfer.test_imports import send
from tests.sqlgateway.transfer.test_streams import stream
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# It goes on after its cancellation.
STUBBORN = (
    "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END;"
    " END LOOP; END $$"
)
ROLES: tuple[Role, ...] = ("admin", "operator", "reader")
NOT_RUN = frozenset({"sql_unavailable"})
LOST = NOT_RUN | {"outcome_unknown"}


def test_a_pooler_is_noticed_and_needs_no_other_setting(alice: Caller) -> None:
    assert alice.value("SELECT 40 + 2") == 42
    assert servers.POOLED in Cluster.objects.get().flags
    assert alice.sql("CREATE TABLE t (id int); INSERT INTO t VALUES (1)").status == 200
    assert alice.be("reader").value("SELECT count(*) FROM t") == 1
    assert alice.be("reader").sql("DELETE FROM t").body["sqlstate"] == "25006"
    assert alice.sql("SELECT $1 + 1 AS two", [1]).rows == [{"two": 2}]


def test_what_a_role_keeps_or_a_request_sets_changes_no_later_request(alice: Caller) -> None:
    others = {
        "search_path": "'evil'",
        "TimeZone": "'Japan'",
        "DateStyle": "SQL, DMY",
        "statement_timeout": "0",
        "work_mem": "'1GB'",
        "client_encoding": "'LATIN1'",
        "application_name": "'evil'",
    }
    query = "SELECT " + ", ".join(f"current_setting('{name}') AS {name}" for name in others)
    before = alice.sql(query).rows
    assert before == alice.sql(query).rows

    for name, value in others.items():
        text = f"ALTER ROLE CURRENT_USER SET {name} = {value}; SET {name} = {value}"
        assert alice.sql(text).status == 200
        assert alice.sql(query).rows == before, name
        pool.CONNECTION_POOL.clear()
        assert alice.sql(query).rows == before, name


@pytest.mark.parametrize("text", ["SELECT pg_sleep(60)", STUBBORN])
def test_a_statement_ends_at_its_deadline_whatever_it_catches(alice: Caller, text: str) -> None:
    alice.value("SELECT 1")

    answer = alice.sql(text, timeout_ms=300)

    assert (answer.status, answer.code) == (400, "query_timeout"), answer.body
    assert backends_of(alice) == []
    assert alice.value("SELECT 1") == 1


def test_a_cut_result_of_a_write_is_written_whatever_the_pooler_says_of_the_session(
    alice: Caller,
) -> None:
    """PgBouncer reports settings of the first session of a role, which here was read-only."""
    alice.sql("CREATE TABLE t (id int)")
    alice.sql("ALTER ROLE CURRENT_USER SET default_transaction_read_only = on")
    _end_sessions(alice)
    write = "INSERT INTO t SELECT generate_series(1, 20000) RETURNING id"

    for number in (1, 2):
        answer = alice.sql(write)
        assert answer.body["truncated"] is True
        assert alice.value("SELECT count(*) FROM t") == number * 20_000
        ROLE_CHECK.run()
        pool.CONNECTION_POOL.clear()


def test_a_role_that_locks_itself_out_is_let_in_again(alice: Caller) -> None:
    alice.value("SELECT 1")
    for change in (
        "PASSWORD 'known'",
        "SET local_preload_libraries = 'nonesuch'",
        "SET idle_session_timeout = 1",
    ):
        assert alice.sql(f"ALTER ROLE CURRENT_USER {change}").status == 200
        _end_sessions(alice)

        assert alice.value("SELECT 1") == 1, change


@pytest.mark.parametrize("is_known", [True, False])
def test_passwords_rotate_behind_a_pooler(alice: Caller, is_known: bool) -> None:
    """It asks the server for verifiers at each login, and keeps connections of old passwords."""
    before = provisioning.database_for(alice.scope)
    for _ in range(3):
        password_rotation.rotate(alice.database)
        pool.CONNECTION_POOL.clear()
        if not is_known:
            PLACEMENT_CACHE.put(alice.scope.environment_pk, before)
        for role in ROLES:
            assert alice.be(role).value("SELECT 1") == 1
        # Nor with new connections of the pooler's own.
        _end_sessions(alice)
        assert alice.value("SELECT 1") == 1
    password_rotation.end_old_sessions(now=timezone.now())
    with pytest.raises(LoginRefused):
        pool.CONNECTION_POOL.checkout(before.login("operator"))


def test_no_request_fails_behind_a_pooler_while_passwords_rotate(committed: Caller) -> None:
    """Also where it has just logged in with a password that the server does not know any more."""
    committed.value("SELECT 1")
    before, over = provisioning.database_for(committed.scope), threading.Event()

    def ask(role: Role) -> list[Answer]:
        answers = []
        while not over.is_set():
            # The other roles' sessions may be at work.
            _end_sessions(committed, role)
            PLACEMENT_CACHE.put(committed.scope.environment_pk, before)
            answers.append(_in_thread(committed.be(role), "SELECT 1"))
        return answers

    # One of three requests waits for its turn, and a pooler waits after a login that was refused.
    patient = patch.object(admission, "QUEUE_WAIT_S", 20)
    with patient, ThreadPoolExecutor(3) as executor:
        asked = [executor.submit(ask, role) for role in ROLES]
        try:
            for _ in range(8):
                password_rotation.rotate(committed.database)
        finally:
            over.set()
        answers = [answer for each in asked for answer in each.result(60)]

    assert {(answer.status, answer.body.get("code")) for answer in answers} == {(200, None)}


def test_rows_stream_out_and_in(alice: Caller) -> None:
    alice.sql("CREATE TABLE items (id int)")
    body = b"id\n" + b"".join(b"%d\n" % number for number in range(50_000))

    answer = send(alice, body, table="items")
    records = stream(alice, "SELECT id FROM items").records

    assert (answer.status, answer.body["row_count"]) == (200, 50_000)
    assert len(records) == 50_000 + 2
    assert "end" in records[-1]


def test_a_key_makes_a_write_happen_once(alice: Caller) -> None:
    alice = replace(alice, user_id=UUID(int=1))
    alice.sql("CREATE TABLE t (id int)")
    body = {"query": "INSERT INTO t VALUES (1) RETURNING id"}

    answers = [alice.post(body, Idempotency_Key="order-4711") for _ in range(2)]

    assert answers[0].body == answers[1].body
    assert alice.value("SELECT count(*) FROM t") == 1


def test_an_interactive_transaction_keeps_its_server(
    signed_in_as: Callable[[str], SignedIn],
) -> None:
    admin = signed_in_as("admin")
    sql(admin, "CREATE TABLE items (id int)")
    first, second = begin(admin), begin(admin)
    assert first.run("INSERT INTO items VALUES (1)").status == 200
    assert second.run("SELECT count(*) FROM items").body["rows"] == [{"count": 0}]
    assert first.commit().body["state"] == "committed"
    assert second.run("SELECT count(*) FROM items").body["rows"] == [{"count": 1}]
    assert second.roll_back().status in {200, 204}


def test_an_environment_is_cloned(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int); INSERT INTO t VALUES (1), (2)")
    made = environments.create(alice.scope.organization_id, "staging", copy_from="live")
    staging = Caller(Scope(alice.scope.organization_id, made.pk))

    clones.run(staging.database.pk)

    assert staging.value("SELECT count(*) FROM t") == 2


def test_a_write_that_the_pooler_cuts_off_has_an_unknown_outcome(
    committed: Caller, pooler: PgBouncer
) -> None:
    """PgBouncer says so with an error of its own, which must not pass for the statement's."""
    committed.sql("CREATE TABLE t (id int)")
    dbname = committed.database.dbname
    with ThreadPoolExecutor(1) as executor:
        written = executor.submit(
            _in_thread, committed, "INSERT INTO t VALUES (1); SELECT pg_sleep(9)"
        )
        wait_until(lambda: any("pg_sleep" in query for _, _, query in backends_of(committed)))
        pooler.command(f"KILL {dbname}")
        answer = written.result(30)
        pooler.command(f"RESUME {dbname}")

    assert (answer.status, answer.code) == (502, "outcome_unknown"), answer.body
    assert answer.body["retryable"] is False
    assert committed.sql("SELECT count(*) FROM t").status == 200


def test_requests_survive_the_end_of_the_pooler(committed: Caller, pooler: PgBouncer) -> None:
    seen: list[Any] = []

    def ask() -> None:
        try:
            answer = committed.sql("SELECT 40 + 2 AS answer, pg_sleep(0.05)")
        finally:
            connection.close()
        seen.append(answer)
        assert answer.status == 200 or answer.code in LOST, answer.body

    with load({"one": ask, "other": ask}) as running:
        running.goes_on()
        pooler.kill()
        wait_until(lambda: seen[-1].status == 503)
        pooler.start()
        wait_until(lambda: seen[-1].status == 200)
        running.goes_on()

    assert running.failures == []
    assert {answer.code for answer in seen if answer.status != 200} <= LOST


def test_tenants_are_isolated(databases: None) -> None:
    report = check.check(servers.default())

    # As without a pooler: Debian's server lets anybody install a few more extensions.
    found = [one for one in report.findings if not one["statement"].startswith("CREATE EXTENSION")]
    assert found == []


def test_a_pool_of_transactions_is_refused(databases: None, tmp_path: Path) -> None:
    made = PgBouncer(pool_mode="transaction")
    url = tmp_path / "url"
    url.write_text(made.url)
    try:
        made.start()
        sentence, error = refused("addcluster", "pooled", "--url-file", str(url))
        with (
            override_settings(SQL=replace(settings.SQL, cluster_url=made.url)),
            pytest.raises(EngineUnavailable),
        ):
            servers.address_of(servers.default())
    finally:
        made.remove()

    assert (sentence, error["code"]) == (servers.UNPOOLABLE, "server_unfit")


def _in_thread(someone: Caller, text: str) -> Answer:
    try:
        return someone.sql(text)
    finally:
        connection.close()


def _end_sessions(someone: Caller, *only: Role) -> None:
    """End all sessions of somebody's roles, or one of them, the pooler's idle ones too."""
    ROLE_CHECK._used.clear()
    roles = [user for role, user in someone.database.roles.items() if role in only or not only]
    as_provisioner(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = ANY(%s)",
        [roles],
    )
    pool.CONNECTION_POOL.clear()
