"""CSV bodies into tables: all rows or none, and only into the table that was named."""

import gzip
import io
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import RequestFactory

from environments.middleware import ScopeMiddleware
from sqlgateway.api.imports import ImportViewSet
from sqlgateway.transfer import minimum_rate
from tests import conformance
from tests.cast import Caller as HttpCaller
from tests.sqlgateway.support import Answer, Caller, principal

VIEW = ImportViewSet.as_view({"post": "import_csv"})
MAKE = "CREATE TABLE items (id int PRIMARY KEY, name text, \"Full Name\" text DEFAULT 'none')"


def send(someone: Caller, body: bytes, *, kind: str = "text/csv", **options: Any) -> Answer:
    """POST a CSV body; header and environ are for the request, the rest for its query string."""
    environ = options.pop("environ", {})
    factory = RequestFactory()
    url = f"/v1/sql/import?{urlencode(options)}"
    request: Any = factory.post(url, body, content_type=kind, **environ)
    request.principal = principal(someone.scope, someone.role)
    request.principal_error = None
    request.request_id = "request-of-a-test"
    response: Any = ScopeMiddleware(VIEW)(request)
    response.render()
    answer = Answer(response.status_code, json.loads(response.content), response.headers)
    conformance.check(
        conformance.Exchange(
            method="POST",
            path="/v1/sql/import",
            request_body=None,
            status=answer.status,
            media=response["Content-Type"],
            body=answer.body,
        )
    )
    return answer


@pytest.fixture
def table(alice: Caller) -> Caller:
    """Return Alice with an empty table."""
    assert alice.sql(MAKE).status == 200
    return alice


def rows(someone: Caller) -> Any:
    return someone.sql('SELECT id, name, "Full Name" FROM items ORDER BY id', rows="arrays").rows


def test_an_import_through_the_front_door(signed_in_as: Callable[[str], HttpCaller]) -> None:
    admin = signed_in_as("admin")
    assert admin.post("/v1/sql", {"query": MAKE}).status == 200
    body = b"id,name\n1,first\n2,second\n"
    answer = admin.call(
        "POST",
        "/v1/sql/import?table=items&columns=id,name&header=true",
        body,
        content_type="text/csv",
    )
    assert (answer.status, answer.body["row_count"]) == (200, 2)
    found = admin.post("/v1/sql", {"query": "SELECT name FROM items ORDER BY id"}).body["rows"]
    assert found == [{"name": "first"}, {"name": "second"}]


def test_a_body_becomes_rows(table: Caller) -> None:
    body = b'id,name,Full Name\n1,"a, ""b""\nc",x\n2,,""\n'

    answer = send(table, body, table="items")

    assert answer.status == 200, answer.body
    assert (answer.body["command"], answer.body["row_count"]) == ("COPY", 2)
    assert answer.body["stats"]["bytes"] == len(body)
    assert answer.headers["Cache-Control"] == "no-store"
    assert rows(table) == [[1, 'a, "b"\nc', "x"], [2, None, ""]]


def test_columns_delimiter_and_header_are_the_callers(table: Caller) -> None:
    body = b'"x";1\n\xc3\xa9;2\n'
    named = {"columns": '"Full Name",ID', "delimiter": ";", "header": "false"}

    assert send(table, body, table='"public".ITEMS', **named).body["row_count"] == 2
    assert send(table, b"what,ever\n3,c\n", table="items", columns="id,name", header="true")
    assert rows(table) == [[1, None, "x"], [2, None, "é"], [3, "c", "none"]]


def test_a_spreadsheets_byte_order_mark_is_no_part_of_the_first_name(table: Caller) -> None:
    body = b"\xef\xbb\xbfid,name\n1,a\n"

    assert send(table, body, table="items", columns="id,name").status == 200


