"""Parameters: from JSON to PostgreSQL, and never as a part of the text."""

from typing import Any

import pytest

from tests.sqlgateway.support import Caller


@pytest.mark.parametrize(
    ("cast", "value", "expected"),
    [
        ("int", 42, 42),
        ("int", None, None),
        ("int", "42", 42),
        ("bool", True, True),
        ("float8", 1.5, 1.5),
        ("float8", 1e300, 1e300),
        ("numeric", 0.1, "0.1"),
        ("int8", 2**63 - 1, str(2**63 - 1)),
        ("text", "it's; DROP TABLE t --", "it's; DROP TABLE t --"),
        ("text", 'é😀\n\\"', 'é😀\n\\"'),
        ("text", "", ""),
        ("jsonb", {"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
        ("int[]", [1, None, 3], [1, None, 3]),
        ("int[]", [], []),
        ("int[]", [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        ("text[]", ["a,b", "{}", "NULL", None, "", 'q"', "b\\", "é"], None),
        ("bool[]", [True, False], [True, False]),
        ("jsonb[]", [{"a": '"'}, None], [{"a": '"'}, None]),
        ("float8[]", [1.5, 2], [1.5, 2]),
        ("jsonb", [1, [2, {"a": None}], "x"], [1, [2, {"a": None}], "x"]),
        ("json", [], []),
        ("text", [1, "a"], '[1,"a"]'),
        ("int", 1.0, 1),
        ("int8", -2.0, -2),
        ("float8", 1.0, 1),
        ("numeric", 1.0, "1.0"),
        ("int[]", [1.0, None], [1, None]),
    ],
)
def test_a_parameter_is_returned_unchanged(
    alice: Caller, cast: str, value: Any, expected: Any
) -> None:
    given = alice.value(f"SELECT $1::{cast}", [value])

    assert given == (value if expected is None else expected)


def test_the_type_is_inferred(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int8, at timestamptz, tags text[])")

    answer = alice.sql(
        "INSERT INTO t VALUES ($1, $2, $3) RETURNING *", [1, "2024-01-01T00:00:00Z", ["a"]]
    )

    assert answer.rows == [{"id": 1, "at": "2024-01-01T00:00:00+00:00", "tags": ["a"]}]


def test_own_types_decide_how_an_array_is_sent(alice: Caller) -> None:
    alice.sql(
        "CREATE DOMAIN document AS jsonb; CREATE DOMAIN whole AS int;"
        " CREATE DOMAIN tags AS text[]; CREATE TYPE mood AS ENUM ('sad', 'happy');"
        " CREATE TABLE t (document document, whole whole, tags tags, moods mood[])"
    )

    answer = alice.sql(
        "INSERT INTO t VALUES ($1, $2, $3, $4) RETURNING document, whole, tags::text, moods::text",
        [["a"], 2.0, ["b"], ["sad"]],
        rows="arrays",
    )

    assert answer.rows == [[["a"], 2, "{b}", "{sad}"]]


def test_a_statement_with_an_array_fails_where_it_would_without(alice: Caller) -> None:
    refused = alice.sql("SELECT nonesuch, $1::int[]", [[1]])
    assert (refused.body["sqlstate"], refused.body["position"]) == ("42703", 8)
    second = alice.sql("SELECT $1::int[]; SELECT 1", [[1]])
    assert second.body["sqlstate"] == "42601"
    unfit = alice.sql("SELECT $1::int", [1.5])
    assert unfit.body["sqlstate"] == "22P02"
    batch = alice.post(
        {
            "queries": [
                {"query": "SELECT 1"},
                {"query": "SELECT nonesuch, $1::int[]", "params": [[1]]},
            ]
        }
    )
    assert (batch.body["sqlstate"], batch.body["statement"]) == ("42703", 2)


def test_json_deeper_than_can_be_written_is_refused(alice: Caller) -> None:
    deep: Any = {}
    for _ in range(900):
        deep = {"a": deep}

    for value in (deep, [deep]):
        answer = alice.sql("SELECT $1::jsonb", [value])
        assert (answer.status, answer.body["errors"][0]["code"]) == (400, "too_deep")


@pytest.mark.parametrize("params", [[], [1]])
def test_a_second_statement_is_refused_with_params(alice: Caller, params: list[int]) -> None:
    alice.sql("CREATE TABLE t (id int)")
    first = "SELECT $1::int" if params else "SELECT 1"

    answer = alice.sql(f"{first}; DROP TABLE t", params)

    assert (answer.status, answer.body["sqlstate"]) == (400, "42601")
    assert alice.value("SELECT count(*) FROM t") == 0


def test_a_second_statement_is_refused_in_queries(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.post({"queries": [{"query": "SELECT 1; DROP TABLE t"}]})

    assert (answer.status, answer.body["sqlstate"]) == (400, "42601")
    assert alice.value("SELECT count(*) FROM t") == 0


def test_too_few_and_too_many_are_refused(alice: Caller) -> None:
    assert alice.sql("SELECT $1::int", []).body["sqlstate"] == "08P01"
    assert alice.sql("SELECT $1::int", [1, 2]).body["sqlstate"] == "08P01"
    assert alice.sql("SELECT $1::int").body["sqlstate"] == "42P02"
    many = alice.sql("SELECT 1", [1] * 65_536)
    assert (many.status, many.body["errors"][0]["field"]) == (400, "params")


def test_a_nul_is_refused_and_not_cut_off_at(alice: Caller) -> None:
    for body in (
        {"query": "SELECT 1 \0; this is lost"},
        {"query": "SELECT $1::text", "params": ["a\0b"]},
        {"query": "SELECT $1::text[]", "params": [["a\0b"]]},
        {"queries": [{"query": "SELECT $1::text", "params": ["a\0b"]}]},
    ):
        answer = alice.post(body)
        assert (answer.status, answer.body["errors"][0]["code"]) == (400, "nul"), body


def test_arrays_deeper_than_postgresql_takes_are_refused(alice: Caller) -> None:
    deep: Any = 1
    for _ in range(7):
        deep = [deep]

    answer = alice.sql("SELECT $1::int[]", [deep])

    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "params.0")
