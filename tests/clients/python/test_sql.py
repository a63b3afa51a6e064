"""SQL through the Python client."""

import tracemalloc
from array import array
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

import zonal
from tests.clients.front import Front
from zonal.records import Records


def test_a_query_returns_rows_and_takes_values_of_python(client: zonal.Client) -> None:
    moment = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
    values = [41, Decimal("1.10"), moment, UUID(int=1), b"\x00\xff", [1, 2], {"a": None}]
    answer = client.sql.query(
        "SELECT $1::int + 1 AS n, $2::numeric, $3::timestamptz AS at, $4::uuid, $5::bytea, "
        "$6::int[] AS list, $7::jsonb",
        values,
    )
    assert answer.rows == [
        {
            "n": 42,
            "numeric": "1.10",
            "at": "2026-11-23T08:00:00+00:00",
            "uuid": str(UUID(int=1)),
            "bytea": "\\x00ff",
            "list": [1, 2],
            "jsonb": '{"a": null}',
        }
    ]
    assert [column.type for column in answer.columns][:2] == ["int4", "numeric"]
    assert (answer.row_count, answer.command, answer.truncated) == (1, "SELECT", False)


def test_statements_of_a_batch_are_one_transaction(client: zonal.Client) -> None:
    answer = client.sql.batch(["CREATE TABLE batched (id int)", ("SELECT $1::int AS n", [7])])
    assert answer.results is not None
    assert [result.command for result in answer.results] == ["CREATE TABLE", "SELECT"]
    with pytest.raises(zonal.SqlError):
        client.sql.batch(["INSERT INTO batched VALUES (1)", "SELECT 1/0"])
    assert client.sql.query("SELECT count(*) FROM batched", rows="arrays").rows == [[0]]


def test_an_error_of_postgresql_says_where_and_what(client: zonal.Client) -> None:
    with pytest.raises(zonal.SqlError) as caught:
        client.sql.query("SELECT 1,\n  nothing FROM missing")
    error = caught.value
    assert (error.status, error.code, error.sqlstate) == (400, "sql_error", "42P01")
    assert (error.line, error.column) == (2, 16)
    assert error.request_id in str(error)
    assert not error.is_retryable


def test_a_stream_has_all_rows_in_constant_memory(client: zonal.Client) -> None:
    query = "SELECT n, repeat('x', 200) AS text FROM generate_series(1, $1::int) n"
    count = 0
    tracemalloc.start()
    try:
        with client.sql.stream(query, [40_000]) as rows:
            assert [column.name for column in rows.columns] == ["n", "text"]
            for row in rows:
                count += 1
                assert row["n"] == count
            peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The rows are 9 MB of text. The platform is in this process, with what it holds.
    assert peak < 6_000_000
    assert count == 40_000
    assert rows.end is not None
    assert (rows.end.row_count, rows.end.command) == (40_000, "SELECT")


def test_rows_that_look_like_other_records_are_rows(client: zonal.Client) -> None:
    query = 'SELECT 1 AS error, 2 AS "end", 3 AS "end", E\'a\\u2028b\\x0bc\' AS line'
    with client.sql.stream(query) as rows:
        assert list(rows) == [{"error": 1, "end": 2, "end_2": 3, "line": "a\u2028b\x0bc"}]
    with client.sql.stream(query) as rows:
        assert list(rows.arrays()) == [[1, 2, 3, "a\u2028b\x0bc"]]


def test_an_error_within_a_stream_is_raised_after_its_rows(client: zonal.Client) -> None:
    late = "SELECT repeat('x', 1000), 1 / (3000 - n) FROM generate_series(1, 3000) n"
    seen: list[int] = []
    with client.sql.stream(late) as rows, pytest.raises(zonal.SqlError) as caught:
        seen.extend(1 for _row in rows)
    assert caught.value.sqlstate == "22012"
    assert 0 < len(seen) < 3000
    with pytest.raises(zonal.SqlError), client.sql.stream("SELECT 1/0"):
        pass


def test_a_stream_that_was_cut_is_not_taken_for_complete(
    client: zonal.Client, front: Front
) -> None:
    front.cut(after_bytes=20_000)
    query = "SELECT repeat('x', 100) FROM generate_series(1, 5000)"
    with client.sql.stream(query) as rows, pytest.raises(zonal.StreamCutError):
        list(rows)
    assert rows.end is None


