"""Kept connections: few, clean, and given up when they are of no use."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest
from django.db import connection

from sqlgateway.clusters import servers
from sqlgateway.conf import SqlSettings
from sqlgateway.databases.provisioning import database_for
from sqlgateway.errors import SqlBusy
from sqlgateway.pg import pool
from sqlgateway.schema import catalogue
from tests import cast
from tests.sqlgateway.support import Caller, as_provisioner

pytestmark = pytest.mark.provisions

SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"


def _sessions(someone: Caller) -> int:
    ((count,),) = as_provisioner(SESSIONS, [someone.database.dbname])
    return int(count)


def test_requests_one_after_the_other_use_one_connection(alice: Caller) -> None:
    pids = {alice.value("SELECT pg_backend_pid()") for _ in range(5)}

    assert len(pids) == 1
    assert _sessions(alice) == 1


def test_each_role_has_connections_of_its_own(alice: Caller) -> None:
    pids = {alice.be(role).value("SELECT pg_backend_pid()") for role in ("admin", "reader")}

    assert len(pids) == 2


def test_a_connection_is_clean_after_every_kind_of_failure(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int PRIMARY KEY)")
    for text in (
        "SELECT 1/0",
        "BEGIN; SELECT 1/0",
        "BEGIN; INSERT INTO t VALUES (1)",
        "BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)",
        "SET search_path = nonesuch; SELECT * FROM t",
        "CREATE TEMP TABLE t (id text); INSERT INTO t VALUES ('temp'); SELECT 1/0",
        "COPY t FROM STDIN",
        "COPY t TO STDOUT",
        "SELECT generate_series(1, 100000)",
        "SELECT pg_sleep(60)",
        "SELECT repeat('x', 60000000)",
        "PREPARE p AS SELECT 1; PREPARE p AS SELECT 1",
        "SET default_transaction_read_only = on; SELECT 1/0",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "selec",
    ):
        alice.sql(text, timeout_ms=400)

        assert alice.value("SELECT count(*) FROM t") == 0, text
        assert alice.value("SHOW default_transaction_read_only") == "off", text
        assert alice.sql("INSERT INTO t VALUES (1); DELETE FROM t").status == 200, text


def test_a_connection_that_the_server_has_closed_is_replaced(alice: Caller) -> None:
    first = alice.value("SELECT pg_backend_pid()")
    as_provisioner("SELECT pg_terminate_backend(%s, 5000)", [first])

    assert alice.value("SELECT pg_backend_pid()") != first


def test_a_connection_lost_in_the_middle_leaves_the_outcome_unknown(alice: Caller) -> None:
    alice.value("SELECT 1")
    with _about_to_break():
        answer = alice.sql("SELECT pg_sleep(1)")

    assert (answer.status, answer.code) == (502, "outcome_unknown")
    assert "Retry-After" not in answer.headers


def test_what_only_reads_can_be_repeated_when_its_connection_is_lost(
    signed_in_as: Callable[[str], cast.Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = signed_in_as("admin")
    assert admin.get("/v1/sql/schema").status == 200
    monkeypatch.setattr(catalogue, "SEARCH_PATH", "SELECT pg_sleep(1)")
    with _about_to_break():
        answer = admin.get("/v1/sql/schema")

    assert (answer.status, answer.body["code"]) == (503, "sql_unavailable")
    assert answer.headers["Retry-After"]


@contextmanager
def _about_to_break() -> Iterator[None]:
    """Lose the only connection soon, as by a network that is gone."""
    ((connection,),) = filter(None, pool.CONNECTION_POOL._idle.values())
    # The server's end says nothing more.
    threading.Timer(0.2, lambda: connection._wire._server.shutdown(2)).start()
    try:
        yield
    finally:
        connection.close()


def test_idle_connections_are_closed_after_a_while(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.value("SELECT 1")
    pool.CONNECTION_POOL.sweep()
    assert _sessions(alice) == 1

    monkeypatch.setattr(pool, "IDLE_S", 0)
    time.sleep(0.01)
    pool.CONNECTION_POOL.sweep()
    time.sleep(0.1)

    assert _sessions(alice) == 0


def test_the_least_recently_used_makes_room(alice: Caller, charlie: Caller) -> None:
    alice.value("SELECT 1")
    alice.be("reader").value("SELECT 1")
    alice.value("SELECT 1")

    with patch.object(SqlSettings, "connections", 2):
        charlie.value("SELECT 1")
        time.sleep(0.1)

        users = as_provisioner(
            "SELECT usename FROM pg_stat_activity WHERE datname = %s", [alice.database.dbname]
        )
    assert users == [(alice.database.admin_role,)]


def test_no_more_connections_than_allowed_are_opened(alice: Caller) -> None:
    login = database_for(alice.scope).login("admin")
    # Not the process's, in which a transaction of another test may still hold a connection.
    own = pool.ConnectionPool()
    with patch.object(SqlSettings, "connections", 1):
        held = own.checkout(login)
        with pytest.raises(SqlBusy):
            own.checkout(login)
        own.release(held)

        assert own.checkout(login) is held
    own.discard(held)


def test_a_connection_that_held_much_is_not_kept(alice: Caller) -> None:
    first = alice.value("SELECT pg_backend_pid()")
    alice.sql("SELECT repeat('x', 5000000)")

    assert alice.value("SELECT pg_backend_pid()") != first


def test_a_long_text_and_long_parameters_arrive(alice: Caller) -> None:
    long = "é" * 150_000

    assert alice.value(f"SELECT length('{long}')") == 150_000
    assert alice.value("SELECT length($1)", [long]) == 150_000


def test_threads_share_the_cache(committed: Caller) -> None:
    committed.value("SELECT 1")

    def work(number: int) -> bool:
        try:
            return bool(committed.value("SELECT $1::int", [number]) == number)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as executor:
        assert all(executor.map(work, range(60)))
    assert _sessions(committed) <= 4


def test_the_administrators_connections_give_up_a_silent_host(databases: None) -> None:
    address = servers.address_of(servers.default())
    separator = "&" if "?" in address.url else "?"
    own = replace(address, url=f"{address.url}{separator}tcp_user_timeout=7000")

    for each, limit_ms in ((address, "10000"), (own, "7000")):
        with servers.administer(each) as connection:
            words = connection.info.get_parameters()
        assert (words["tcp_user_timeout"], words["keepalives_idle"]) == (limit_ms, "10")
