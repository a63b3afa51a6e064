"""What ``commit`` and ``rollback`` say is what happened, whatever happens beside them."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.test import override_settings

from sqlgateway.models import Database
from sqlgateway.pg import pool
from sqlgateway.transactions import operations, owner
from sqlgateway.transactions.open_transactions import OPEN_TRANSACTIONS
from tests.cast import Answer, Caller
from tests.sqlgateway.support import as_provisioner
from tests.sqlgateway.transactions.support import Transaction, begin, sql

SignIn = Callable[[str], Caller]


@pytest.fixture
def admin(signed_in_as: SignIn) -> Caller:
    """Return an admin with a table."""
    caller = signed_in_as("admin")
    sql(caller, "CREATE TABLE items (id int PRIMARY KEY, name text)")
    return caller


@pytest.fixture
def ours(admin: Caller) -> Transaction:
    """Return a transaction that has written."""
    opened = begin(admin)
    assert opened.run("INSERT INTO items VALUES (1)").status == 200
    return opened


def beside(first: Callable[[], Any], then: Callable[[], Answer]) -> Answer:
    """Send a request that another one overtakes after it has read the transaction's row."""
    find, others = operations.find, [first]

    def overtaken(*args: Any) -> Any:
        row = find(*args)
        if others:
            others.pop()()
        return row

    with patch.object(operations, "find", overtaken):
        return then()


def test_a_transaction_whose_session_has_ended_is_not_committed(
    admin: Caller, ours: Transaction
) -> None:
    # As an administrator, a quota, a move or the server's own limits do.
    as_provisioner(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = %s AND state LIKE 'idle in%%'",
        [Database.objects.get().dbname],
    )

    for _ in range(2):
        answer = ours.commit()
        assert (answer.status, answer.body["outcome"]) == (410, "rolled_back")
    assert sql(admin, "SELECT * FROM items") == []


def test_a_failed_transaction_is_not_committed_though_it_ends_meanwhile(
    admin: Caller, ours: Transaction
) -> None:
    ours.run("SELECT 1 / 0")
    ask = owner.ask

    def later(*arguments: Any) -> Any:
        answer = ask(*arguments)
        for held in OPEN_TRANSACTIONS._open.values():
            held.expires_at = 0.0
        OPEN_TRANSACTIONS.end_due()
        return answer

    with patch.object(owner, "ask", later):
        assert ours.commit().body["outcome"] == "rolled_back"
    assert sql(admin, "SELECT * FROM items") == []


def test_a_commit_that_comes_again_beside_the_first_says_committed(
    admin: Caller, ours: Transaction
) -> None:
    answer = beside(ours.commit, ours.commit)

    assert (answer.status, answer.body["state"]) == (200, "committed")
    assert sql(admin, "SELECT id FROM items") == [[1]]


def test_a_statement_beside_a_commit_learns_that_it_was_committed(ours: Transaction) -> None:
    answer = beside(ours.commit, lambda: ours.run("SELECT 1"))
    assert (answer.status, answer.body["outcome"]) == (410, "committed")


def test_a_rollback_beside_a_commit_says_that_it_was_committed(
    admin: Caller, ours: Transaction
) -> None:
    answer = beside(ours.commit, ours.roll_back)

    assert (answer.status, answer.body["outcome"]) == (410, "committed")
    assert sql(admin, "SELECT id FROM items") == [[1]]


def test_a_commit_beside_a_rollback_says_that_it_was_rolled_back(
    admin: Caller, ours: Transaction
) -> None:
    answer = beside(ours.roll_back, ours.commit)

    assert (answer.status, answer.body["outcome"]) == (410, "rolled_back")
    assert sql(admin, "SELECT * FROM items") == []


def test_a_transaction_lives_longer_than_a_request(
    admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlgateway.pg.session_settings.GRACE_MS", 100)
    short = replace(settings.SQL, timeout_ms=100)
    with override_settings(SQL=short):
        # With the limits of a request, as short as these.
        pool.CONNECTION_POOL.clear()
        ours = begin(admin)
        assert ours.run("INSERT INTO items VALUES (1)").status == 200
        # The server's own timer cannot be moved on.
        time.sleep(0.3)
        assert ours.commit().body["state"] == "committed"
    assert sql(admin, "SELECT id FROM items") == [[1]]


def test_a_wrong_repetition_does_not_replace_what_is_known_of_the_statement(
    ours: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlgateway.transactions.open_transactions.KEPT_ANSWER_BYTES", 1)
    ours.run("INSERT INTO items VALUES (2)")

    ours.send(ours.number, "SELECT 'another one'")
    again = ours.send(ours.number, "INSERT INTO items VALUES (2)")

    assert "It has run" in again.body["detail"]
