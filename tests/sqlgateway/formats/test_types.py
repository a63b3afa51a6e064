"""Values: from PostgreSQL to JSON, without loss."""

import time
from typing import Any

import pytest

from tests.sqlgateway.support import Caller
from tests.sqlgateway.transfer.test_streams import stream

VALUES: list[tuple[str, Any]] = [
    ("NULL::int", None),
    ("true", True),
    ("false", False),
    ("32767::int2", 32767),
    ("(-2147483648)::int4", -2147483648),
    ("9007199254740991::int8", 9007199254740991),
    ("(-9007199254740991)::int8", -9007199254740991),
    ("9007199254740992::int8", "9007199254740992"),
    ("(-9223372036854775808)::int8", "-9223372036854775808"),
    ("0.1::float4", 0.1),
    ("1e300::float8", 1e300),
    ("0.1::float8 + 0.2::float8", 0.30000000000000004),
    ("'-0'::float8", -0.0),
    ("'NaN'::float8", "NaN"),
    ("'Infinity'::float8", "Infinity"),
    ("'-Infinity'::float4", "-Infinity"),
    ("1.10::numeric", "1.10"),
    ("123456789012345678901234567890.12::numeric", "123456789012345678901234567890.12"),
    ("'NaN'::numeric", "NaN"),
    ("'Infinity'::numeric", "Infinity"),
    ("'plain'::text", "plain"),
    ("''::text", ""),
    (
        "E'quote\" back\\\\ line\\n tab\\t bell\\x07 é 😀'",
        'quote" back\\ line\n tab\t bell\x07 é 😀',
    ),
    ("'ab'::char(4)", "ab  "),
    ("'\\xdeadBEEF'::bytea", "\\xdeadbeef"),
    ("''::bytea", "\\x"),
    ('\'{"b": [1, null], "a": 1e5}\'::json', {"b": [1, None], "a": 1e5}),
    ("'{\"b\": [1, null]}'::jsonb", {"b": [1, None]}),
    ("'null'::jsonb", None),
    ("E'{\\n\"é\\\\\\\\\": 1}'::json", {"é\\": 1}),
    ("'\"text\"'::jsonb", "text"),
    ("DATE '2024-02-29'", "2024-02-29"),
    ("DATE '4714-11-24 BC'", "4714-11-24 BC"),
    ("DATE 'infinity'", "infinity"),
    ("TIME '24:00'", "24:00:00"),
    ("TIMETZ '24:00+05:30'", "24:00:00+05:30"),
    ("TIMESTAMP '2024-02-29 12:34:56.789'", "2024-02-29T12:34:56.789"),
    ("TIMESTAMP '294276-12-31 23:59:59.999999'", "294276-12-31T23:59:59.999999"),
    ("TIMESTAMP '-infinity'", "-infinity"),
    ("TIMESTAMPTZ '2024-02-29 12:34:56+02'", "2024-02-29T10:34:56+00:00"),
    ("TIMESTAMPTZ '4714-11-24 00:00:00+00 BC'", "4714-11-24T00:00:00+00:00 BC"),
    ("TIMESTAMPTZ 'infinity'", "infinity"),
    ("INTERVAL '1 year 2 days -3 seconds'", "P1Y2DT-3S"),
    ("INTERVAL '0'", "PT0S"),
    ("'6f0a1c9e-1d0b-4f43-9d3f-0d3f9d3f9d3f'::uuid", "6f0a1c9e-1d0b-4f43-9d3f-0d3f9d3f9d3f"),
    ("'10.0.0.0/8'::cidr", "10.0.0.0/8"),
    ("12.50::money", "$12.50"),
    ("'(1,2)'::point", "(1,2)"),
    ("int4range(1, 5)", "[1,5)"),
    ("ROW(1, 'a b')", '(1,"a b")'),
    ("B'101'", "101"),
    ("1::oid", "1"),
    ("'a b'::tsvector", "'a' 'b'"),
    ("ARRAY[]::int[]", []),
    ("ARRAY[1, NULL, 3]", [1, None, 3]),
    ("ARRAY[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
    ("'[0:1]={7,8}'::int[]", [7, 8]),
    ("'[-1:0][2:3]={{1,2},{3,4}}'::int[]", [[1, 2], [3, 4]]),
    ("ARRAY[true, false, NULL]", [True, False, None]),
    ("ARRAY[9007199254740992, 1]", ["9007199254740992", 1]),
    ("ARRAY[1.50, NULL]", ["1.50", None]),
    ("ARRAY['NaN', '1']::float8[]", ["NaN", 1]),
    (
        "ARRAY['a,b', '{}', 'NULL', NULL, '', 'q\"', E'back\\\\', ' ', E'\\n', 'é']",
        ["a,b", "{}", "NULL", None, "", 'q"', "back\\", " ", "\n", "é"],
    ),
    ("ARRAY['{\"a\": [1]}', NULL]::jsonb[]", [{"a": [1]}, None]),
    ("ARRAY[TIMESTAMPTZ '2024-01-01 00:00+00']", ["2024-01-01T00:00:00+00:00"]),
    ("ARRAY['\\x00ff']::bytea[]", ["\\x00ff"]),
    ("ARRAY[['a', NULL], ['b c', '']]", [["a", None], ["b c", ""]]),
    ("ARRAY[repeat('a', 70000), repeat('é\"', 70000)]", ["a" * 70_000, 'é"' * 70_000]),
    ("ARRAY[E'\\x01', 'a']", ["\x01", "a"]),
    ("repeat(E'é\\x02', 70000)", "é\x02" * 70_000),
    ("ARRAY['1', 'null', '\"a\"']::json[]", [1, None, "a"]),
    ("ARRAY['(0,0),(1,1)', NULL]::box[]", ["(1,1),(0,0)", None]),
]


def test_values_survive_alone_and_beside_null(alice: Caller) -> None:
    columns = ", ".join(f"{text} AS c{number}" for number, (text, _) in enumerate(VALUES))

    (row,) = alice.sql(f"SELECT {columns}", rows="arrays").rows

    for (text, expected), given in zip(VALUES, row, strict=True):
        assert given == expected, text
        assert type(given) is type(expected) or isinstance(given, int), text


def test_values_survive_in_a_column_of_several(alice: Caller) -> None:
    """The quick way through a whole column and the careful one must agree."""
    for text, expected in VALUES:
        query = "SELECT CASE WHEN i = 2 THEN NULL ELSE ({}) END FROM generate_series(1, 3) i"
        if text.startswith("NULL"):
            continue
        answer = alice.sql(query.format(text), rows="arrays")
        assert answer.rows == [[expected], [None], [expected]], text


def test_a_column_mixes_common_and_rare_values(alice: Caller) -> None:
    rows = alice.sql(
        "SELECT * FROM (VALUES (TIMESTAMPTZ '2024-01-01 00:00+00', 1::int8, 1::float8),"
        "('infinity', 9007199254740993, 'NaN'), ('0044-03-15 00:00:00+00 BC', -1, '-Infinity'))"
        " AS v",
        rows="arrays",
    ).rows

    assert rows == [
        ["2024-01-01T00:00:00+00:00", 1, 1],
        ["infinity", "9007199254740993", "NaN"],
        ["0044-03-15T00:00:00+00:00 BC", -1, "-Infinity"],
    ]


def test_numeric_may_be_a_bare_number(alice: Caller) -> None:
    answer = alice.sql(
        "SELECT 1.10::numeric AS a, 'NaN'::numeric AS b, ARRAY[2.5, NULL] AS c", numeric="number"
    )

    assert answer.rows == [{"a": 1.1, "b": "NaN", "c": [2.5, None]}]


def test_json_may_be_its_text(alice: Caller) -> None:
    repeated = '{"b": 1.10,\n "b": 12345678901234567890123, "a": 1e400}'
    query = f"""
        SELECT '{repeated}'::json AS a, 'null'::jsonb AS b, NULL::jsonb AS c, '"x"'::jsonb AS d,
        ARRAY['{{"a": [1]}}', 'null', NULL]::jsonb[] AS e, true AS f
    """
    rows = [[repeated, "null", None, '"x"', ['{"a": [1]}', "null", None], True]]

    assert alice.sql(query, json="string", rows="arrays").rows == rows
    streamed = stream(alice, query, json="string", rows="arrays", format="ndjson")
    assert streamed.records[1] == rows[0]
    value = alice.sql("SELECT 'null'::jsonb AS a, '[1]'::json AS b", json="value")
    assert value.rows == [{"a": None, "b": [1]}]


def test_all_values_may_be_their_text(alice: Caller) -> None:
    shown = {
        "true": "true",
        "9007199254740991::int8": "9007199254740991",
        "'-0'::float8": "-0",
        "1e20::float8": "1e+20",
        "1.10::numeric": "1.10",
        "'[0:1]={a b,NULL}'::text[]": '[0:1]={"a b",NULL}',
        "ARRAY[true, NULL]": "{t,NULL}",
        '\'{"a": 1,\n  "a": 1.0}\'::json': '{"a": 1,\n  "a": 1.0}',
        "'null'::jsonb": "null",
        "TIMESTAMPTZ '2026-11-28 10:30+00'": "2026-11-28 10:30:00+00",
        "'empty'::int4range": "empty",
        "'ab'::char(4)": "ab  ",
        "'192.0.2.7'::inet": "192.0.2.7",
        "''": "",
        "NULL::bool": None,
        "NULL::jsonb": None,
    }
    query = f"SELECT {', '.join(shown)}"

    assert alice.sql(query, values="text", rows="arrays").rows == [[*shown.values()]]
    streamed = stream(alice, query, values="text", rows="arrays", format="ndjson")
    assert streamed.records[1] == [*shown.values()]
    plan = alice.sql(query, values="text", explain=True).body["plan"]
    assert plan[0]["Plan"]["Node Type"] == "Result"


def test_types_of_ones_own_are_named(alice: Caller) -> None:
    alice.sql("CREATE TYPE mood AS ENUM ('sad', 'so \"so\"'); CREATE DOMAIN small AS int")

    answer = alice.sql("SELECT 'sad'::mood AS m, ARRAY['so \"so\"', NULL]::mood[] AS ms, 1::small")

    assert [column["type"] for column in answer.body["columns"]] == ["mood", "mood[]", "int4"]
    assert answer.rows == [{"m": "sad", "ms": ['so "so"', None], "small": 1}]


def test_a_type_called_like_a_built_in_one_is_only_text(alice: Caller) -> None:
    alice.sql("""CREATE TYPE public.jsonb AS ENUM ('"},{"')""")

    answer = alice.sql("""SELECT '"},{"'::public.jsonb AS a""")

    assert answer.rows == [{"a": '"},{"'}]


def test_a_session_that_changes_how_values_are_written_cannot_break_the_answer(
    alice: Caller,
) -> None:
    for setting in (
        "SET client_encoding = 'LATIN1'",
        "SET client_encoding = 'SJIS'",
        "SET DateStyle = 'SQL'",
        "SET TimeZone = 'Asia/Kolkata'",
        "SET bytea_output = 'escape'",
        "SET IntervalStyle = 'postgres'",
        "SET extra_float_digits = -15",
    ):
        answer = alice.sql(
            f"{setting}; SELECT now() AS a, E'\\\\x5c22'::bytea AS b, interval '1 day' AS c,"
            '\'e"\\\'::text AS d, 0.1::float8 AS e, \'{"a":"\\\\"}\'::json AS f'
        )
        assert answer.status == 200, setting
        assert len(answer.rows) == 1, setting


@pytest.mark.parametrize(
    "text",
    [
        "SET client_encoding = 'LATIN1'; SELECT 'é' AS a",
        "SET client_encoding = 'LATIN1'; SELECT ARRAY['é']",
        "SET client_encoding = 'LATIN1'; SELECT '[\"é\"]'::json",
        "SET client_encoding = 'LATIN1'; SELECT repeat('é', 200000) FROM generate_series(1, 9)",
        "SELECT set_config('client_encoding', 'SJIS', false), 'あ' AS a",
        "DECLARE c BINARY CURSOR FOR SELECT 1, 'é'; FETCH c",
    ],
)
def test_values_that_are_not_utf8_text_are_refused_with_the_outcome(
    alice: Caller, text: str
) -> None:
    alice.sql("CREATE TABLE t (id int)")

    for before in ("", "BEGIN"):
        answer = alice.sql("; ".join([before, "INSERT INTO t VALUES (1)", text]))
        assert (answer.status, answer.code) == (400, "result_not_text"), answer.body
        kept = alice.value("WITH d AS (DELETE FROM t RETURNING 1) SELECT count(*) FROM d")
        assert answer.body["outcome"] == ("committed" if kept else "rolled_back")
        assert not (before and kept)
    assert "client_encoding" in answer.body["hint"]
    assert alice.value("SELECT 'é'") == "é"


def test_an_answer_in_a_foreign_encoding_is_rolled_back_inside_the_gateways_transaction(
    alice: Caller,
) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.post(
        {
            "queries": [
                {"query": "INSERT INTO t VALUES (1)"},
                {"query": "SET client_encoding = 'LATIN1'"},
                {"query": "SELECT chr(233)"},
            ]
        }
    )

    assert (answer.code, answer.body["outcome"]) == ("result_not_text", "rolled_back")
    assert alice.value("SELECT count(*) FROM t") == 0


def test_json_whose_bytes_only_look_like_utf8_is_returned_as_a_string(alice: Caller) -> None:
    # In Shift JIS the text is two characters, the second of which ends with a backslash's byte.
    text = bytes([0xE3, 0x81, 0x83, 0x5C]).decode("shift_jis")

    for kind in ("json", "json[]"):
        value = f'["{text}"]' if kind == "json" else f'{{"[\\"{text}\\"]"}}'
        answer = alice.sql(f"SET client_encoding = 'SJIS'; SELECT '{value}'::{kind} AS a")
        assert answer.status == 200


def test_an_array_whose_quotes_do_not_close_is_read_in_one_pass(alice: Caller) -> None:
    # In Shift JIS the last character ends with a backslash's byte, just before the last quote.
    text = bytes([0x83, 0x5C]).decode("shift_jis")
    started = time.monotonic()

    answer = alice.sql(
        f"SET client_encoding = 'SJIS'; SELECT ARRAY[repeat('\"', 100000) || '{text}']"
    )

    assert answer.code == "result_not_text"
    # It took minutes, in which the process answered no request.
    assert time.monotonic() - started < 5


def test_times_in_another_style_are_the_servers_text(alice: Caller) -> None:
    for style, shown in (
        ("SQL, DMY", "22/11/2026 10:00:00"),
        ("Postgres", "Sun Nov 22 10:00:00 2026"),
        ("German", "22.11.2026 10:00:00"),
        ("ISO, DMY", "2026-11-22T10:00:00"),
    ):
        answer = alice.sql(
            f"SET DateStyle = '{style}'; SELECT TIMESTAMP '2026-11-22 10:00' AS a,"
            " ARRAY[TIMESTAMP '2026-11-22 10:00'] AS b, TIMESTAMPTZ '2026-11-22 10:00+00' AS c"
        )
        assert answer.rows[0]["a"] == shown
        assert answer.rows[0]["b"] == [shown]
        assert answer.rows[0]["c"].startswith(shown[:10])


def test_a_local_offset_has_hours_and_minutes(alice: Caller) -> None:
    answer = alice.sql(
        "SET TimeZone = 'Asia/Kolkata';"
        "SELECT TIMESTAMPTZ '2024-01-01 00:00+00' AS a, TIMESTAMPTZ '1800-01-01 00:00+00' AS b"
    )

    assert answer.rows == [{"a": "2024-01-01T05:30:00+05:30", "b": "1800-01-01T05:53:28+05:53:28"}]


@pytest.mark.parametrize(
    ("value", "cast"),
    [
        ("2024-02-29T10:34:56.5+00:00", "timestamptz"),
        ("4714-11-24T00:00:00+00:00 BC", "timestamptz"),
        ("294276-12-31T23:59:59.999999", "timestamp"),
        ("infinity", "timestamptz"),
        ("24:00:00", "time"),
        ("P1Y2DT-3S", "interval"),
        ("\\xdeadbeef", "bytea"),
        ("9223372036854775807", "int8"),
        ("123456789012345678901234567890.10", "numeric"),
        ("NaN", "float8"),
    ],
)
def test_what_was_given_can_be_sent_back(alice: Caller, value: str, cast: str) -> None:
    assert alice.value(f"SELECT $1::{cast}", [value]) == value
