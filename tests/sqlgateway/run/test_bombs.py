"""Statements that want all of the server: cut off in time, while others go on."""

import time

import pytest

from tests.sqlgateway.support import Caller, backends_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

BOMBS = [
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r",
    "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
    "SELECT repeat('x', 300000000) = repeat('y', 300000000), pg_sleep(60)",
    (
        "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN OTHERS OR query_canceled THEN"
        " NULL; END; END LOOP; END $$"
    ),
    "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN f(); END $$; SELECT f()",
    "SELECT " + "(" * 20000 + "1" + ")" * 20000,
    "SELECT " + "+".join(["1"] * 100000),
    "SELECT '" + "[" * 100000 + "'::json",
    "SELECT " + ",".join(["1"] * 5000),
    "CREATE TABLE wide (" + ",".join(f"c{i} int" for i in range(2000)) + ")",
    "SELECT array_fill(1, ARRAY[100000000])",
    "SELECT string_agg(repeat('x', 1000000), '') FROM generate_series(1, 2000)",
    "SELECT lpad('', 500000000) || lpad('', 500000000) || lpad('', 500000000)",
    "SELECT * FROM generate_series(1, 1000000000000)",
    "CREATE TEMP TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 100000000)",
    "SELECT x FROM generate_series(1, 30000000) x ORDER BY random()",
]


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_an_expensive_statement_ends_in_time_and_the_server_continues(
    alice: Caller, charlie: Caller, text: str
) -> None:
    charlie.value("SELECT 1")
    started = time.monotonic()

    answer = alice.sql(text, timeout_ms=1000)

    assert answer.status in {400, 413, 503}, answer.body
    assert time.monotonic() - started < 8
    # PostgreSQL writes out a value of 400 MB without listening to anybody meanwhile.
    wait_until(lambda: backends_of(alice) == [], timeout_s=8)
    assert charlie.value("SELECT 1") == 1
