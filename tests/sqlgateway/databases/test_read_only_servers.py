"""A server that takes no writes: 503 and another try, where 403 would tell clients to give up."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.test import override_settings

from sqlgateway.models import Cluster
from sqlgateway.pg import pool
from tests.commands import facts, refused
from tests.operations.doctor.support import findings
from tests.sqlgateway import support
from tests.sqlgateway.support import Caller
from tests.waiting import wait_until

pytestmark = pytest.mark.provisions

SETTING = "default_transaction_read_only"


def _configure(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(statement.encode())
        server.execute("SELECT pg_reload_conf()")
    # The postmaster passes it on.
    wait_until(lambda: _is_on(url) == ("SET" in statement and "RESET" not in statement))


def _is_on(url: str) -> bool:
    with psycopg.connect(url) as server:
        return server.execute(f"SHOW {SETTING}".encode()).fetchone() == ("on",)


@pytest.fixture
def caller(databases: None, second_url: str) -> Iterator[Caller]:
    """Return an admin with a table, on a server whose settings a test may change."""
    with override_settings(SQL=replace(settings.SQL, cluster_url=second_url)):
        someone = support.caller(support.organization("Alice's"))
        someone.sql("CREATE TABLE t (id int)")
        yield someone
        _configure(second_url, f"ALTER SYSTEM RESET {SETTING}")
        pool.CONNECTION_POOL.clear()


def test_a_server_that_is_read_only_answers_writes_with_503_and_reads_as_ever(
    caller: Caller, second_url: str
) -> None:
    _configure(second_url, f"ALTER SYSTEM SET {SETTING} = on")

    write = caller.sql("INSERT INTO t VALUES (1)")
    batch = caller.post({"queries": [{"query": "INSERT INTO t VALUES (1)"}]})
    keyed = caller.post({"query": "INSERT INTO t VALUES (1)"}, Idempotency_Key="k" * 20)
    read = caller.value("SELECT count(*) FROM t")

    for answer in (write, batch, keyed):
        assert (answer.status, answer.code) == (503, "sql_unavailable"), answer.body
        assert "Retry-After" in answer.headers
    assert read == 0
    _configure(second_url, f"ALTER SYSTEM RESET {SETTING}")
    assert caller.sql("INSERT INTO t VALUES (1) RETURNING id").rows == [{"id": 1}]


def test_a_connection_that_was_refused_a_write_is_not_used_again(
    caller: Caller, second_url: str
) -> None:
    _configure(second_url, f"ALTER SYSTEM SET {SETTING} = on")
    first = caller.value("SELECT pg_backend_pid()")
    assert caller.value("SELECT pg_backend_pid()") == first

    caller.sql("INSERT INTO t VALUES (1)")

    assert caller.value("SELECT pg_backend_pid()") != first


def test_a_write_that_a_standby_refused_is_503_although_it_was_promoted_since(
    caller: Caller, second_url: str
) -> None:
    refused_write = "SET TRANSACTION READ ONLY; INSERT INTO t VALUES (1)"
    with psycopg.connect(second_url) as server:
        ((folder,),) = server.execute("SHOW data_directory").fetchall()
        # As a promotion writes it.
        history = Path(folder) / "pg_wal" / "0000FFFF.history"
        server.execute(f"COPY (SELECT 1) TO '{history}'".encode())
    try:
        answer = caller.sql(refused_write)
    finally:
        history.unlink()

    assert (answer.status, answer.code) == (503, "sql_unavailable"), answer.body
    assert caller.sql(refused_write).status == 403


def test_what_the_tenant_made_read_only_itself_stays_its_fault(caller: Caller) -> None:
    for text in (
        "SET TRANSACTION READ ONLY; INSERT INTO t VALUES (1)",
        "START TRANSACTION READ ONLY; INSERT INTO t VALUES (1)",
    ):
        answer = caller.sql(text)
        assert (answer.status, answer.body["sqlstate"]) == (403, "25006"), text
    assert caller.be("reader").sql("INSERT INTO t VALUES (1)").status == 403
    unprepared = caller.sql("CREATE SEQUENCE s; SELECT currval('s')")
    assert (unprepared.status, unprepared.body["sqlstate"]) == (400, "55000")


def test_a_role_that_its_tenant_made_read_only_is_repaired_at_its_login(caller: Caller) -> None:
    assert caller.sql(f"ALTER ROLE CURRENT_USER SET {SETTING} = on").status == 200
    pool.CONNECTION_POOL.clear()

    assert caller.sql("INSERT INTO t VALUES (1) RETURNING id").rows == [{"id": 1}]


def test_a_read_only_server_gets_no_environment_and_is_named(
    caller: Caller, second_url: str, url_file: str
) -> None:
    _configure(second_url, f"ALTER SYSTEM SET {SETTING} = on")
    newcomer = support.caller(support.organization("Bob's"))

    answer = newcomer.sql("SELECT 1")

    assert (answer.status, answer.code) == (503, "sql_unavailable")
    [row] = facts("listclusters")["clusters"]
    assert (row["answers"], "takes no writes" in row["reason"]) == (False, True)
    [(level, message, _)] = findings("clusters", is_healthy=False)
    assert (level, "takes no writes" in message) == ("failed", True)
    Cluster.objects.update(system_identifier="")
    _, error = refused("addcluster", "again", "--url-file", url_file, "--accept-findings")
    assert "takes no writes" in error["message"]
