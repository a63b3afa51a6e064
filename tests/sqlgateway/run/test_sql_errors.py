"""What PostgreSQL refuses, and what the gateway makes of it."""

import re
from typing import Any

import pytest

from sqlgateway.errors import SqlBusy
from sqlgateway.run.memory import LargeResults
from sqlgateway.run.sqlstates import kind_of
from tests.sqlgateway.support import Caller

TABLES = """
CREATE TABLE p (id int PRIMARY KEY, name text NOT NULL CHECK (name <> ''));
CREATE TABLE c (id int REFERENCES p, during int4range, EXCLUDE USING gist (during WITH &&));
INSERT INTO p VALUES (1, 'one'); INSERT INTO c VALUES (1, '[1,5)')
"""
MATRIX = [
    ("SELEC 1", 400, "42601"),
    ("SELECT * FROM nonesuch", 400, "42P01"),
    ("SELECT nonesuch", 400, "42703"),
    ("SELECT nonesuch()", 400, "42883"),
    ("SELECT 'x'::int", 400, "22P02"),
    ("SELECT 1/0", 400, "22012"),
    ("SELECT 2147483647::int + 1", 400, "22003"),
    ("INSERT INTO p VALUES (2, NULL)", 400, "23502"),
    ("INSERT INTO p VALUES (2, '')", 400, "23514"),
    ("INSERT INTO p VALUES (1, 'again')", 409, "23505"),
    ("INSERT INTO c VALUES (9)", 409, "23503"),
    ("INSERT INTO c VALUES (1, '[4,6)')", 409, "23P01"),
    ("DELETE FROM p", 409, "23503"),
    ("BEGIN READ ONLY; INSERT INTO p VALUES (3, 'x')", 403, "25006"),
    ("CREATE ROLE other", 403, "42501"),
    ("SELECT repeat('x', 2000000000)", 413, "54000"),
    ("SELECT * FROM nonesuch.t", 400, "42P01"),
    ("FETCH nonesuch", 400, "34000"),
    ("DO $$ BEGIN RAISE 'mine'; END $$", 400, "P0001"),
    ("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$", 409, "40001"),
    ("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$", 409, "40P01"),
    ("DO $$ BEGIN RAISE SQLSTATE '55P03'; END $$", 409, "55P03"),
    ("DO $$ BEGIN RAISE SQLSTATE '53300'; END $$", 400, "53300"),
    ("DO $$ BEGIN RAISE SQLSTATE '53400'; END $$", 413, "53400"),
    ("DO $$ BEGIN RAISE SQLSTATE '08006'; END $$", 400, "08006"),
    ("DO $$ BEGIN RAISE SQLSTATE '57P03'; END $$", 400, "57P03"),
    ("DO $$ BEGIN RAISE SQLSTATE 'XX000'; END $$", 400, "XX000"),
    ("DO $$ BEGIN RAISE SQLSTATE '58030'; END $$", 400, "58030"),
]


@pytest.fixture
def tables(alice: Caller) -> Caller:
    """Return Alice with two tables."""
    assert alice.sql(TABLES).status == 200
    return alice


def test_each_class_of_error_has_its_status(tables: Caller) -> None:
    for text, status, sqlstate in MATRIX:
        answer = tables.sql(text)
        assert (answer.status, answer.body.get("sqlstate")) == (status, sqlstate), answer.body
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.code == "sql_error"
        assert ("Retry-After" in answer.headers) == (status == 503), text
        assert answer.body.get("retryable", False) == (
            status == 503 or sqlstate in {"40001", "40P01", "55P03"}
        )
        assert tables.value("SELECT 1") == 1, text


def test_a_constraint_names_what_it_is_about(tables: Caller) -> None:
    body = tables.sql("INSERT INTO p VALUES (1, 'again')").body

    assert body["schema"] == "public"
    assert body["table"] == "p"
    assert body["constraint"] == "p_pkey"
    assert body["message"] == 'duplicate key value violates unique constraint "p_pkey"'
    assert body["detail"] == body["message"] + "\nKey (id)=(1) already exists."
    assert tables.sql("INSERT INTO p VALUES (2, NULL)").body["column_name"] == "name"


def test_a_position_is_that_of_the_callers_text(alice: Caller) -> None:
    body = alice.sql("SELECT 1;\nSELECT 'é',\n  nonesuch").body

    assert (body["position"], body["line"], body["column"]) == (25, 3, 3)
    assert body["statement"] == 2
    unparsed = alice.sql("SELECT 1; SELEC").body
    assert "statement" not in unparsed
    assert unparsed["position"] == 11


def test_a_hint_is_returned(tables: Caller) -> None:
    assert "p.name" in tables.sql("SELECT nam FROM p").body["hint"]


def test_nothing_of_the_servers_is_in_any_answer(tables: Caller) -> None:
    database = tables.database
    words = [database.dbname, *database.roles.values(), "zonal_provisioner", ".c:", "socket"]
    for text in [
        *(text for text, _, _ in MATRIX),
        "SET ROLE zonal_provisioner",
        "ALTER DATABASE zonal_template_1 RENAME TO x",
        "REINDEX DATABASE",
        "CREATE EXTENSION nonesuch",
        "LOAD 'nonesuch'",
        f"ALTER ROLE {database.reader_role} PASSWORD 'x'",
        f"SET ROLE {database.reader_role}",
        f"DROP DATABASE {database.dbname}",
        f"CREATE DATABASE {database.dbname}",
        "SET ROLE zr_22222222222222222222",
        "ALTER TABLE p OWNER TO zr_22222222222222222222",
        "SHOW data_directory",
        "COPY p TO '/tmp/x'",
    ]:
        said = str(tables.sql(text).body)
        assert not [word for word in words if word in said], said
        assert not re.search(r"\bz[drt]_", said), said