def test_a_line_may_come_in_any_pieces() -> None:
    body = b'[1]\n{"a": "\xc3\xa9"}\n\n[2]\n'
    records = Records()
    found = [record for at in range(len(body)) for record in records.add(body[at : at + 1])]
    assert found == [b"[1]", b'{"a": "\xc3\xa9"}', b"[2]"]
    assert list(Records().add(body)) == found


def test_a_transaction_is_committed_or_rolled_back(client: zonal.Client) -> None:
    client.sql.query("CREATE TABLE committed_items (id int)")
    with client.sql.transaction(isolation="serializable") as transaction:
        transaction.query("INSERT INTO committed_items VALUES ($1)", [1])
        assert transaction.query("SELECT count(*) AS n FROM committed_items").rows == [{"n": 1}]
        assert client.sql.query("SELECT count(*) AS n FROM committed_items").rows == [{"n": 0}]

    def fail() -> None:
        with client.sql.transaction() as undone:
            undone.query("INSERT INTO committed_items VALUES (2)")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert client.sql.query("SELECT id FROM committed_items").rows == [{"id": 1}]


def test_a_statement_whose_answer_was_lost_runs_once(client: zonal.Client, front: Front) -> None:
    client.sql.query("CREATE TABLE numbered_items (id int)")
    with client.sql.transaction() as transaction:
        front.lose()
        transaction.query("INSERT INTO numbered_items VALUES (1)")
        transaction.query("SAVEPOINT before")
        with pytest.raises(zonal.SqlError):
            transaction.query("SELECT 1/0")
        transaction.query("ROLLBACK TO before")
        front.refuse(400, "invalid_request")
        with pytest.raises(zonal.ProblemError):
            transaction.query("INSERT INTO numbered_items VALUES (2)")
        transaction.query("INSERT INTO numbered_items VALUES (3)")
        front.lose()
    assert client.sql.query("SELECT id FROM numbered_items", rows="arrays").rows == [[1], [3]]


def test_a_running_query_is_cancelled_by_its_id(client: zonal.Client) -> None:
    with pytest.raises(zonal.NotFoundError) as caught:
        client.sql.cancel("report/2026")
    assert caught.value.status == 404
    with pytest.raises(zonal.NotFoundError, match="request_not_running"):
        client.sql.cancel("report-2026")


def test_the_schema_and_the_limits_are_typed(client: zonal.Client) -> None:
    client.sql.query("CREATE TABLE shown (id int PRIMARY KEY, name text)")
    (table,) = [each for each in client.sql.schema("public").tables if each.name == "shown"]
    assert [column.name for column in table.columns or []] == ["id", "name"]
    assert client.sql.usage().disk.limit_bytes > 0


class Color(Enum):
    RED = 1


WITHOUT_ZONE = datetime(2026, 1, 1, 1, 0, 0, 1)  # noqa: DTZ001 - what is tested
SELF: list[object] = []
SELF.append(SELF)
DEEP = "[" * 3_000 + "]" * 3_000
# Alone, in lists and in dicts. (A datetime with a zone of no offset; one before the year 1 in UTC.)
REFUSED = [
    object(),
    {1},
    frozenset("a"),
    timedelta(1),
    Color.RED,
    1j,
    iter([]),
    range(3),
    array("i"),
    float("nan"),
    float("inf"),
    -float("inf"),
    "\ud83d",
    "\ud83d\udd25",
    {1: 2},
    {None: 1},
    {"\ud83d": 1},
    {b"a": 1},
    SELF,
    time(1, tzinfo=ZoneInfo("Europe/Berlin")),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
]
REFUSED_INSIDE = [2**63, -(2**63) - 1]
REFUSED_IN_DICTS = [b"a", bytearray(b"a"), memoryview(b"a"), Decimal("1.10"), Decimal("NaN")]


