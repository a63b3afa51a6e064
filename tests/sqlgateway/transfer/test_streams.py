"""Results as NDJSON and CSV: whole, in constant memory, and never silently incomplete."""

import csv
import io
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections
from django.http import StreamingHttpResponse
from django.test import RequestFactory

from sqlgateway.errors import ResultNotText
from sqlgateway.formats import arrow_batches
from sqlgateway.formats.arrow_batches import ArrowWriter
from sqlgateway.formats.csv_lines import CsvWriter
from sqlgateway.formats.ndjson import NdjsonWriter
from sqlgateway.formats.results import RowFormat
from sqlgateway.formats.row_writer import RowWriter
from sqlgateway.pg import pool
from sqlgateway.run import gateway
from sqlgateway.transfer import minimum_rate
from sqlgateway.transfer.exports import RowStream, StreamCut
from tests.scrape import growth
from tests.sqlgateway.support import VIEW, Caller, backends_of, principal
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

NDJSON = "application/x-ndjson"
CSV = "text/csv"
# Long enough for more than one piece.
MANY = 20_000


@dataclass
class Stream:
    """A streamed answer; ``pieces`` are read as the test asks for them."""

    response: Any

    @property
    def pieces(self) -> Iterator[bytes]:
        """The body, piece by piece."""
        assert isinstance(self.response, StreamingHttpResponse), self.response.content
        found: Iterator[bytes] = iter(self.response)
        return found

    @property
    def text(self) -> str:
        """All of the body."""
        return b"".join(self.pieces).decode()

    @property
    def records(self) -> list[Any]:
        """All records of NDJSON."""
        return [json.loads(line) for line in self.text.splitlines()]

    def close(self) -> None:
        """Close the body as a web server does, but keep the test's own database connection."""
        request_finished.disconnect(close_old_connections)
        try:
            self.response.close()
        finally:
            request_finished.connect(close_old_connections)

    @property
    def problem(self) -> Any:
        """The problem document of an answer that is no stream."""
        assert self.response["Content-Type"] == "application/problem+json"
        return json.loads(self.response.content)


def stream(
    someone: Caller, query: str, accept: str = NDJSON, *, environ: Any = None, **options: Any
) -> Stream:
    """POST a statement whose rows are to be streamed."""
    body = json.dumps({"query": query, **options} if query else options)
    request: Any = RequestFactory().post(
        "/v1/sql", body, content_type="application/json", HTTP_ACCEPT=accept, **(environ or {})
    )
    request.principal = principal(someone.scope, someone.role)
    request.principal_error = None
    request.request_id = "request-of-a-test"
    response = VIEW(request)
    if hasattr(response, "render"):
        response.render()
    return Stream(response)


def test_a_stream_is_counted_when_it_ends(alice: Caller) -> None:
    with growth() as seen:
        text = stream(alice, "SELECT i FROM generate_series(1, 7) AS i", CSV).text

    assert seen.of("zonal_sql_rows_total") == 7
    assert seen.of("zonal_sql_bytes_total") == len(text)
    assert seen.of("zonal_sql_requests_total", outcome="success") == 1


def test_ndjson_has_columns_rows_and_an_end(alice: Caller) -> None:
    found = stream(alice, "SELECT i AS n, i::text AS n FROM generate_series(1, 2) AS i")

    assert found.response["Content-Type"] == NDJSON
    assert found.response["Cache-Control"] == "no-store"
    first, *rows, last = found.records
    assert first["columns"][1] == {"name": "n", "type": "text", "oid": 25, "key": "n_2"}
    assert rows == [{"n": 1, "n_2": "1"}, {"n": 2, "n_2": "2"}]
    assert last["end"].pop("stats")["bytes"] > 0
    assert last == {
        "end": {
            "row_count": 2,
            "command": "SELECT",
            "notices": [],
            "request_id": "request-of-a-test",
        }
    }


