"""CSV bodies into tables: all rows or none, and only into the table that was named."""

import gzip
import io
import itertools
import json
import re
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from environments.middleware import ScopeMiddleware
from sqlgateway.api.imports import ImportViewSet
from sqlgateway.transfer import csv_columns, minimum_rate
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
        (b"name,id\na,1\nb,x\n", 3, "id"),
        (b"id,name\n1,\xff\n", 2, None),
        (b"id,name\n1,a\n1,b\n", 3, None),
    ):
        answer = send(table, body, table="items", columns="id,name")

        assert answer.status in {400, 409}, answer.body
        assert (answer.code, answer.body["line"]) == ("sql_error", line), answer.body
        assert answer.body.get("column_name") == column
    assert rows(table) == []


def test_a_header_that_names_no_column_is_refused_with_what_to_do(table: Caller) -> None:
    answer = send(table, b"id,nickname\n1,a\n", table="items")
    assert (answer.status, answer.body["sqlstate"], answer.body["line"]) == (400, "42703", 1)
    assert "`skip` names those" in answer.body["hint"]
    for body, options, field in (
        (b"id\n1\n", {"columns": "id,name"}, "columns"),
        (b"id,name\n1,a\n", {"columns": "id"}, "columns"),
        (b"id,name\n1,a\n", {"skip": "nickname"}, "skip"),
        (b"id,name\n1,a\n", {"skip": "id,name"}, "skip"),
        (b"1,a\n", {"header": "false", "skip": "id"}, "skip"),
        (b"id," + b"n" * 64 + b"\n1,a\n", {}, "header"),
        (b"id,\n1,a\n", {}, "header"),
        (b"id,\0\n1,a\n", {}, "header"),
    ):
        answer = send(table, body, table="items", **options)
        assert (answer.status, answer.code) == (400, "invalid_request"), (body, answer.body)
        assert answer.body["errors"][0]["field"] == field
    for body in (b"\xef\xbb\xbf", b"id\xff\n", b"i" * 200_000 + b"\n1\n", b'"id\n1\n'):
        assert send(table, body, table="items").status == 400, body[:10]
    assert send(table, b"id,id\n1,2\n", table="items").body["sqlstate"] == "42701"
    assert rows(table) == []


MATCHING: list[tuple[bytes, dict[str, str]]] = [
    (b"name,id\na,1\n", {}),
    (b"name,id\r\na,1\r\n", {"columns": "id,name"}),
    (b"\xef\xbb\xbfNAME, Id \na,1\n", {}),
    (b'"name";"id"\na;1\n', {"delimiter": ";"}),
    (b'note,id,name\n"x, ""y""\n",1,a\n', {"skip": "note"}),
    (b'id,name,Note: 2\n1,a,5" x 7"\n', {"skip": '"Note: 2"'}),
    (b"id,Full Name,name\n1,not imported,a\n", {"skip": '"Full Name"'}),
    (b",id,name\n0,1,a\n", {"skip": '""'}),
    (b"1,x,a", {"header": "false", "columns": "id,note,name", "skip": "note"}),
    (b"what,ever,x\n1,x,a\n", {"header": "true", "columns": "id,n,name", "skip": "n"}),
]


def test_a_header_says_which_column_is_which(table: Caller) -> None:
    for body, options in MATCHING:
        answer = send(table, body, table="items", **options)

        assert answer.status == 200, (body, answer.body)
        assert rows(table) == [[1, "a", "none"]]
        table.sql("TRUNCATE items")


def test_a_row_with_a_column_to_skip_has_all_its_values(table: Caller) -> None:
    """Or those of another column would be imported, or the rest of the body lost."""
    for body, line in (
        (b"id,note,name\n1,x,a\n2,b\n", 3),
        (b"id,note,name\n1,x,a,b\n", 2),
        (b'id,name,note\n1,a,"x\ny"\n\n', 4),
        (b'id,name,note\n1,a,5"\n2,b,c\n', 4),
        (b"id,name,note\n1,a\n", 2),
        (b"id,note,name\n1,x,a\nb,x,c\n", 3),
    ):
        answer = send(table, body, table="items", skip="note")

        assert (answer.status, answer.body["line"]) == (400, line), answer.body
    assert rows(table) == []


@given(
    st.lists(
        st.lists(st.text('ab",;\r\n\\.é', max_size=5) | st.none(), min_size=3, max_size=3),
        max_size=5,
    ),
    st.integers(0, 2),
    st.data(),
)
def test_values_of_a_skipped_column_are_all_that_is_left_out(
    made: list[list[str | None]], place: int, data: st.DataObject
) -> None:
    def line(values: list[str | None]) -> bytes:
        quoted = ['"' + v.replace('"', '""') + '"' if v is not None else "" for v in values]
        return ",".join(quoted).encode() + b"\r\n"

    body = b"".join(map(line, made))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4)))
    pieces = [body[i:j] for i, j in itertools.pairwise([0, *cuts, len(body)])]
    kept = b"".join(csv_columns.without_values(iter(pieces), {place}, 3, delimiter=","))
    assert kept == b"".join(line(row[:place] + row[place + 1 :]) for row in made)


def test_what_was_exported_can_be_imported(table: Caller) -> None:
    table.sql(
        "CREATE TABLE words (id int, g text GENERATED ALWAYS AS (upper(name)) STORED, name text)"
    )
    exported = b'id,g,name\n1,A,a\n2,B,"b\nc"\n'

    for options in ({}, {"columns": "id,g,name"}, {"columns": "id,g,name", "header": "true"}):
        answer = send(table, exported, table="words", **options)
        assert (answer.status, answer.body.get("row_count")) == (200, 2), answer.body
    assert table.value("SELECT string_agg(g, ' ' ORDER BY id) FROM words WHERE id = 1") == "A A A"