def test_an_error_names_its_line_and_keeps_no_row(table: Caller) -> None:
    for body, line, column in (
        (b"id,name\n1,a\n2,b\nx,c\n", 4, "id"),
        (b"id,name\n1,a\n2\n", 3, None),
        (b'id,name\n1,"a\n', 3, None),
        (b"name,id\na,1\n", 1, None),
        (b"id,name\n1,\xff\n", 2, None),
        (b"id,name\n1,a\n1,b\n", 3, None),
    ):
        answer = send(table, body, table="items", columns="id,name")

        assert answer.status in {400, 409}, answer.body
        assert (answer.code, answer.body["line"]) == ("sql_error", line), answer.body
        assert answer.body.get("column_name") == column
    assert rows(table) == []


def test_a_header_of_other_columns_is_refused_with_what_to_do(table: Caller) -> None:
    answer = send(table, b"id,name\n1,a\n", table="items")
    assert (answer.status, answer.body["sqlstate"]) == (400, "22P04")
    assert "those that `columns` lists" in answer.body["hint"]
    # Line 3 is no header.
    answer = send(table, b"id,name\n1,a\n2\n", table="items", columns="id,name")
    assert "hint" not in answer.body


def test_a_name_that_is_none_is_refused(table: Caller) -> None:
    for options, field in (
        ({}, "table"),
        ({"table": "items; DROP TABLE items"}, "table"),
        ({"table": 'items" ("'}, "table"),
        ({"table": "a.b.c"}, "table"),
        ({"table": "items."}, "table"),
        ({"table": '""'}, "table"),
        ({"table": "x" * 64}, "table"),
        ({"table": "items", "columns": "id) FROM PROGRAM 'id'"}, "columns"),
        ({"table": "items", "columns": "id,"}, "columns"),
        ({"table": "items", "header": "maybe"}, "header"),
        ({"table": "items", "delimiter": "'"}, "delimiter"),
        ({"table": "items", "tables": "items"}, "tables"),
    ):
        answer = send(table, b"id\n1\n", **options)

        assert (answer.status, answer.code) == (400, "invalid_request"), answer.body
        assert answer.body["errors"][0]["field"] == field
    assert rows(table) == []


def test_a_quoted_name_stays_one_name(table: Caller) -> None:
    hostile = "items\" FROM PROGRAM 'id' --"
    quoted = '"' + hostile.replace('"', '""') + '"'

    missing = send(table, b"id\n1\n", table=quoted)
    table.sql(f"CREATE TABLE {quoted} (id int)")
    found = send(table, b"id\n1\n", table=quoted)

    assert (missing.status, missing.body["sqlstate"]) == (400, "42P01")
    assert found.status == 200
    assert table.value(f"TABLE {quoted}") == 1


def test_roles_and_tenants_hold(table: Caller, charlie: Caller) -> None:
    body = b"id,name\n1,a\n"

    assert send(table.be("reader"), body, table="items").code == "permission_denied"
    assert send(charlie, body, table="items").body["sqlstate"] == "42P01"
    assert send(table.be("operator"), body, table="pg_catalog.pg_authid").status == 403
    assert rows(table) == []
    assert send(table.be("operator"), body, table="items", columns="id,name").status == 200


def test_a_body_is_unpacked_up_to_its_limit(table: Caller, settings: Any) -> None:
    packed = {"HTTP_CONTENT_ENCODING": "gzip"}
    lines = b"id,name\n" + b"".join(b"%d,%b\n" % (i, b"x" * 1000) for i in range(200))
    body = gzip.compress(lines[:100_000]) + gzip.compress(lines[100_000:])
    options = {"table": "items", "columns": "id,name"}

    default = settings.SQL
    settings.SQL = replace(default, import_limit_bytes=len(lines) - 1)
    assert send(table, body, environ=packed, **options).code == "payload_too_large"
    settings.SQL = default
    assert send(table, body[:-9], environ=packed, **options).code == "upload_interrupted"
    assert send(table, b"id,name\n", environ=packed, **options).code == "invalid_request"
    assert send(table, body, environ={"HTTP_CONTENT_ENCODING": "br"}, **options).status == 415
    assert rows(table) == []
    assert send(table, body, environ=packed, **options).body["row_count"] == 200