def test_a_stream_is_not_cut(alice: Caller) -> None:
    query = "SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) AS i"

    _, *rows, last = stream(alice, query, rows="arrays").records
    assert [row[0] for row in rows] == [*range(1, MANY + 1)]
    assert last["end"]["row_count"] == MANY
    lines = list(csv.reader(io.StringIO(stream(alice, query, CSV).text)))
    assert len(lines) == MANY + 1


def test_types_of_the_tenants_own_are_named_in_the_first_record(alice: Caller) -> None:
    alice.sql("CREATE TYPE mood AS ENUM ('good')")

    first, row, _ = stream(alice, "SELECT 'good'::mood AS m").records
    assert (first["columns"][0]["type"], row) == ("mood", {"m": "good"})


@pytest.mark.parametrize("accept", [NDJSON, CSV])
def test_an_error_before_the_first_byte_is_a_problem_document(alice: Caller, accept: str) -> None:
    unknown = stream(alice, "SELECT\n nonesuch", accept)
    assert (unknown.response.status_code, unknown.problem["sqlstate"]) == (400, "42703")
    assert (unknown.problem["line"], unknown.problem["column"]) == (2, 2)
    late = stream(alice, "SELECT 10 / (3 - i) FROM generate_series(1, 5) AS i", accept)
    assert (late.response.status_code, late.problem["sqlstate"]) == (400, "22012")


def test_an_error_after_the_first_byte_is_the_last_record(alice: Caller) -> None:
    query = "SELECT 1 / (20000 - i), repeat('x', 99) FROM generate_series(1, 20000) AS i"

    found = stream(alice, query)
    *_, last = found.records
    assert found.response.status_code == 200
    assert last["error"]["sqlstate"] == "22012"
    assert last["error"]["request_id"] == "request-of-a-test"
    with pytest.raises(StreamCut):
        _ = stream(alice, query, CSV).text


def test_csv_is_the_same_from_copy_and_from_rows(alice: Caller) -> None:
    query = (
        "SELECT 1 AS \"a,b\", NULL AS n, '' AS e, 'x\"y' || chr(10) || 'z' AS q,"
        " true AS t, '\\x00ff'::bytea AS b, '2026-01-02 03:04:05+00'::timestamptz AS d"
    )
    copied = stream(alice, f"{query}; -- the end;\n", CSV)
    assert copied.response["Content-Type"] == "text/csv; charset=utf-8"
    text = copied.text
    assert text == ('"a,b",n,e,q,t,b,d\n1,,"","x""y\nz",t,\\x00ff,2026-01-02 03:04:05+00\n')
    assert stream(alice, f"{query} WHERE $1::int = 1", CSV, params=[1]).text == text
    single = stream(alice, "VALUES ('\\.'), (NULL), ('')", CSV)
    with_params = stream(alice, "VALUES ('\\.'), (NULL), ('') LIMIT $1", CSV, params=[3])
    assert single.text == with_params.text == 'column1\n"\\."\n\n""\n'


def test_arrow_has_typed_columns(alice: Caller) -> None:
    arrow = pytest.importorskip("pyarrow")
    query = (
        "SELECT i::int8 AS a, true AS b, 'é' AS c, '\\x00ff'::bytea AS d, 1.5::float8 AS e,"
        " '2026-01-02'::date AS f, '2026-01-02 03:04:05.6+00'::timestamptz AS g, 1.10::numeric"
        " AS h, NULL::int4 AS i, ARRAY[1, 2] AS j FROM generate_series(1, 20000) AS i"
    )
    body = b"".join(stream(alice, query, format="arrow").pieces)
    table = arrow.ipc.open_stream(body).read_all()
    assert [str(kind) for kind in table.schema.types] == [
        "int64",
        "bool",
        "string",
        "binary",
        "double",
        "date32[day]",
        "timestamp[us, tz=UTC]",
        "string",
        "int32",
        "string",
    ]
    last = table.slice(MANY - 1).to_pylist()[0]
    assert (last["a"], last["b"], last["c"], last["d"]) == (MANY, True, "é", b"\x00\xff")
    assert (last["g"].microsecond, last["h"], last["i"], last["j"]) == (
        600000,
        "1.10",
        None,
        "{1,2}",
    )
    refused = stream(alice, "SELECT 'infinity'::date AS d", format="arrow").problem
    assert refused["errors"][0]["field"] == "format"
    assert alice.value("SELECT 1") == 1


