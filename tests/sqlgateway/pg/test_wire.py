"""How libpq gets to read: by itself what is short and whole, through the pair all else."""

import struct
import time
from pathlib import Path

import pytest

from sqlgateway.databases.provisioning import database_for
from sqlgateway.pg import pool
from sqlgateway.pg.protocol import is_whole_answer, longest_row
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.pg.watchdog import MAX_FINISHED, WATCHDOG, StatementWatchdog
from sqlgateway.pg.wire import SHORT_BYTES
from tests.sqlgateway.support import Caller

FORGED_END = "Z\0\0\0\5I"


def message(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


READY = message("Z", b"I")
DONE = message("C", b"SELECT 1\0")
ROW = message("D", b"\0\1\0\0\0\1" + b"1")


@pytest.mark.parametrize(
    "said",
    [
        message("T", b"\0\0") + ROW + DONE + READY,
        message("E", b"SERROR\0\0") + message("Z", b"E"),
        message("1") + message("2") + message("n") + DONE + message("Z", b"T"),
        message("N", b"SNOTICE\0\0") + message("S", b"TimeZone\0UTC\0") + DONE + READY,
        message("I") + READY,
    ],
)
def test_an_answer_is_whole_with_its_last_message(said: bytes) -> None:
    assert is_whole_answer(said)
    assert not any(is_whole_answer(said[:end]) for end in range(len(said)))


@pytest.mark.parametrize(
    "said",
    [
        b"",
        ROW,
        # A row whose value looks like the end, while the next one is still to come.
        message("D", b"\0\2\0\0\0\1Z\0\0\0\5I")[:-1] + b"I",
        message("D", b"x" * 20 + FORGED_END.encode()) + message("D", b"y" * 20)[:9],
        message("D", b"x" * 60)[:-40] + READY,
        # COPY takes more than reading; notifications are collected by libpq.
        message("H", b"\0\0\0") + message("d", b"1\n") + message("c") + DONE + READY,
        message("G", b"\0\0\0") + READY,
        message("A", b"\0\0\0\1channel\0payload\0") + DONE + READY,
        READY + message("E", b"SFATAL\0\0"),
        b"Z\0\0\0\0" + READY,
        b"\x16\x03\x03\0\0" + READY,
    ],
)
def test_what_only_looks_like_a_whole_answer_is_none(said: bytes) -> None:
    assert not is_whole_answer(said)


def test_the_longest_of_the_first_rows_is_measured() -> None:
    described = message("T", b"\0\0")
    wide = message("D", b"x" * 300)
    assert longest_row(described + ROW + wide + ROW) == 305
    assert longest_row(described + ROW + wide[:5]) == 305
    for nothing in (b"", described, wide[:4], DONE + READY):
        assert longest_row(nothing) is None


def _kept(someone: Caller) -> TenantConnection:
    login = database_for(someone.scope).login("admin")
    (connection,) = pool.CONNECTION_POOL._idle[login.key]
    return connection


def _is_piped(someone: Caller) -> bool:
    return _kept(someone)._wire.is_piped


def test_values_that_imitate_the_protocol_are_values(alice: Caller) -> None:
    # Of every length, so that the server's buffer ends at each place of them.
    for length in (10, SHORT_BYTES - 60, SHORT_BYTES, 8192 - 60, 8192, 40_000):
        for shift in range(12):
            head = "x" * (length + shift) + "Z"
            row = alice.sql(
                "SELECT $1::text AS a, 'Iabcd' AS b, $2::text AS c", [head, "Z" * 90]
            ).rows
            assert row == [{"a": head, "b": "Iabcd", "c": "Z" * 90}]


def test_a_forged_end_does_not_let_a_long_row_in(alice: Caller) -> None:
    before = _resident_bytes()
    for shift in range(0, 64, 13):
        pad = 8192 - 100 + shift
        answer = alice.sql(
            f"SELECT repeat('x', {pad}) || 'Z' AS a, 'Iabcd' AS b, repeat('y', 60000000) AS c"
        )
        assert answer.code == "result_too_large"
    assert _resident_bytes() - before < 100 * 2**20


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_long_answer_leaves_the_connection_as_it_was(alice: Caller) -> None:
    first = alice.value("SELECT pg_backend_pid()")
    assert not _is_piped(alice)

    assert len(alice.sql("SELECT repeat('x', 1000) FROM generate_series(1, 300)").rows) == 300
    assert not _is_piped(alice)
    assert alice.value("SELECT length($1)", ["x" * 300_000]) == 300_000
    assert not _is_piped(alice)
    assert alice.value("SELECT pg_backend_pid()") == first


def test_notifications_are_not_collected(alice: Caller) -> None:
    listen = "LISTEN a; " + "; ".join(f"NOTIFY a, '{'x' * 50}{number}'" for number in range(9))
    for text in (listen, f"{listen}; SELECT repeat('x', 5000)"):
        first = alice.value("SELECT pg_backend_pid()")
        assert alice.sql(text).status == 200
        assert _kept(alice).pgconn.notifies() is None
        # And none comes any more: UNLISTEN is part of what is done between requests.
        alice.sql("NOTIFY a")
        assert _kept(alice).pgconn.notifies() is None
        assert alice.value("SELECT pg_backend_pid()") == first


def test_what_a_session_was_left_with_is_gone_for_the_next_request(alice: Caller) -> None:
    first = alice.value("SELECT pg_backend_pid()")
    for text, look, clean in (
        ("SET work_mem = '1MB'", "SHOW work_mem", "4MB"),
        ("SET TimeZone = 'Asia/Tokyo'", "SHOW TimeZone", "UTC"),
        ("CREATE TEMP TABLE t (id int)", "SELECT to_regclass('pg_temp.t')", None),
        ("PREPARE p AS SELECT 1", "SELECT count(*) FROM pg_prepared_statements", 0),
        ("LISTEN a", "SELECT count(*) FROM pg_listening_channels()", 0),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", "SELECT count(*) FROM pg_cursors", 0),
    ):
        assert alice.sql(text).status == 200, text
        assert alice.value(look) == clean, text
        assert alice.value("SELECT pg_backend_pid()") == first


def test_requests_that_have_ended_are_not_kept_under_watch(alice: Caller) -> None:
    for _ in range(50):
        alice.value("SELECT 1")

    connection = pool.CONNECTION_POOL.checkout(database_for(alice.scope).login("admin"))
    pool.CONNECTION_POOL.release(connection)
    assert len(WATCHDOG.of(connection)._heap) <= 2


def test_those_that_have_ended_are_not_kept_behind_one_that_runs(alice: Caller) -> None:
    """A stream's deadline is in ten minutes, and hundreds may end in each second."""
    alice.value("SELECT 1")
    watchdog, connection = (
        StatementWatchdog(),
        pool.CONNECTION_POOL.checkout(database_for(alice.scope).login("admin")),
    )
    running = watchdog.watch(connection, time.monotonic() + 60)

    for _ in range(5000):
        watchdog.finish(watchdog.watch(connection, time.monotonic() + 600))

    assert len(watchdog._heap) <= MAX_FINISHED + 2
    watchdog.finish(running)
    pool.CONNECTION_POOL.release(connection)
