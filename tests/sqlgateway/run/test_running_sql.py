"""What an answer holds, for one statement and for several."""

import pytest

from tests.sqlgateway.support import UNREADABLE, Caller


def test_a_first_query_makes_the_database_and_answers(alice: Caller) -> None:
    answer = alice.sql("SELECT 1 AS one, 'x' AS two")

    assert answer.status == 200
    assert answer.body["columns"] == [
        {"name": "one", "type": "int4", "oid": 23},
        {"name": "two", "type": "text", "oid": 25},
    ]
    assert answer.rows == [{"one": 1, "two": "x"}]
    assert answer.body["row_count"] == 1
    assert answer.body["command"] == "SELECT"
    assert answer.body["truncated"] is False
    assert answer.body["notices"] == []
    assert answer.body["stats"]["bytes"] == len('{"one":1,"two":"x"},')
    assert answer.body["request_id"] == "request-of-a-test"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "results" not in answer.body


def test_several_statements_run_as_one_transaction_and_the_last_result_is_at_the_top(
    alice: Caller,
) -> None:
    answer = alice.sql(
        "CREATE TABLE t (id int); INSERT INTO t VALUES (1), (2); SELECT * FROM t; SELECT 'end' AS a"
    )

    assert answer.rows == [{"a": "end"}]
    assert [one["command"] for one in answer.body["results"]] == [
        "CREATE TABLE",
        "INSERT",
        "SELECT",
        "SELECT",
    ]
    assert [one["row_count"] for one in answer.body["results"]] == [0, 2, 2, 1]
    assert answer.body["results"][2]["rows"] == [{"id": 1}, {"id": 2}]


