"""What one request and all requests of a process may hold."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

from sqlgateway.errors import SqlBusy
from sqlgateway.formats import arrays, encoders
from sqlgateway.formats.encoders import SizeLimitExceeded
from sqlgateway.formats.results import MAX_COLUMNS
from sqlgateway.run import admission
from sqlgateway.run.memory import LARGE_RESULTS, LargeResults
from tests.sqlgateway.support import Answer, Caller

pytestmark = pytest.mark.slow

# Values of many tiny parts: as objects of Python they took a hundred times their length.
BOMBS = [
    "SELECT array_fill(1, ARRAY[14000000])",
    "SELECT array_fill(NULL::int, ARRAY[6000000])",
    "SELECT array_fill(1, ARRAY[3500000])",
    "SELECT array_fill(NULL::text, ARRAY[1500000])",
    "SELECT array_fill(true, ARRAY[1500000])",
    "SELECT array_fill('x'::text, ARRAY[1500000])",
    "SELECT repeat(E'\\x01', 8000000)",
    "SELECT array_fill(1, ARRAY[3500000]) FROM generate_series(1, 9)",
]


@contextmanager
def _growth() -> Iterator[list[int]]:
    """Yield a list whose last entry is, in the end, how many bytes the process grew at most."""
    before = _resident_bytes()
    highest = [before]
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.005):
            highest.append(max(highest[-1], _resident_bytes()))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield highest
    finally:
        is_over.set()
        thread.join()
        highest.append(max(highest) - before)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_a_value_of_many_parts_is_held_within_the_limit(alice: Caller, text: str) -> None:
    alice.value("SELECT 1")

    with _growth() as growth:
        answer = alice.sql(text, timeout_ms=10_000)

    assert (answer.status, answer.body.get("outcome")) in {(200, None), (413, "rolled_back")}
    # The parsed answer, too, is in this process.
    assert growth[-1] < 2 * settings.SQL.request_bytes


def test_notices_between_rows_do_not_hide_what_the_rows_take(alice: Caller) -> None:
    alice.sql(
        "CREATE FUNCTION f(i int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'x';"
        " RETURN repeat('x', CASE WHEN i < 400 THEN 1 ELSE 8000000 END); END $$"
    )

    with _growth() as growth:
        answer = alice.sql("SELECT f(i) FROM generate_series(1, 440) AS i")

    assert answer.status in {200, 413}
    assert growth[-1] < 2 * settings.SQL.request_bytes


def test_many_results_of_an_unknown_type_are_held_within_the_limit(alice: Caller) -> None:
    alice.sql("CREATE TYPE mood AS ENUM ('glad')")
    text = "SELECT 'glad'::mood, repeat('x', 3000) FROM generate_series(1, 10000)"

    with _growth() as growth:
        answer = alice.sql("; ".join([text] * 20))

    assert (answer.status, answer.body["truncated"]) == (200, True)
    assert growth[-1] < 2 * settings.SQL.request_bytes


def test_the_columns_of_many_results_are_cut(alice: Caller) -> None:
    alice.sql("CREATE TABLE wide (" + ",".join(f"c{number} int" for number in range(1500)) + ")")
    texts = ["INSERT INTO wide DEFAULT VALUES RETURNING *", *["TABLE wide"] * 98, "SELECT 7 AS i"]

    answer = alice.sql("; ".join(texts))
    batch = alice.post({"queries": [{"query": text} for text in texts]})

    for each in (answer, batch):
        results = each.body["results"]
        assert (each.status, each.body["truncated"], len(results)) == (200, True, 100)
        assert sum(len(one["columns"]) for one in results) <= MAX_COLUMNS
        assert [one["command"] for one in results] == ["INSERT", *["SELECT"] * 99]
        assert (results[0]["truncated"], results[0]["row_count"]) == (False, 1)
        assert (results[50]["truncated"], results[50]["rows"]) == (True, [])
        assert each.rows == [{"i": 7}]


def test_results_that_are_left_out_take_no_columns_from_the_last_one(alice: Caller) -> None:
    alice.sql("CREATE TABLE wide (" + ",".join(f"c{number} int" for number in range(150)) + ")")

    answer = alice.sql("TABLE wide; " * 200)

    assert answer.body["truncated"] is True
    assert len(answer.body["results"]) == 100
    assert len(answer.body["columns"]) == 150


def test_eight_bombs_at_once_are_held_within_the_limit(committed: Caller) -> None:
    committed.value("SELECT 1")
    limits = replace(settings.SQL, running=10, running_per_organization=9)

    def run(text: str) -> Answer:
        try:
            return committed.sql(text)
        finally:
            connection.close()

    with override_settings(SQL=limits), _growth() as growth, ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(run, [BOMBS[0]] * 8))

    statuses = {answer.status for answer in answers}
    # 429: a slot was reserved for another process for a moment.
    assert 413 in statuses
    assert statuses <= {413, 429, 503}
    assert growth[-1] < settings.SQL.results_bytes


def test_a_large_result_waits_for_its_share_and_is_refused_without_one(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")
    wide = "INSERT INTO t SELECT 1 FROM generate_series(1, 60) RETURNING repeat('x', 100000)"
    limits = replace(settings.SQL, results_bytes=settings.SQL.request_bytes)

    with override_settings(SQL=limits), patch.object(admission, "QUEUE_WAIT_S", 0.02):
        LARGE_RESULTS.take(None, time.monotonic())
        try:
            small = alice.sql("SELECT repeat('x', 100000)")
            read = alice.sql(
                "SELECT repeat('x', 100000) FROM generate_series(1, 60)", read_only=True
            )
            written = alice.sql(wide)
        finally:
            LARGE_RESULTS.give_back(None)
        kept = alice.value("SELECT count(*) FROM t")
        afterwards = alice.sql(wide)

    assert small.status == 200
    assert (read.status, read.code, read.headers["Retry-After"]) == (503, "sql_busy", "1")
    assert (written.code, written.body.get("outcome"), kept) in {
        ("sql_busy", None, 0),
        ("result_too_large", "committed", 60),
    }
    assert len(afterwards.rows) == 60


def test_one_organization_leaves_shares_of_large_results_to_others() -> None:
    results, now = LargeResults(), time.monotonic()

    def taken_by(organization_id: int) -> int:
        count = 0
        with suppress(SqlBusy):
            while True:
                results.take(organization_id, now)
                count += 1
        return count

    # Three slow organizations took all eight before.
    assert [taken_by(number) for number in range(8)] == [2, 1, 1, 1, 1, 1, 1, 0]
    results.give_back(1)
    assert taken_by(9) == 1


def test_a_large_result_is_its_organization_s(alice: Caller) -> None:
    alice.value("SELECT 1")
    shares = settings.SQL.results_bytes // settings.SQL.request_bytes
    own = [alice.scope.organization_id] * 2
    with patch.object(admission, "QUEUE_WAIT_S", 0.02):
        for organization_id in own:
            LARGE_RESULTS.take(organization_id, time.monotonic())
        try:
            refused = alice.sql("SELECT repeat('x', 3000000)", read_only=True)
            assert LARGE_RESULTS.taken == len(own) < shares
        finally:
            for organization_id in own:
                LARGE_RESULTS.give_back(organization_id)
        afterwards = alice.sql("SELECT repeat('x', 3000000)", read_only=True)

    assert (refused.status, refused.code) == (503, "sql_busy")
    assert afterwards.status == 200


def test_no_share_is_kept(alice: Caller) -> None:
    for text in ("SELECT repeat('x', 3000000)", "SELECT repeat('x', 30000000)", "SELECT 1/0"):
        alice.sql(text)

    assert LARGE_RESULTS.taken == 0


def test_the_clock_is_looked_at_while_one_array_is_converted() -> None:
    looks = count(1)

    def check(_size_bytes: int) -> None:
        if next(looks) == 3:
            raise SizeLimitExceeded

    value = b'{"a b"' + b',"a b"' * 100_000 + b"}"
    with pytest.raises(SizeLimitExceeded):
        arrays.array_of(encoders.text, check)([value])
    assert next(looks) == 4


@pytest.mark.parametrize("value", [b"{a},{b}", b"{a", b"{a}}", b"{{a}", b"{a}b", b'{a"b}', b""])
def test_what_is_no_array_is_still_json(value: bytes) -> None:
    ((encoded,), _, _) = arrays.array_of(encoders.text, encoders.unlimited)([value])

    assert json.loads(encoded) == value.decode()
