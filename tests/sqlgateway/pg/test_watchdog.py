"""A request ends at its deadline, whatever it does, and is gone from the server."""

import time

import pytest

from sqlgateway.databases.provisioning import database_for
from sqlgateway.pg.administrator import ADMINISTRATOR
from sqlgateway.pg.tenant_connection import open_connection
from sqlgateway.pg.wire import Wire
from tests.sqlgateway.support import Answer, Caller, backends_of

pytestmark = pytest.mark.slow

STUBBORN = [
    "SELECT pg_sleep(60)",
    "SET statement_timeout = 0; SET idle_session_timeout = 0; SELECT pg_sleep(60)",
    "SET lock_timeout = 0; SELECT count(*) FROM generate_series(1, 100000000000)",
    "DO $$ BEGIN LOOP PERFORM 1; END LOOP; END $$",
    (
        "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END;"
        " END LOOP; END $$"
    ),
    (
        "DO $$ BEGIN LOOP BEGIN LOOP PERFORM 1; END LOOP; EXCEPTION WHEN OTHERS OR query_canceled"
        " THEN NULL; END; END LOOP; END $$"
    ),
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r",
    "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
    (
        "SELECT 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' ~ '(a*)*(a*)*(a*)*b' FROM "
        "generate_series(1, 100000000)"
    ),
    "BEGIN; SELECT pg_sleep(60); COMMIT",
    "SELECT generate_series(1, 100000000000); SELECT 1",
]
COPIES = [
    "COPY (SELECT pg_sleep(60)) TO STDOUT",
    "COPY (SELECT generate_series(1, 100000000000)) TO STDOUT",
]


def _timed(someone: Caller, text: str, *, timeout_ms: int) -> tuple[Answer, float]:
    started = time.monotonic()
    answer = someone.sql(text, timeout_ms=timeout_ms)
    return answer, time.monotonic() - started


@pytest.mark.parametrize("text", STUBBORN)
def test_a_stubborn_statement_ends_and_is_gone(alice: Caller, text: str) -> None:
    alice.value("SELECT 1")

    answer, elapsed_s = _timed(alice, text, timeout_ms=300)

    assert (answer.status, answer.code) == (400, "query_timeout"), answer.body
    assert elapsed_s < 3
    assert backends_of(alice) == []
    assert alice.value("SELECT 1") == 1


@pytest.mark.parametrize("text", COPIES)
def test_a_stubborn_copy_ends_and_is_gone(alice: Caller, text: str) -> None:
    answer, elapsed_s = _timed(alice, text, timeout_ms=300)

    assert (answer.status, answer.code) == (400, "copy_not_supported"), answer.body
    assert answer.body["outcome"] == "rolled_back"
    assert elapsed_s < 3
    assert backends_of(alice) == []


def test_a_deadline_undoes_the_transaction(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql("INSERT INTO t VALUES (1); SELECT pg_sleep(60)", timeout_ms=200)

    assert answer.code == "query_timeout"
    assert alice.value("SELECT count(*) FROM t") == 0


def test_a_quick_request_is_not_harmed_by_its_deadline(alice: Caller) -> None:
    for _ in range(20):
        assert alice.value("SELECT 1", timeout_ms=1000) == 1
    time.sleep(1.2)

    assert alice.value("SELECT pg_sleep(0.1)::text || 'done'") == "done"


def test_a_statement_that_waits_for_a_lock_ends(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql(
        "BEGIN; LOCK TABLE t; SELECT pg_sleep(60)",
        timeout_ms=200,
    )

    assert answer.code == "query_timeout"
    assert alice.value("SELECT count(*) FROM t") == 0


def test_a_commit_that_takes_too_long_ends_too(alice: Caller) -> None:
    alice.sql(
        "CREATE TABLE t (id int); CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END;"
        " END LOOP; END $$; CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()"
    )

    answer = alice.sql("INSERT INTO t VALUES (1)", isolation="serializable", timeout_ms=300)

    assert answer.code == "query_timeout"
    assert backends_of(alice) == []
    assert alice.value("SELECT count(*) FROM t") == 0


def test_ones_own_statement_timeout_is_a_cancellation(alice: Caller) -> None:
    answer = alice.sql("SET statement_timeout = 50; SELECT pg_sleep(60)")

    assert (answer.status, answer.code) == (400, "query_cancelled")
    assert answer.body["sqlstate"] == "57014"
    assert answer.body["retryable"] is False


@pytest.mark.parametrize(
    "text",
    [
        "SELECT repeat('x', 20000000)",
        "INSERT INTO t VALUES (1) RETURNING repeat('x', 20000000)",
        "INSERT INTO t VALUES (1); SELECT repeat('x', 20000000)",
    ],
)
def test_a_backend_that_is_ended_while_it_sends_is_late_and_undone(
    alice: Caller, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    alice.sql("CREATE TABLE t (id int)")
    take = Wire._take

    def take_slowly(wire: Wire) -> None:
        # As a gateway that is given little of the processor: the backend waits to be read.
        time.sleep(0.02)
        take(wire)

    with monkeypatch.context() as patched:
        patched.setattr(Wire, "_take", take_slowly)
        answer = alice.sql(text, timeout_ms=300)

    assert (answer.status, answer.code) == (400, "query_timeout"), answer.body
    assert backends_of(alice) == []
    assert alice.value("SELECT count(*) FROM t") == 0


def test_only_what_is_under_way_can_be_undone(alice: Caller) -> None:
    alice.value("SELECT 1")
    connection = open_connection(database_for(alice.scope).login("admin"))
    connection.give_up_at = time.monotonic() + 10
    try:
        assert ADMINISTRATOR.is_open(connection) is False
        connection.run(b"BEGIN")
        assert ADMINISTRATOR.is_open(connection) is True
        connection.run(b"COMMIT")
        assert ADMINISTRATOR.is_open(connection) is False
        assert ADMINISTRATOR.terminate(connection)
        while ADMINISTRATOR.is_open(connection) is not None:
            time.sleep(0.01)
    finally:
        connection.close()
