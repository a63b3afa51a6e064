"""The same ``Idempotency-Key`` twice: the write happens once, and its answer is repeated."""

import time
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from sqlgateway.pg.message_stream import ConnectionLost
from sqlgateway.run import idempotency
from sqlgateway.run.idempotency import KeyedBoundary
from tests.parallel import at_once
from tests.sqlgateway.support import UNREADABLE, Answer, Caller

KEY = "order-4711"
INSERT = {"query": "INSERT INTO t (id, note) VALUES (1, $1) RETURNING *", "params": ["hidden"]}
REPLAYED = "Idempotent-Replayed"


def once(someone: Caller, body: dict[str, Any], key: str = KEY) -> Answer:
    return someone.post(body, Idempotency_Key=key)


def count(someone: Caller) -> int:
    return int(someone.value("SELECT count(*) FROM t"))


@pytest.fixture
def writer(alice: Caller) -> Caller:
    """Return Alice with a table that takes a row any number of times."""
    alice.sql("CREATE TYPE mood AS ENUM ('glad'); CREATE TABLE t (id int, note text, mood mood)")
    return replace(alice, user_id=UUID(int=1))


def test_the_second_request_gets_the_first_ones_answer(writer: Caller) -> None:
    first = once(writer, INSERT)
    # The order of members is no difference.
    second = once(writer, dict(reversed(INSERT.items())))

    assert first.rows == [{"id": 1, "note": "hidden", "mood": None}]
    assert REPLAYED not in first.headers
    assert second.headers[REPLAYED] == "true"
    assert second.body == first.body
    assert count(writer) == 1
    batch = {"queries": [{"query": "INSERT INTO t VALUES (2, NULL, 'glad') RETURNING mood"}] * 2}
    repeated = [once(writer, {**batch, "isolation": "serializable"}, "batch") for _ in range(2)]
    assert repeated[0].body == repeated[1].body
    assert repeated[0].body["columns"][0]["type"] == "mood"
    several = {"query": "INSERT INTO t VALUES (3); SAVEPOINT a; ROLLBACK TO a; SELECT 1"}
    assert [once(writer, several, "several").status for _ in range(2)] == [200, 200]
    assert count(writer) == 4


def test_a_key_belongs_to_its_body_user_and_role(writer: Caller) -> None:
    once(writer, INSERT)
    colleague = replace(writer, user_id=UUID(int=2))

    for body in ({**INSERT, "params": ["other"]}, {**INSERT, "rows": "arrays"}):
        reused = once(writer, body)
        assert (reused.status, reused.code) == (422, "idempotency_key_reused")
    demoted = once(replace(writer, role="operator"), INSERT)
    assert (demoted.status, demoted.code) == (422, "idempotency_key_reused")
    assert count(writer) == 1
    assert REPLAYED not in once(colleague, INSERT).headers
    assert count(writer) == 2


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_lost_answer_is_repeated_if_its_write_was_committed(
    writer: Caller, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    def close(*args: Any, **options: Any) -> None:
        if is_committed:
            usual(*args, **options)
        raise ConnectionLost

    usual = KeyedBoundary.close
    with monkeypatch.context() as patched:
        patched.setattr(KeyedBoundary, "close", close)
        assert once(writer, INSERT).code == "outcome_unknown"
    assert count(writer) == is_committed

    assert (REPLAYED in once(writer, INSERT).headers) == is_committed
    assert count(writer) == 1


def test_nothing_is_kept_of_a_request_that_failed(writer: Caller) -> None:
    writer.sql(
        "CREATE TABLE u (id int UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO u SELECT 1"
    )
    at_commit = {"query": "INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)"}

    assert once(writer, {"query": "INSERT INTO t VALUES (1); SELECT 1/0"}).status == 400
    assert once(writer, at_commit).status == 409
    assert count(writer) == 0
    writer.sql("TRUNCATE u")
    assert once(writer, at_commit).status == 200
    assert once(writer, at_commit).headers[REPLAYED] == "true"
    assert count(writer) == 1


def test_a_forged_record_counts_as_absent(writer: Caller) -> None:
    """Tenant roles can write the table; only the gateway can make a record."""
    operator = replace(writer, role="operator")
    once(operator, INSERT)
    once(operator, INSERT, "another")
    seen = operator.value(
        "SELECT count(*) FROM zonal.idempotency WHERE position('hidden'::bytea IN record) > 0"
    )
    assert seen == 0
    # A record that was moved to another key is as wrong as any other bytes.
    for forgery in (
        "UPDATE zonal.idempotency SET record = '\\x00'",
        "UPDATE zonal.idempotency SET record = NULL",
        "UPDATE zonal.idempotency SET record = (SELECT record FROM zonal.idempotency LIMIT 1)",
    ):
        operator.sql(forgery)
        before = count(writer)
        answers = [once(operator, INSERT, key) for key in (KEY, "another")]
        assert {answer.status for answer in answers} == {200}
        assert count(writer) - before == sum(REPLAYED not in one.headers for one in answers) >= 1
    removal = {"query": "INSERT INTO t VALUES (9); DELETE FROM zonal.idempotency"}
    refused = once(operator, removal, "removal")
    assert (refused.status, refused.code) == (400, "idempotency_not_supported")
    assert writer.value("SELECT count(*) FROM t WHERE id = 9") == 0


def test_the_table_belongs_to_the_platform(writer: Caller) -> None:
    once(writer, INSERT)

    for text in ("DROP TABLE zonal.idempotency", "CREATE TABLE zonal.x ()", "DROP SCHEMA zonal"):
        assert writer.sql(text).status == 403
    reader = writer.be("reader")
    for text in ("TABLE zonal.idempotency", "INSERT INTO zonal.idempotency VALUES ('\\x00')"):
        assert reader.sql(text).status == 403


def test_a_reader_needs_no_key(writer: Caller) -> None:
    writer.sql("INSERT INTO t VALUES (1)")
    body = {"query": "SELECT count(*) FROM t"}

    for someone, options in ((writer.be("reader"), {}), (writer, {"read_only": True})):
        for _ in range(2):
            answer = once(someone, {**body, **options})
            assert answer.rows == [{"count": 1}]
            assert REPLAYED not in answer.headers


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("INSERT INTO t VALUES (1); COMMIT", "idempotency_not_supported"),
        ("INSERT INTO t VALUES (1); /* a */ rollback; SELECT 1", "idempotency_not_supported"),
        ("BEGIN; INSERT INTO t VALUES (1); COMMIT", "idempotency_not_supported"),
        ("VACUUM t", "sql_error"),
        ("CREATE INDEX CONCURRENTLY ON t (id)", "sql_error"),
        ("COPY t FROM STDIN", "copy_not_supported"),
        ("INSERT INTO t VALUES (1); /* /* */ ' */ ROLLBACK --'", "idempotency_not_supported"),
        ("; ".join(["INSERT INTO t VALUES (1)", UNREADABLE, "ROLLBACK"]), "transaction_ended"),
    ],
)
def test_what_cannot_run_in_one_transaction_is_refused(
    alice: Caller, query: str, code: str
) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = once(alice, {"query": query})

    assert (answer.status, answer.code) == (400, code)
    assert count(alice) == 0