@pytest.mark.parametrize("form", ["ndjson", "csv", "arrow"])
def test_values_that_are_not_utf8_end_every_stream_with_an_error(alice: Caller, form: str) -> None:
    if form == "arrow":
        pytest.importorskip("pyarrow")
    query = (
        "SELECT 'é' AS a, repeat('x', 99), CASE WHEN i = $1::int THEN"
        " set_config('client_encoding', 'LATIN1', false) END FROM generate_series(1, $1::int) AS i"
    )
    # The parameter keeps it from being a COPY, whose encoding is the gateway's.
    early = stream(alice, query, format=form, params=[1])
    assert early.response.status_code == 400
    assert early.problem["code"] == "result_not_text"
    assert early.problem["outcome"] in {"committed", "rolled_back"}

    late = stream(alice, query, format=form, params=[MANY])
    if form == "ndjson":
        *_, last = late.records
        assert last["error"]["code"] == "result_not_text"
        assert last["error"]["outcome"] in {"committed", "rolled_back"}
    else:
        with pytest.raises(StreamCut):
            b"".join(late.pieces)
    assert alice.value("SELECT 'é'") == "é"


def test_bytes_of_another_form_are_not_read_as_hexadecimal(alice: Caller) -> None:
    pytest.importorskip("pyarrow")
    query = "SELECT set_config('bytea_output', 'escape', false), 'ab12'::bytea AS b"

    refused = stream(alice, query, format="arrow").problem

    assert (refused["status"], refused["errors"][0]["field"]) == (400, "format")


@pytest.mark.parametrize("writer", [CsvWriter, ArrowWriter, partial(NdjsonWriter, RowFormat())])
def test_a_column_in_binary_form_is_refused_before_the_first_byte(
    alice: Caller, writer: Callable[[], RowWriter]
) -> None:
    """No statement of the extended protocol has one today, so the result is made here."""
    connection = gateway.connect(alice.scope, "admin")
    try:
        result = connection.pgconn.exec_params(b"SELECT 1", [], result_format=1)
        found = RowStream(writer())
        with pytest.raises(ResultNotText):
            found.start(result, connection)
        assert found.take(at_least_bytes=0) == b""
    finally:
        pool.CONNECTION_POOL.discard(connection)


def test_what_copy_cannot_run_is_run_as_rows(alice: Caller) -> None:
    assert stream(alice, "SHOW timezone", CSV).text == "TimeZone\nUTC\n"
    assert stream(alice, "CREATE TABLE t (id int)", CSV).text == ""
    assert stream(alice, "INSERT INTO t VALUES (1) RETURNING id", CSV).text == "id\n1\n"
    assert stream(alice, "INSERT INTO t VALUES (2)", CSV).text == ""
    assert alice.value("SELECT sum(id) FROM t") == 3
    assert stream(alice, "COPY t TO STDOUT", CSV).problem["code"] == "copy_not_supported"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1; DROP TABLE t",
        "SELECT 1) TO STDOUT; COPY (SELECT 1",
        "SELECT 1) TO STDOUT (FORMAT binary) --",
        "SELECT 1) TO STDOUT (FORMAT binary) /*",
        "SELECT 1) TO STDOUT (FORMAT text, NULL '",
        "SELECT 1) TO STDOUT (FORMAT text, NULL $$",
        "SELECT 1) TO PROGRAM 'id' --",
        "SELECT 1) TO STDOUT WHERE (true",
    ],
)
def test_one_statement_stays_one(alice: Caller, text: str) -> None:
    alice.sql("CREATE TABLE t (id int)")
    for accept in (NDJSON, CSV):
        assert stream(alice, text, accept).problem["sqlstate"] == "42601", text
    assert alice.value("SELECT count(*) FROM t") == 0