def test_a_charset_that_is_not_utf_8_is_refused(table: Caller) -> None:
    body = b"id,name\n1,\xc3\xa9\n"
    for kind in ("iso-8859-1", "utf-16", "", '"x'):
        refused = send(table, body, kind=f"text/csv; charset={kind}", table="items")
        assert (refused.status, refused.code) == (415, "unsupported_media_type"), kind
    assert send(table, body, kind="text/csv; header=absent", table="items").status == 415
    assert rows(table) == []
    assert send(table, body, kind='text/csv; charset="UTF-8"', table="items").status == 200
    assert rows(table) == [[1, "é", "none"]]


SEQUENCES = {
    "serial": "id serial PRIMARY KEY",
    "smallserial": "id smallserial",
    "identity": "id int GENERATED BY DEFAULT AS IDENTITY",
    "identity always": "id bigint GENERATED ALWAYS AS IDENTITY",
    "steps": "id int GENERATED BY DEFAULT AS IDENTITY (INCREMENT 7 MINVALUE 3)",
    "downwards": "id int GENERATED BY DEFAULT AS IDENTITY (INCREMENT -1 MINVALUE -500 START -1)",
    "not begun": "id int GENERATED BY DEFAULT AS IDENTITY (START 150)",
    "domain": "id positive DEFAULT nextval('r')",
    "owned": "id numeric DEFAULT nextval('s')",
    "far": "id bigint GENERATED BY DEFAULT AS IDENTITY",
}


@pytest.mark.parametrize("role", ["admin", "operator"])
def test_after_an_import_the_next_insert_takes_a_new_number(role: str, alice: Caller) -> None:
    made = "CREATE SEQUENCE s; CREATE SEQUENCE r; CREATE DOMAIN positive AS int;"
    someone = alice.be(role)
    for number, column in enumerate(SEQUENCES.values()):
        made += f"CREATE TABLE people{number} ({column}, name text);"
        for sequence in re.findall("nextval.'(.)'", column):
            made += f"ALTER SEQUENCE {sequence} OWNED BY people{number}.id;"
    assert alice.sql(made).status == 200
    for number, name in enumerate(SEQUENCES):
        table = f"people{number}"
        sign = -1 if name == "downwards" else 1
        far = 5_000_000_000 if name == "far" and role == "admin" else 200
        lines = b"".join(b"%d,a\n" % (sign * each) for each in (1, far, 2))
        insert = f"INSERT INTO {table} (name) VALUES ('b') RETURNING id"  # noqa: S608 - the name is ours, no input is in it

        answer = send(someone, b"id,name\n" + lines, table=table)

        assert (answer.status, answer.body.get("notices")) == (200, []), (name, answer.body)
        new = int(someone.value(insert))
        assert sign * new > far, name
        # Never back.
        assert send(someone, b"name,id\nc,%d\n" % (sign * 3), table=table).status == 200
        assert sign * int(someone.value(insert)) > sign * new, name


def test_a_sequence_stays_where_no_value_is_imported(alice: Caller) -> None:
    alice.sql("CREATE TABLE people (id serial, name text); INSERT INTO people VALUES (500, 'a')")

    assert send(alice, b"name\nb\n", table="people").status == 200
    assert send(alice, b"id,name\n", table="people", header="true").status == 200

    assert alice.value("SELECT min(id) FROM people") == 1
    alice.sql("CREATE TABLE empty (id serial, name text)")
    assert send(alice, b"id,name\n", table="empty").status == 200
    assert alice.value("INSERT INTO empty (name) VALUES ('a') RETURNING id") == 1


def test_a_partition_takes_its_numbers_from_the_parents_sequence(alice: Caller) -> None:
    alice.sql(
        "CREATE TABLE events (id bigserial, day int) PARTITION BY LIST (day);"
        "CREATE TABLE first PARTITION OF events FOR VALUES IN (1)"
    )
    assert send(alice, b"id,day\n7,1\n", table="first").status == 200
    assert alice.value("INSERT INTO events (day) VALUES (1) RETURNING id") == 8


def test_a_sequence_that_the_role_may_not_move_is_named(alice: Caller) -> None:
    alice.sql("CREATE TABLE far (id bigserial)")
    answer = send(alice.be("operator"), b"id\n5000000000\n", table="far")
    assert (answer.status, answer.body["row_count"]) == (200, 1)
    (notice,) = answer.body["notices"]
    assert notice["message"] == 'sequence public.far_id_seq may be behind column "id"'
    assert "setval" in notice["hint"]


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
        ({"table": "items", "skip": "a) FROM PROGRAM 'id'"}, "skip"),
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
    roles = b"oid,rolname\n1,a\n"
    assert send(table.be("operator"), roles, table="pg_catalog.pg_authid").status == 403
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
        " $$ BEGIN RAISE NOTICE '%', repeat('n', 4000) USING HINT = 'so'; RETURN NEW; END $$;"
        "CREATE TRIGGER say BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION say()"
    )
    lines = b"".join(b"%d,%b\n" % (i, b"x" * 2000) for i in range(1000))

    answer = send(table, b"id,name\n" + lines, table="items", columns="id,name")

    assert answer.status == 200, answer.body
    assert answer.body["row_count"] == 1000
    assert [notice["hint"] for notice in answer.body["notices"]] == ["so"] * 100


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