def test_a_body_of_members_that_hold_nothing_is_refused(table: Caller) -> None:
    """Each takes time, and none counts towards the limit: a thread would compute for minutes."""
    packed = {"HTTP_CONTENT_ENCODING": "gzip"}
    options = {"table": "items", "columns": "id,name"}
    lines, nothing = gzip.compress(b"id,name\n1,a\n"), gzip.compress(b"")
    refused = send(table, lines + 2000 * nothing, environ=packed, **options)
    assert (refused.code, "members" in refused.body["detail"]) == ("invalid_request", True)
    assert rows(table) == []
    assert send(table, lines + 20 * nothing, environ=packed, **options).body["row_count"] == 1


def test_a_body_that_ends_early_or_is_no_csv_is_refused(table: Caller) -> None:
    body = b"id,name\n1,a\n"
    short = {"CONTENT_LENGTH": str(len(body) + 5), "wsgi.input": io.BytesIO(body)}
    options = {"table": "items", "columns": "id,name"}

    assert send(table, body, environ=short, **options).code == "upload_interrupted"
    assert send(table, body, kind="application/json", **options).status == 415
    assert rows(table) == []


def test_a_client_that_trickles_is_cut_off(table: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimum_rate, "STALL_S", 0.05)
    client, served = socket.socketpair()
    with client, served, served.makefile("rb") as stream:
        client.sendall(b"id,name\n1,a\n")
        environ = {"CONTENT_LENGTH": "99", "wsgi.input": stream, "gunicorn.socket": served}
        answer = send(table, b"x", environ=environ, table="items", columns="id,name")

    assert (answer.status, answer.code) == (400, "upload_interrupted")
    assert "slowly" in answer.body["detail"]
    assert rows(table) == []


def test_an_import_ends_at_its_deadline(table: Caller, settings: Any) -> None:
    settings.SQL = replace(settings.SQL, import_timeout_s=1)
    table.sql(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(20); RETURN NEW; END $$;"
        "CREATE TRIGGER wait BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION wait()"
    )
    answer = send(table, b"id,name\n1,a\n", table="items", columns="id,name")

    assert (answer.status, answer.code) == (400, "query_timeout")
    assert rows(table) == []


def test_notices_do_not_block_the_body(table: Caller) -> None:
    """The server stops reading rows while no one reads its notices."""
    table.sql(
        "CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE NOTICE '%', repeat('n', 4000); RETURN NEW; END $$;"
        "CREATE TRIGGER say BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION say()"
    )
    lines = b"".join(b"%d,%b\n" % (i, b"x" * 2000) for i in range(1000))

    answer = send(table, b"id,name\n" + lines, table="items", columns="id,name")

    assert answer.status == 200, answer.body
    assert answer.body["row_count"] == 1000
    assert len(answer.body["notices"]) == 100


def test_a_line_of_thousands_of_digits_is_no_position(table: Caller) -> None:
    table.sql(
        "CREATE FUNCTION boom() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " EXECUTE E'SELECT 1/0 /*\\nCOPY x, line ' || repeat('9', 5000) || '*/'; END $$;"
        " CREATE TRIGGER boom BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION boom()"
    )

    answer = send(table, b"id\n1\n", table="items", columns="id")

    assert (answer.status, answer.body["sqlstate"]) == (400, "22012")


@pytest.mark.parametrize("line", [b"\\.", b'"a\n\\.\nb"'])
@pytest.mark.parametrize("before", [0, 64 * 1024 - 13, 64 * 1024 - 12])
def test_no_row_after_an_end_marker_is_dropped_in_silence(
    table: Caller, line: bytes, before: int
) -> None:
    """PostgreSQL before 18 ends a CSV at such a line; then the body is refused."""
    body = b"id,name\n1," + b"x" * before + b"\n2," + line + b"\n"
    if line == b"\\.":
        body = b"id,name\n1," + b"x" * before + b"\n" + line + b"\n"
    answer = send(table, body + b"3,kept\n", table="items", columns="id,name")
    assert answer.status == 400 or [row[0] for row in rows(table)] == [1, 2, 3]
    assert answer.status == 200 or rows(table) == []