def test_a_write_is_committed_before_the_end_is_sent(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
    insert = "INSERT INTO t SELECT i FROM generate_series(1, 20000) AS i RETURNING id"
    *_, end = stream(alice, insert, isolation="serializable").records
    assert end["end"]["row_count"] == MANY
    # The deferred constraint fails at the commit, after all rows.
    *_, failed = stream(alice, insert).records
    assert failed["error"]["sqlstate"] == "23505"
    assert alice.value("SELECT count(*) FROM t") == MANY
    assert stream(alice.be("reader"), insert, CSV).problem["status"] == 403


def test_the_form_is_negotiated(alice: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stream(alice, "SELECT 1", "image/png").problem["code"] == "not_acceptable"
    monkeypatch.setattr(arrow_batches, "is_available", lambda: False)
    missing = stream(alice, "SELECT 1", "application/vnd.apache.arrow.stream").problem
    assert "`arrow`" in missing["detail"]
    assert stream(alice, "SELECT 1 AS a", "*/*", format="csv").text == "a\n1\n"
    assert json.loads(stream(alice, "SELECT 1", CSV, format="json").response.content)["rows"]
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("SELECT 1", {"format": "xml"}, "format"),
        ("SELECT 1", {"max_rows": 5}, "max_rows"),
        ("", {"queries": [{"query": "SELECT 1"}]}, "queries"),
        ("SELECT 1", {"rows": "arrays", "format": "csv"}, "rows"),
        ("SELECT 1", {"numeric": "number", "format": "csv"}, "numeric"),
        ("SELECT 1", {"json": "string", "format": "csv"}, "json"),
        ("SELECT 1", {"values": "text", "format": "csv"}, "values"),
    ]
    for query, options, field in refused:
        problem = stream(alice, query, **options).problem
        assert problem["errors"][0]["field"] == field


def test_a_stream_is_not_repeated_by_a_key(alice: Caller) -> None:
    found = stream(alice, "SELECT 1", environ={"HTTP_IDEMPOTENCY_KEY": "k" * 20})
    assert found.problem["code"] == "idempotency_not_supported"


def test_a_client_that_leaves_ends_its_query(alice: Caller) -> None:
    found = stream(alice, "SELECT repeat('x', 9999), generate_series(1, 9999999)")
    next(found.pieces)
    assert backends_of(alice)

    found.close()

    wait_until(lambda: not backends_of(alice))
    assert alice.value("SELECT 1") == 1


def test_the_deadline_holds_over_the_whole_stream(alice: Caller) -> None:
    """It also passes while the client reads nothing."""
    query = "SELECT repeat('x', 999), generate_series(1, 9999999)"
    found = stream(alice, query, timeout_ms=1500)
    pieces = found.pieces
    next(pieces)
    wait_until(lambda: not backends_of(alice))

    *_, last = pieces
    assert json.loads(last.splitlines()[-1])["error"]["code"] == "query_timeout"


def test_a_stream_may_take_longer_than_an_answer_in_json(
    alice: Caller, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SQL = replace(settings.SQL, timeout_ms=50, export_timeout_s=20)
    monkeypatch.setattr("sqlgateway.pg.session_settings.GRACE_MS", 50)
    query = "SELECT pg_sleep(0.3)"

    assert alice.sql(query).code == "query_timeout"
    for form in (NDJSON, CSV):
        assert stream(alice, query, form).response.status_code == 200
    assert alice.sql(query).code == "query_timeout"
    assert alice.sql("SELECT 1", timeout_ms=51).code == "invalid_request"
    assert stream(alice, query, timeout_ms=20_001).problem["code"] == "invalid_request"


def test_a_client_that_does_not_read_is_cut_off(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minimum_rate, "STALL_S", -999.0)
    client, served = socket.socketpair()
    with client, served:
        query = "SELECT repeat('x', 9999), generate_series(1, 9999999)"
        found = stream(alice, query, environ={"gunicorn.socket": served})
        next(found.pieces)
        # What gunicorn's write meets.
        wait_until(lambda: client.recv(1) == b"")
        with pytest.raises(BrokenPipeError):
            served.sendall(b"x")
        found.close()
    wait_until(lambda: not backends_of(alice))