def test_a_literal_or_a_body_is_no_transaction_control(writer: Caller) -> None:
    atomic = "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END"
    for number, text in enumerate(["SELECT '; COMMIT'", 'SELECT 1 AS "; END"', atomic]):
        assert once(writer, {"query": text}, f"key-{number}").status == 200


def test_a_text_may_change_how_constants_are_read(writer: Caller) -> None:
    text = "SET standard_conforming_strings = off; SET search_path = ''; SELECT 1"
    answers = [once(writer, {"query": text}) for _ in range(2)]
    assert [answer.headers.get(REPLAYED) for answer in answers] == [None, "true"]


def test_an_answer_too_long_to_keep_is_rolled_back(writer: Caller) -> None:
    answer = once(writer, {"query": "INSERT INTO t SELECT 1, repeat('x', 1050000) RETURNING note"})

    assert (answer.status, answer.body["outcome"]) == (413, "rolled_back")
    assert count(writer) == 0


def test_records_expire_and_are_deleted(writer: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    once(writer, INSERT)
    once(writer, INSERT, "another")
    later = time.time() + 25 * 3600
    monkeypatch.setattr("time.time", lambda: later)

    assert REPLAYED not in once(writer, INSERT).headers
    assert once(writer, INSERT).headers[REPLAYED] == "true"

    writer.sql("UPDATE zonal.idempotency SET made_at = now() - interval '25 hours'")
    monkeypatch.setattr(idempotency, "CLEANED_BELOW", 256)
    once(writer, INSERT, "third")
    assert writer.value("SELECT count(*) FROM zonal.idempotency") == 1


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256, "a\tb"])
def test_a_malformed_key_is_refused(alice: Caller, key: str) -> None:
    answer = once(alice, {"query": "SELECT 1"}, key)

    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "Idempotency-Key")


@pytest.mark.parametrize("wait_ms", [1, idempotency.WAIT_MS])
def test_of_two_at_once_one_runs(
    committed: Caller, monkeypatch: pytest.MonkeyPatch, wait_ms: int
) -> None:
    committed.sql("CREATE TABLE t (id int)")
    # The first keyed request makes the table, whatever its role.
    monkeypatch.setattr(idempotency, "WAIT_MS", wait_ms)
    body = {"query": "INSERT INTO t SELECT 1 FROM pg_sleep(0.3)"}

    answers = at_once(*[lambda: once(committed, body)] * 2)

    assert count(committed) == 1
    second = max(answers, key=lambda one: (one.status, REPLAYED in one.headers))
    if second.status == 409:
        assert (second.code, second.headers["Retry-After"]) == ("idempotency_key_in_use", "1")
    else:
        assert second.headers[REPLAYED] == "true"
    assert once(committed, body).headers[REPLAYED] == "true"


def test_parameters_too_deep_to_be_compared_are_refused(writer: Caller) -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]

    refused = once(writer, {"query": "SELECT $1::jsonb", "params": [deep]})

    assert (refused.status, refused.body["errors"][0]["code"]) == (400, "too_deep")