def test_what_sql_and_json_do_not_have_is_refused_before_it_is_sent(
    client: zonal.Client, front: Front
) -> None:
    for params in ("abc", b"abc", {"a": 1}, {1}, memoryview(b"ab"), iter([1]), 1):
        with pytest.raises(TypeError, match="list of values"):
            client.sql.query("SELECT $1", params)  # type: ignore[arg-type]  # what is tested
    values = [
        *REFUSED,
        *[[1, each] for each in REFUSED + REFUSED_INSIDE],
        *[{"a": each} for each in REFUSED + REFUSED_INSIDE + REFUSED_IN_DICTS],
        10**5000,
    ]
    for value in values:
        for send in (client.sql.query, lambda *given: client.sql.stream(*given).__enter__()):
            with pytest.raises((TypeError, ValueError), match=r"^Parameter \$2\b"):
                send("SELECT $1, $2", [1, value])
    with pytest.raises(
        TypeError, match=r"^Statement 2, parameter \$1\.a\[0\]: a set cannot be sent"
    ):
        client.sql.batch(["SELECT 1", ("SELECT $1", [{"a": [set()]}])])
    with pytest.raises(TypeError, match="a set cannot be sent"):
        client.request("POST", "/v1/members", body={"a": {1}})
    with pytest.raises(ValueError, match="surrogate"):
        client.sql.query("SELECT '\ud83d'")
    assert front.seen == []
    with client.sql.transaction() as transaction:
        with pytest.raises(ValueError, match="surrogate"):
            transaction.query("SELECT '\ud83d'")
        assert transaction.query("SELECT 1 AS n").rows == [{"n": 1}]


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("int8", 2**63 - 1, "9223372036854775807"),
        ("numeric", 2**70, "1180591620717411303424"),
        ("jsonb", -(2**70), "-1180591620717411303424"),
        ("int8[]", [-(2**63), None, 1], "{-9223372036854775808,NULL,1}"),
        ("jsonb", {"n": [2**62]}, '{"n": [4611686018427387904]}'),
        ("float8", -0.0, "-0"),
        ("float8", 1e300, "1e+300"),
        ("numeric", Decimal("1E+3"), "1000"),
        ("numeric", Decimal("NaN"), "NaN"),
        ("numeric[]", [Decimal("1.10")], "{1.10}"),
        ("bytea[]", [b"\0\xff", bytearray(b"a"), memoryview(b"abc")[::2]], None),
        ("timestamptz", datetime(2026, 1, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")), None),
        ("timestamp", datetime(2026, 1, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")), None),
        ("timestamp", WITHOUT_ZONE, "2026-01-01 01:00:00.000001"),
        ("date", date(1, 2, 3), "0001-02-03"),
        ("timetz", time(1, 2, tzinfo=timezone(timedelta(hours=2))), "01:02:00+02"),
        ("jsonb", {"at": date(2026, 1, 1), "id": UUID(int=1)}, None),
        ("text", "🔥", "🔥"),
        ("int4", IntEnum("One", "FIRST").FIRST, "1"),  # type: ignore[attr-defined]  # made here
    ],
)
def test_values_are_stored_as_they_are(
    client: zonal.Client, type_: str, value: object, text: str | None
) -> None:
    expected = (
        text
        or {
            "bytea[]": '{"\\\\x00ff","\\\\x61","\\\\x6163"}',
            "timestamptz": "2026-01-01 00:00:00+00",
            # The zone is not lost: PostgreSQL drops it from the text of a timestamp.
            "timestamp": "2026-01-01 00:00:00",
            "jsonb": '{"at": "2026-01-01", "id": "00000000-0000-0000-0000-000000000001"}',
        }[type_]
    )
    assert client.sql.query(f"SELECT $1::{type_}::text AS v", [value]).rows == [{"v": expected}]


def test_json_is_its_text_unless_it_is_to_be_parsed(client: zonal.Client) -> None:
    text = '{"b": 1.10, "a": 2, "a": 9007199254740993, "c": 1e400}'
    query = f"SELECT '{text}'::json AS v, 'null'::jsonb AS n, NULL::jsonb AS w"
    row = {"v": text, "n": "null", "w": None}
    assert client.sql.query(query).rows == [row]
    _first, result = client.sql.batch(["SELECT 1", query]).results or []
    assert result.rows == [row]
    with client.sql.stream(query) as rows:
        assert list(rows) == [row]
    with client.sql.transaction() as transaction:
        assert transaction.query(query).rows == [row]
        parsed = transaction.query("SELECT '[1.10]'::jsonb AS v", json="parsed").rows
        assert parsed == [{"v": [Decimal("1.10")]}]
    assert client.sql.batch(["SELECT '[]'::jsonb AS v"], json="parsed").rows == [{"v": []}]
    for wrong in ("value", None):
        with pytest.raises(ValueError, match="parsed"):
            client.sql.query("SELECT 1", json=wrong)  # type: ignore[arg-type]  # what is tested


def test_numbers_of_json_and_numeric_are_never_floats(client: zonal.Client) -> None:
    texts = ["9007199254740993", "12345678901234567890123", "1e400", "0.12345678901234567890"]
    texts += ["1.10", "1e2", "-0.0", "1e-7"]
    query = (
        f"SELECT '[{','.join(texts)}]'::json AS v, 1.10 AS n, 2::numeric AS i, 0.5::float8 AS f, "
        "ARRAY[0.5, NULL]::float4[] AS a, 'NaN'::float8 AS x"
    )
    with client.sql.stream(query, json="parsed", numeric="number") as rows:
        (streamed,) = rows
    answer = client.sql.query(query, json="parsed", numeric="number")
    assert isinstance(answer.stats.elapsed_ms, float)
    for row in (answer.rows[0], streamed):
        assert [str(each) for each in row["v"]] == [str(Decimal(text)) for text in texts]
        assert [type(each) for each in row["v"]] == [int, int, *[Decimal] * 6]
        assert [str(row["n"]), row["i"], type(row["i"])] == ["1.10", 2, int]
        assert (row["f"], row["a"], row["x"]) == (0.5, [0.5, None], "NaN")
        assert [type(row["f"]), type(row["a"][0])] == [float, float]
    with client.sql.stream(query, json="parsed") as rows:
        ((json, *_others),) = rows.texts()
        assert json == f"[{','.join(texts)}]"
    order = client.sql.query("""SELECT '{"b": 1, "a": 2}'::json AS v""", json="parsed").rows[0]["v"]
    assert list(order.items()) == [("b", 1), ("a", 2)]
    floats = "SELECT 5e-324::float8 AS a, 0.1::float4 AS b, 1e15::float8 AS c"
    assert client.sql.query(floats, rows="arrays").rows == [[5e-324, 0.1, 1e15]]


@pytest.mark.parametrize(
    "value", ["1" + "0" * 5000, '{"a": [{"x": 1, "\\u0078": 2}]}', DEEP, "1e9999999999999999999"]
)
def test_an_answer_that_python_cannot_hold_was_carried_out(
    client: zonal.Client, front: Front, value: str
) -> None:
    client.sql.query("CREATE TABLE IF NOT EXISTS held (v json); TRUNCATE held")
    query = "INSERT INTO held VALUES ($1) RETURNING v"
    front.seen.clear()
    with pytest.raises(zonal.UnreadableAnswerError, match="was carried out: do not repeat it"):
        client.sql.query(query, [value], json="parsed")
    assert front.seen == [("POST", "/v1/sql")]
    assert client.sql.query("SELECT v FROM held").rows == [{"v": value}]
    with (
        pytest.raises(zonal.UnreadableAnswerError, match="unknown"),
        client.sql.stream(query, [value], json="parsed") as rows,
    ):
        list(rows)
    with client.sql.stream("SELECT v, '[\"]' AS x FROM held LIMIT 1", json="parsed") as rows:
        assert list(rows.texts()) == [[value, '"[\\"]"']]


def test_a_stream_of_something_else_is_said_to_be_one(client: zonal.Client, front: Front) -> None:
    front.answer(200, b"<html>\n")
    with pytest.raises(zonal.UnexpectedAnswerError), client.sql.stream("SELECT 1"):
        pass
    front.answer(200, b"no gzip", Content_Encoding="gzip")
    with pytest.raises(zonal.UnexpectedAnswerError):
        client.sql.query("SELECT 1")


def test_a_file_is_imported_whole_or_not_at_all(
    client: zonal.Client, front: Front, tmp_path: Path
) -> None:
    client.sql.query('CREATE TABLE imported (id int PRIMARY KEY, "a ""b"" c" text)')
    done = client.sql.import_csv("imported", b"1,x\n2,\n", columns=["id", 'a "b" c'], header=False)
    assert (done.row_count, done.command) == (2, "COPY")
    file = tmp_path / "rows.csv"
    file.write_text('id,"a ""b"" c"\n3,y\n')
    # Nothing of it ran: the whole file is sent again.
    front.refuse(503, "busy", Retry_After="0")
    sent: list[int] = []
    assert client.sql.import_csv("imported", file, on_sent=sent.append).row_count == 1
    assert sent == [file.stat().st_size] * 2
    with pytest.raises(zonal.SqlError) as refused:
        client.sql.import_csv("imported", b"4\tz\n3\tz\n", header=False, delimiter="\t")
    assert refused.value.sqlstate == "23505"
    # The answer was lost: what happened is unknown, so that it is not sent again.
    front.lose()
    with pytest.raises(zonal.ConnectionFailedError):
        client.sql.import_csv("imported", b"5,v\n", header=False)
    ids = client.sql.query("SELECT id FROM imported ORDER BY id", rows="arrays").rows
    assert ids == [[1], [2], [3], [5]]
    with pytest.raises(ValueError, match="no regular file"):
        client.sql.import_csv("imported", tmp_path)
    client.sql.query("DROP TABLE imported")
