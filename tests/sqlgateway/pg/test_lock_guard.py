"""The lock table of a server is shared: no tenant may fill it."""

import threading
import time

import pytest

from sqlgateway.pg import lock_guard, pool
from sqlgateway.pg.lock_guard import LOCK_GUARD
from sqlgateway.run import gateway
from tests.sqlgateway.support import Caller
from tests.waiting import wait_until

MAKE = (
    "DO $$ BEGIN FOR i IN 1..1000 LOOP EXECUTE format('CREATE TABLE many_%s ()', i);"
    " END LOOP; END $$"
)
MADE = "SELECT count(*) FROM pg_class WHERE relname ~ '^many_'"


def test_a_transaction_with_most_of_the_servers_locks_is_ended(
    alice: Caller, charlie: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of some thousand locks; the share for which it takes seconds to hold enough is another one.
    monkeypatch.setattr(lock_guard, "SHARE", 0.05)

    answer = alice.sql(f"{MAKE}; SELECT pg_sleep(20)")

    assert (answer.status, answer.body["sqlstate"]) == (503, "57P01"), answer.body
    assert "too many of the server's locks" in answer.body["hint"]
    assert alice.value(MADE) == 0
    assert charlie.sql("CREATE TABLE t (id int)").status == 200


def test_a_transaction_with_many_locks_goes_on_while_enough_are_left(alice: Caller) -> None:
    connection = gateway.connect(alice.scope, "admin")
    try:
        connection.give_up_at = time.monotonic() + 60
        connection.run(b"BEGIN")
        connection.run(MAKE.encode())
        LOCK_GUARD.check(connection.login.address.cluster_id)
        connection.run(b"COMMIT")
    finally:
        pool.CONNECTION_POOL.discard(connection)

    assert alice.value(MADE) == 1000


def test_the_thread_of_a_cluster_that_is_not_in_use_ends(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_guard, "EVERY_S", 0.01)
    assert alice.value("SELECT 1") == 1

    pool.CONNECTION_POOL.clear()

    wait_until(lambda: "sql-locks" not in {each.name for each in threading.enumerate()})
    assert alice.value("SELECT 1") == 1
    assert "sql-locks" in {each.name for each in threading.enumerate()}