def test_ones_own_words_stay(alice: Caller) -> None:
    body = alice.sql("""DO $$ BEGIN RAISE 'see /tmp/x' USING HINT = 'try /usr/lib'; END $$""").body

    assert body["message"] == "see /tmp/x"


def test_an_engine_fault_keeps_its_words_to_the_log(alice: Caller) -> None:
    answer = alice.sql("SELECT pg_get_multixact_members('1')")

    assert (answer.status, answer.code) == (502, "engine_error")
    assert "MultiXactId" not in str(answer.body)
    assert answer.body["request_id"] == "request-of-a-test"


def test_a_long_message_is_cut(alice: Caller) -> None:
    body = alice.sql("DO $$ BEGIN RAISE '%', repeat('x', 1000000); END $$").body

    assert len(body["message"]) == 8192


def test_copy_is_refused_with_the_outcome_of_its_transaction(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    for text, hint, outcome, kept in (
        ("INSERT INTO t VALUES (1); COPY t FROM STDIN", "/v1/sql/import", "rolled_back", 0),
        ("COPY t TO STDOUT; SELECT 1/0", "text/csv", "rolled_back", 0),
        ("BEGIN; INSERT INTO t VALUES (1); COPY t TO STDOUT", "text/csv", "rolled_back", 0),
        (
            "INSERT INTO t VALUES (1); COPY t TO STDOUT; COPY t TO STDOUT",
            "text/csv",
            "committed",
            1,
        ),
        (
            "COPY t TO STDOUT; COPY t FROM STDIN; INSERT INTO t VALUES (2)",
            "text/csv",
            "rolled_back",
            1,
        ),
    ):
        answer = alice.sql(text)
        assert (answer.status, answer.code) == (400, "copy_not_supported"), text
        assert answer.body["outcome"] == outcome, text
        assert hint in answer.body["hint"]
        assert alice.value("SELECT count(*) FROM t") == kept, text
    with_params = alice.sql("COPY t TO STDOUT", [])
    assert with_params.code == "copy_not_supported"


@pytest.mark.parametrize(
    ("state", "code", "status"),
    [
        ("57014", "query_cancelled", 400),
        ("57P01", "sql_error", 503),
        ("53300", "sql_error", 503),
        ("08006", "sql_error", 503),
        ("58030", "engine_error", 502),
        ("XX001", "engine_error", 502),
        ("42501", "sql_error", 403),
        ("99999", "sql_error", 400),
        ("", "sql_error", 400),
    ],
)
def test_every_sqlstate_has_an_answer(state: str, code: str, status: int) -> None:
    kind: Any = kind_of(state)

    assert (kind.code, kind.status) == (code, status)


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("COPY t FROM STDIN", 400, "copy_not_supported"),
        ("SELECT 1 / 0", 400, "sql_error"),
        ("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$", 409, "sql_error"),
        ("BEGIN; SELECT repeat('x', 30000000)", 413, "result_too_large"),
        ("SELECT repeat('x', 3000000)", 413, "result_too_large"),
    ],
)
def test_what_fails_after_a_commit_does_not_say_that_nothing_is_kept(
    alice: Caller, monkeypatch: pytest.MonkeyPatch, text: str, status: int, code: str
) -> None:
    def none_free(*_: object) -> None:
        raise SqlBusy

    monkeypatch.setattr(LargeResults, "take", none_free)
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql("; ".join(("BEGIN", "INSERT INTO t VALUES (1)", "COMMIT", text)))

    assert (answer.status, answer.code) == (status, code)
    assert answer.body["outcome"] == "unknown"
    assert not answer.body.get("retryable")
    assert alice.value("SELECT count(*) FROM t") == 1


def test_a_procedure_that_committed_may_have_kept_something(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")
    alice.sql(
        "CREATE PROCEDURE p(again text) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (1);"
        " COMMIT; EXECUTE again; END $$"
    )

    late = alice.post({"query": "CALL p('SELECT pg_sleep(9)')", "timeout_ms": 200})
    raised = alice.sql("CALL p($q$ DO $$ BEGIN RAISE SQLSTATE '40001'; END $$ $q$)")

    assert (late.code, late.body["outcome"]) == ("query_timeout", "unknown")
    assert (raised.body["retryable"], raised.body["outcome"]) == (False, "unknown")
    assert alice.value("SELECT count(*) FROM t") == 2


@pytest.mark.parametrize(
    "body",
    [{"queries": [{"query": "CALL p()"}]}, {"query": "CALL p()", "isolation": "serializable"}],
    ids=["batch", "isolation"],
)
def test_a_procedure_in_a_transaction_of_the_gateway_cannot_commit(
    alice: Caller, body: dict[str, Any]
) -> None:
    alice.sql("CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '40001'; END $$")

    answer = alice.post(body)

    assert (answer.status, answer.body["retryable"]) == (409, True)
    assert "outcome" not in answer.body