def test_a_failed_statement_undoes_those_before_it(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    failed = alice.sql("INSERT INTO t VALUES (1); SELECT 1/0; INSERT INTO t VALUES (2)")

    assert failed.status == 400
    assert failed.body["statement"] == 2
    assert alice.value("SELECT count(*) FROM t") == 0


def test_a_transaction_of_the_texts_own_is_kept(alice: Caller) -> None:
    assert alice.sql("BEGIN; CREATE TABLE t (id int); COMMIT").status == 200
    assert alice.value("SELECT count(*) FROM t") == 0


def test_an_unfinished_transaction_is_rolled_back_and_said_so(alice: Caller) -> None:
    answer = alice.sql("BEGIN; CREATE TABLE t (id int)")

    assert (answer.status, answer.code) == (400, "transaction_not_committed")
    assert alice.sql("SELECT * FROM t").body["sqlstate"] == "42P01"


def test_begin_with_params_is_rolled_back_too(alice: Caller) -> None:
    assert alice.sql("BEGIN", []).code == "transaction_not_committed"


def test_a_statement_that_refuses_a_transaction_works_alone(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    assert alice.sql("VACUUM t").status == 200
    assert alice.sql("CREATE INDEX CONCURRENTLY i ON t (id)").status == 200
    assert alice.sql("SELECT 1; VACUUM t").body["sqlstate"] == "25001"


def test_queries_are_one_transaction(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int PRIMARY KEY)")

    done = alice.post(
        {
            "queries": [
                {"query": "INSERT INTO t VALUES ($1)", "params": [1]},
                {"query": "SELECT id FROM t"},
            ]
        }
    )
    undone = alice.post(
        {
            "queries": [
                {"query": "INSERT INTO t VALUES ($1)", "params": [2]},
                {"query": "INSERT INTO t VALUES ($1)", "params": [1]},
            ]
        }
    )

    assert done.rows == [{"id": 1}]
    assert len(done.body["results"]) == 2
    assert (undone.status, undone.body["statement"]) == (409, 2)
    assert alice.value("SELECT count(*) FROM t") == 1


@pytest.mark.parametrize(
    "text",
    [
        "COMMIT",
        "commit and chain",
        ";; /* a /* nested */ comment */ -- and another\n ROLLBACK AND CHAIN",
        "END",
        "ABORT",
        "ROLLBACK WORK",
        "BEGIN",
        "START TRANSACTION",
        "PREPARE TRANSACTION 'x'",
    ],
)
def test_transaction_control_is_refused_before_anything_runs(alice: Caller, text: str) -> None:
    alice.sql("CREATE TABLE t (id int)")
    insert = "INSERT INTO t VALUES (1)"

    batch = alice.post({"queries": [{"query": insert}, {"query": text}, {"query": insert}]})
    isolated = alice.sql(f"{insert}; {text}; {insert}", isolation="serializable")

    for answer in (batch, isolated):
        assert (answer.status, answer.code) == (400, "transaction_ended"), answer.body
        assert answer.body["statement"] == 2
        assert "outcome" not in answer.body
    assert alice.value("SELECT count(*) FROM t") == 0


@pytest.mark.parametrize("end", ["COMMIT", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"])
def test_a_transaction_that_was_ended_unnoticed_is_reported(alice: Caller, end: str) -> None:
    alice.sql("CREATE TABLE t (id int)")
    text = "; ".join([UNREADABLE, end, "INSERT INTO t VALUES (1)"])

    answer = alice.sql(text, isolation="serializable")

    assert (answer.status, answer.code) == (400, "transaction_ended")
    assert answer.body["outcome"] == "unknown"
    assert alice.value("SELECT count(*) FROM t") == ("CHAIN" not in end)


def test_words_that_only_look_like_transaction_control_run(alice: Caller) -> None:
    text = (
        "SAVEPOINT a; ROLLBACK TO a; ROLLBACK TRANSACTION TO SAVEPOINT a; RELEASE a;"
        " SELECT '; COMMIT;' AS a, $x$; COMMIT; $$ $x$ AS b, E'\\'; COMMIT;' AS c /* ; COMMIT */"
        ' , 1 AS "; COMMIT", CASE WHEN true THEN 1 END -- ; COMMIT'
    )

    assert alice.sql(text, isolation="read committed").status == 200
    function = "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END"
    assert alice.sql(function, isolation="read committed").status == 200
    queries = [{"query": "SAVEPOINT a"}, {"query": "ROLLBACK TO a"}]
    assert alice.post({"queries": queries}).status == 200


def test_isolation_opens_the_transaction(alice: Caller) -> None:
    for level in ("read committed", "repeatable read", "serializable"):
        assert alice.value("SHOW transaction_isolation", isolation=level) == level

    kept = alice.sql("CREATE TABLE t (id int); INSERT INTO t VALUES (1)", isolation="serializable")

    assert kept.status == 200
    assert alice.value("SELECT count(*) FROM t") == 1


def test_a_deferred_constraint_that_fails_at_commit_is_reported(alice: Caller) -> None:
    alice.sql(
        "CREATE TABLE t (id int PRIMARY KEY, up int REFERENCES t DEFERRABLE INITIALLY DEFERRED)"
    )

    answer = alice.post({"queries": [{"query": "INSERT INTO t VALUES (1, 2)"}]})

    assert (answer.status, answer.body["sqlstate"]) == (409, "23503")
    assert alice.value("SELECT count(*) FROM t") == 0


def test_read_only_holds_for_any_text(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    for text in (
        "INSERT INTO t VALUES (1)",
        "SET default_transaction_read_only = off; INSERT INTO t VALUES (1)",
        "BEGIN READ WRITE; INSERT INTO t VALUES (1); COMMIT",
    ):
        assert alice.sql(text, read_only=True).status == 403, text
    assert alice.sql("SELECT * FROM t", read_only=True).status == 200
    assert alice.value("SELECT count(*) FROM t") == 0


def test_rows_may_be_arrays(alice: Caller) -> None:
    assert alice.sql("SELECT 1 AS a, NULL AS b", rows="arrays").rows == [[1, None]]
    assert alice.sql("SELECT", rows="arrays").rows == [[]]
    assert alice.sql("SELECT").rows == [{}]


def test_names_that_are_there_twice_are_numbered(alice: Caller) -> None:
    answer = alice.sql("SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a")

    assert answer.rows == [{"a": 1, "a_3": 2, "a_2": 3, "a_4": 4}]
    assert [(c["name"], c.get("key")) for c in answer.body["columns"]] == [
        ("a", None),
        ("a", "a_3"),
        ("a_2", None),
        ("a", "a_4"),
    ]
    assert alice.sql("SELECT 1 AS id, 2 AS id").rows == [{"id": 1, "id_2": 2}]


def test_odd_column_names_are_kept(alice: Caller) -> None:
    answer = alice.sql("""SELECT 1 AS "100%s ""q""\\", 2 AS "é" """)

    assert answer.rows == [{'100%s "q"\\': 1, "é": 2}]


def test_blank_and_comment_texts_answer_nothing(alice: Caller) -> None:
    for text in (" ", ";", "-- nothing", "/* nothing */;;"):
        answer = alice.sql(text)
        assert (answer.rows, answer.body["command"]) == ([], "")


def test_notices_have_the_members_that_an_error_has(alice: Caller) -> None:
    made = "CREATE TABLE n (i int); CREATE VIEW v AS TABLE n; CREATE VIEW w AS TABLE v;"
    answer = alice.sql(f"{made} DROP TABLE n CASCADE")
    assert answer.body["notices"] == [
        {
            "severity": "NOTICE",
            "sqlstate": "00000",
            "message": "drop cascades to 2 other objects",
            "detail": "drop cascades to view v\ndrop cascades to view w",
        }
    ]
    fields = ("schema", "table", "column", "constraint", "datatype", "hint", "detail")
    using = ", ".join(f"{field} = 'the {field}'" for field in fields)
    said = f"DO $$ BEGIN RAISE WARNING 'there' USING {using}; END $$"
    (notice,) = alice.post({"queries": [{"query": "SELECT 1"}, {"query": said}]}).body["notices"]
    assert notice == {
        "severity": "WARNING",
        "sqlstate": "01000",
        "message": "there",
        "statement": 2,
        "column_name": "the column",
        "data_type": "the datatype",
        **{field: f"the {field}" for field in ("schema", "table", "constraint", "hint", "detail")},
    }
    texts = ("SET standard_conforming_strings = off", "SELECT 1,\n '\\\\' AS v")
    (notice,) = alice.post({"queries": [{"query": text} for text in texts]}).body["notices"]
    assert (notice["statement"], notice["line"], notice["column"]) == (2, 2, 2)
    failed = alice.sql("DO $$ BEGIN RAISE NOTICE 'hello'; END $$; SELECT 1/0")
    assert (failed.body["statement"], failed.body["notices"][0]["message"]) == (2, "hello")


def test_all_fields_of_a_notice_share_one_limit(alice: Caller) -> None:
    fields = ("schema", "table", "column", "constraint", "datatype", "hint", "detail")
    using = ", ".join(f"{field} = repeat('x', 5000)" for field in fields)
    answer = alice.sql(f"DO $$ BEGIN RAISE NOTICE 'a' USING {using}; END $$")
    assert len(str(answer.body["notices"])) < 9000


def test_explain_returns_the_plan_and_runs_nothing(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql("INSERT INTO t VALUES ($1)", [1], explain=True)

    assert answer.rows[0]["QUERY PLAN"] == answer.body["plan"]
    assert answer.body["plan"][0]["Plan"]["Node Type"] == "ModifyTable"
    assert alice.value("SELECT count(*) FROM t") == 0
    assert alice.sql("SELECT 1; DELETE FROM t", explain=True).status == 400
    assert alice.sql("SELECT nonesuch", explain=True).body["position"] == len("SELECT n")


def test_explain_analyze_runs_the_statement_and_measures_it(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql("INSERT INTO t VALUES (1)", explain="analyze", rows="arrays")

    assert answer.body["plan"][0]["Plan"]["Actual Rows"] == 0
    assert alice.value("SELECT count(*) FROM t") == 1
    assert alice.be("reader").sql("INSERT INTO t VALUES (1)", explain="analyze").status == 403


def test_each_of_queries_has_options_of_its_own(alice: Caller) -> None:
    answer = alice.post(
        {
            "queries": [
                {"query": "SELECT 1.50 AS n FROM generate_series(1, 3)", "max_rows": 2},
                {"query": "SELECT 1.50 AS n", "rows": "objects", "numeric": "string"},
                {"query": "SELECT '[1]'::jsonb AS j", "json": "value"},
                {"query": "SELECT 1", "explain": True},
            ],
            "rows": "arrays",
            "numeric": "number",
            "json": "string",
        }
    )

    cut, plain, value, explained = answer.body["results"]
    assert (cut["rows"], cut["truncated"]) == ([[1.5], [1.5]], True)
    assert plain["rows"] == [{"n": "1.50"}]
    assert value["rows"] == [[[1]]]
    assert explained["plan"][0]["Plan"]["Node Type"] == "Result"
    assert "plan" not in plain


def test_returning_yields_rows_and_the_number_changed(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql("INSERT INTO t VALUES (1), (2) RETURNING id")

    assert answer.rows == [{"id": 1}, {"id": 2}]
    assert (answer.body["command"], answer.body["row_count"]) == ("INSERT", 2)


def test_a_request_leaves_nothing_for_the_next_one(alice: Caller) -> None:
    alice.sql(
        "SET search_path = pg_catalog; SET TimeZone = 'Asia/Tokyo'; SET work_mem = '64MB';"
        "CREATE TEMP TABLE mine (id int); PREPARE mine AS SELECT 1; LISTEN mine;"
        "DECLARE mine CURSOR WITH HOLD FOR SELECT 1; SET my.secret = 'x'"
    )

    assert alice.value("SHOW search_path") == '"$user",public'
    assert alice.value("SHOW TimeZone") == "UTC"
    assert alice.value("SHOW work_mem") == "4MB"
    assert alice.value("SELECT current_setting('my.secret', true)") in {None, ""}
    assert alice.sql("SELECT * FROM mine").body["sqlstate"] == "42P01"
    assert alice.sql("EXECUTE mine").body["sqlstate"] == "26000"
    assert alice.sql("FETCH mine").body["sqlstate"] == "34000"
    assert alice.sql("SELECT * FROM pg_listening_channels()").rows == []
