"""Results past the caps: a cut, never a failure, and never a lost write."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from tests.sqlgateway.support import Caller, as_provisioner, backends_of

pytestmark = pytest.mark.slow


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_rows_are_cut_at_the_cap(alice: Caller) -> None:
    whole = alice.sql("SELECT generate_series(1, 10000) AS i")
    cut = alice.sql("SELECT generate_series(1, 10001) AS i")

    assert (whole.body["truncated"], len(whole.rows)) == (False, 10000)
    assert (cut.body["truncated"], len(cut.rows)) == (True, 10000)
    assert cut.body["row_count"] == 10000
    assert cut.rows[-1] == {"i": 10000}


def test_wide_rows_after_narrow_ones_are_cut_as_well(alice: Caller) -> None:
    text = (
        "SELECT CASE WHEN i < 1000 THEN 'x' ELSE repeat('x', 60000) END AS t"
        " FROM generate_series(1, 2000) AS i"
    )

    for answer in (alice.sql(text), alice.sql(f"SELECT 1; {text}")):
        assert (answer.status, answer.body["truncated"]) == (200, True)
        assert 1000 < len(answer.rows) < 1200


def test_a_lower_cap_may_be_asked_for(alice: Caller) -> None:
    answer = alice.sql("SELECT generate_series(1, 50) AS i", max_rows=33)

    assert (answer.body["truncated"], len(answer.rows)) == (True, 33)
    assert alice.sql("SELECT 1 WHERE false", max_rows=1).body["truncated"] is False


def test_bytes_are_cut_at_the_cap(alice: Caller) -> None:
    answer = alice.sql("SELECT repeat('x', 100000) AS t FROM generate_series(1, 200)")

    assert answer.body["truncated"] is True
    assert 8_000_000 < answer.body["stats"]["bytes"] <= 8 * 2**20
    assert {len(row["t"]) for row in answer.rows} == {100000}


def test_a_type_of_ones_own_is_cut_as_well(alice: Caller) -> None:
    alice.sql("CREATE TYPE pair AS (a text, b int)")

    answer = alice.sql("SELECT ROW(repeat('x', 100000), 1)::pair AS t FROM generate_series(1, 200)")

    assert answer.body["truncated"] is True
    assert 70 < len(answer.rows) <= 84


def test_the_caps_are_of_the_whole_answer_in_bytes(alice: Caller) -> None:
    text = "SELECT repeat('x', 100000) AS t FROM generate_series(1, 60)"

    answer = alice.sql(f"{text}; {text}")

    assert answer.body["truncated"] is True
    assert [one["truncated"] for one in answer.body["results"]] == [False, True]
    assert answer.body["stats"]["bytes"] <= 8 * 2**20


def test_an_endless_select_is_cut_at_once_and_is_gone_from_the_server(alice: Caller) -> None:
    started = time.monotonic()

    answer = alice.sql("SELECT generate_series(1, 1000000000000) AS i", read_only=True)

    assert (answer.status, answer.body["truncated"]) == (200, True)
    assert time.monotonic() - started < 5
    assert backends_of(alice) == []
    assert alice.value("SELECT 1") == 1


def test_a_cut_inside_a_transaction_of_the_gateways_ends_it(alice: Caller) -> None:
    endless = "SELECT generate_series(1, 1000000000000) AS i"

    alone = alice.sql(endless, isolation="serializable", read_only=True)
    last = alice.post({"queries": [{"query": "SELECT 1"}, {"query": endless}], "read_only": True})

    for answer in (alone, last):
        assert (answer.status, answer.body["truncated"]) == (200, True)
        assert (answer.body["command"], answer.body["row_count"]) == ("SELECT", 10000)
    assert backends_of(alice) == []
    assert alice.value("SELECT 1") == 1


def test_the_loss_of_the_administrators_connection_is_survived(alice: Caller) -> None:
    too_long = "SELECT repeat('x', 150000000)"
    alice.sql(too_long)
    as_provisioner(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name = %s AND pid <> pg_backend_pid()",
        [f"zonal-admin-{os.getpid()}"],
    )

    assert alice.sql(too_long).body["outcome"] == "rolled_back"
    assert alice.sql("SELECT pg_sleep(60)", timeout_ms=100).code == "query_timeout"


def test_a_billion_rows_take_constant_memory(alice: Caller) -> None:
    alice.sql("SELECT generate_series(1, 20000)")
    before = _resident_bytes()

    with override_settings(SQL=replace(settings.SQL, timeout_ms=1500)):
        # Two statements, so that the first one is read to its end: the deadline.
        answer = alice.sql("SELECT generate_series(1, 1000000000), repeat('x', 100); SELECT 1")

    assert answer.code == "query_timeout"
    assert _resident_bytes() - before < 32 * 2**20


def test_a_row_that_is_too_long_is_refused_without_being_held(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")
    before = _resident_bytes()

    answer = alice.sql("INSERT INTO t VALUES (1); SELECT repeat('x', 150000000)")

    assert (answer.status, answer.code) == (413, "result_too_large")
    assert answer.body["outcome"] == "rolled_back"
    assert _resident_bytes() - before < 100 * 2**20
    assert alice.value("SELECT count(*) FROM t") == 0


def test_a_row_slightly_too_long_reports_whether_its_write_was_kept(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")
    for number in range(5):
        # The server has sent all of it, and committed, before it is found to be too long.
        length = settings.SQL.row_bytes - 30 + number * 10_000

        answer = alice.sql("INSERT INTO t VALUES (1) RETURNING repeat('x', $1)", [length])

        kept = alice.value("SELECT count(*) FROM t")
        alice.sql("TRUNCATE t")
        if answer.status == 200:
            assert kept == 1
        else:
            assert (answer.body["outcome"], kept) in {("committed", 1), ("rolled_back", 0)}


def test_a_notice_that_is_too_long_is_refused_too(alice: Caller) -> None:
    answer = alice.sql("DO $$ BEGIN RAISE NOTICE '%', repeat('x', 150000000); END $$")

    assert answer.code == "result_too_large"


def test_an_error_that_is_too_long_has_undone_its_transaction(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql(
        "INSERT INTO t VALUES (1); DO $$ BEGIN RAISE EXCEPTION '%', repeat('x', 20000000); END $$"
    )

    assert (answer.code, answer.body["outcome"]) == ("result_too_large", "rolled_back")
    assert alice.value("SELECT count(*) FROM t") == 0


def test_a_flood_of_notices_is_kept_short(alice: Caller) -> None:
    answer = alice.sql(
        "DO $$ BEGIN FOR i IN 1..5000 LOOP RAISE NOTICE '%', repeat('x', 1000); END LOOP; END $$"
    )

    assert (answer.status, len(answer.body["notices"])) == (200, 100)


@pytest.mark.parametrize("with_params", [False, True])
def test_a_cut_write_has_been_done(alice: Caller, with_params: bool) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql(
        "INSERT INTO t SELECT generate_series(1, 20000) RETURNING id", [] if with_params else None
    )

    assert (answer.body["truncated"], len(answer.rows)) == (True, 10000)
    assert (answer.body["command"], answer.body["row_count"]) == ("INSERT", 20000)
    assert alice.value("SELECT count(*) FROM t") == 20000


def test_statements_before_and_after_a_cut_result_have_run(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql(
        "INSERT INTO t VALUES (1); SELECT generate_series(1, 200000); INSERT INTO t VALUES (2)"
    )

    assert answer.body["truncated"] is True
    assert [one["truncated"] for one in answer.body["results"]] == [False, True, False]
    assert alice.value("SELECT array_agg(id) FROM t") == [1, 2]


def test_a_write_inside_a_function_is_not_lost_either(alice: Caller) -> None:
    alice.sql(
        "CREATE TABLE t (id int); CREATE FUNCTION f(i int) RETURNS int LANGUAGE sql AS "
        "'INSERT INTO t VALUES (i) RETURNING id'"
    )

    answer = alice.sql("SELECT f(i) FROM generate_series(1, 12000) AS i")

    assert answer.body["truncated"] is True
    assert alice.value("SELECT count(*) FROM t") == 12000


# Writes at its last row, which is far behind the cap.
LATE_WRITE = """
CREATE TABLE t (id int);
CREATE FUNCTION w(i int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    IF i = 300001 THEN INSERT INTO public.t VALUES (i); END IF;
    RETURN i;
END $$;
GRANT EXECUTE ON FUNCTION w TO PUBLIC
"""
WRITES_LAST = "SELECT w(g) FROM generate_series(1, 300001) AS g"


def test_a_write_at_the_last_row_of_a_cut_result_is_kept(alice: Caller) -> None:
    alice.sql(LATE_WRITE)

    answers = [
        alice.sql(WRITES_LAST),
        alice.sql(WRITES_LAST, []),
        alice.sql(WRITES_LAST, isolation="repeatable read"),
        alice.post({"queries": [{"query": "SELECT 1"}, {"query": WRITES_LAST}]}),
        alice.sql(f"BEGIN READ WRITE; {WRITES_LAST}; COMMIT", read_only=True),
    ]

    assert [one.status for one in answers] == [200] * 5
    assert all(one.body["truncated"] for one in answers)
    assert alice.value("SELECT count(*) FROM t") == 5


def test_a_read_only_request_cannot_become_one_that_writes_and_is_cut(alice: Caller) -> None:
    alice.sql(LATE_WRITE)

    items = [{"query": "SET TRANSACTION READ WRITE"}, {"query": WRITES_LAST}]

    assert alice.post({"queries": items, "read_only": True}).status == 400
    assert alice.sql(WRITES_LAST, read_only=True).body["truncated"] is True
    assert alice.value("SELECT count(*) FROM t") == 0


def test_an_endless_select_that_might_write_ends_at_its_deadline_with_a_hint(alice: Caller) -> None:
    answer = alice.sql("SELECT generate_series(1, 1000000000000)", timeout_ms=700)

    assert (answer.status, answer.code) == (400, "query_timeout")
    assert "read_only: true" in answer.body["hint"]
    assert "hint" not in alice.sql("SELECT pg_sleep(60)", timeout_ms=50).body


def test_wide_rows_are_cut_at_few_rows_as_well(alice: Caller) -> None:
    wide = "SELECT repeat('x', 1000000) AS t FROM generate_series(1, 60)"

    answer = alice.sql(wide, max_rows=1)

    assert (answer.body["truncated"], len(answer.rows)) == (True, 1)
    assert len(alice.sql(wide).rows) == 8


def test_a_cut_result_among_queries_keeps_the_transaction(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.post(
        {
            "queries": [
                {"query": "INSERT INTO t VALUES (1)"},
                {"query": "SELECT generate_series(1, 20000)"},
            ]
        }
    )

    assert answer.body["truncated"] is True
    assert alice.value("SELECT count(*) FROM t") == 1


def test_a_cut_write_past_its_deadline_is_undone_and_said_so(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql(
        "INSERT INTO t VALUES (1); SELECT generate_series(1, 10000000000)", timeout_ms=700
    )

    assert answer.code == "query_timeout"
    assert alice.value("SELECT count(*) FROM t") == 0


def test_statements_beyond_the_reported_ones_have_run_as_well(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")

    answer = alice.sql("INSERT INTO t VALUES (1);" * 150 + "SELECT 'z'")

    assert answer.rows == [{"?column?": "z"}]
    assert (len(answer.body["results"]), answer.body["truncated"]) == (100, True)
    assert alice.value("SELECT count(*) FROM t") == 150
