"""``/v1/sql/transactions``: one transaction over several requests, in the process that owns it."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from common.principals import Principal, Scope
from sqlgateway.clusters import placements
from sqlgateway.databases import password_rotation
from sqlgateway.models import Database, InteractiveTransaction, RetiredDatabase
from sqlgateway.pg import pool
from sqlgateway.pg.message_stream import ConnectionLost
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import admission
from sqlgateway.run.admission import ADMISSION
from sqlgateway.run.execution import Execution
from sqlgateway.run.history import RECORDER
from sqlgateway.run.outcomes import RequestOutcome
from sqlgateway.transactions import operations, owner
from sqlgateway.transactions.open_transactions import OPEN_TRANSACTIONS
from tests.cast import Caller, member, organization, signed_in
from tests.sqlgateway import support
from tests.sqlgateway.kept import KEPT
from tests.sqlgateway.support import as_provisioner
from tests.sqlgateway.transactions.support import PATH, begin, sql

SignIn = Callable[[str], Caller]


@pytest.fixture
def admin(signed_in_as: SignIn) -> Caller:
    """Return an admin with a table."""
    caller = signed_in_as("admin")
    sql(caller, "CREATE TABLE items (id int PRIMARY KEY, name text)")
    return caller


def test_passwords_that_are_rotated_meanwhile_end_no_transaction(admin: Caller) -> None:
    before = {**placements.PLACEMENT_CACHE._entries}
    ours = begin(admin)
    assert ours.run("INSERT INTO items VALUES (1, 'one')").status == 200

    password_rotation.rotate(Database.objects.get())
    # A process that has read the old passwords.
    pool.CONNECTION_POOL.clear()
    placements.PLACEMENT_CACHE._entries.update(before)
    theirs = begin(admin)

    assert theirs.run("SELECT count(*) FROM items").body["rows"] == [{"count": 0}]
    assert ours.commit().body["state"] == "committed"
    assert theirs.run("SELECT count(*) FROM items").body["rows"] == [{"count": 1}]


def test_what_a_transaction_writes_is_seen_by_others_after_its_commit(admin: Caller) -> None:
    ours = begin(admin)
    assert ours.run("INSERT INTO items VALUES ($1, $2)", [1, "one"]).body["command"] == "INSERT"
    assert ours.run("SELECT name FROM items").body["rows"] == [{"name": "one"}]
    assert sql(admin, "SELECT * FROM items") == []
    committed = ours.commit()
    assert (committed.status, committed.body["state"]) == (200, "committed")
    assert sql(admin, "SELECT * FROM items") == [[1, "one"]]
    assert ours.commit().body["state"] == "committed"
    assert ours.run("SELECT 1").body["outcome"] == "committed"
    assert ours.roll_back().body["outcome"] == "committed"


def test_statements_of_a_transaction_are_in_the_history(admin: Caller) -> None:
    ours = begin(admin, read_only=True)
    asked = ours.run("SELECT 1 AS inside")
    ours.run("SELECT nonesuch")
    RECORDER.flush()
    failed, done = admin.get("/v1/sql/history").body["results"][:2]
    assert (done["query"], done["request_id"]) == ("SELECT 1 AS inside", asked.body["request_id"])
    assert (failed["outcome"], failed["sqlstate"]) == ("sql_error", "42703")


def test_a_rolled_back_transaction_leaves_nothing(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    assert [ours.roll_back().status for _ in range(2)] == [204, 204]
    assert sql(admin, "SELECT * FROM items") == []
    over = ours.commit()
    assert (over.status, over.code, over.body["outcome"]) == (
        410,
        "transaction_over",
        "rolled_back",
    )
    assert admin.get(ours.path).body["state"] == "rolled_back"


def test_a_statement_that_is_sent_again_does_not_run_again(admin: Caller) -> None:
    ours = begin(admin)
    first = ours.send(1, "INSERT INTO items VALUES (1) RETURNING id")
    again = ours.send(1, "INSERT INTO items VALUES (1) RETURNING id")
    assert (again.status, again.body) == (200, first.body)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    other = ours.send(1, "INSERT INTO items VALUES (2)")
    assert (other.code, other.body["expected"]) == ("statement_out_of_order", 2)
    assert ours.send(3, "SELECT 1").body["expected"] == 2
    failed = [ours.send(2, "INSERT INTO items VALUES (1)") for _ in range(2)]
    assert [answer.body["sqlstate"] for answer in failed] == ["23505", "23505"]


def test_a_failed_statement_leaves_only_the_rollback(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    assert ours.run("SELECT 1/0").body["sqlstate"] == "22012"
    assert ours.run("SELECT 1").body["sqlstate"] == "25P02"
    assert ours.commit().body["outcome"] == "rolled_back"
    assert sql(admin, "SELECT * FROM items") == []


def test_a_savepoint_undoes_a_failed_statement(admin: Caller) -> None:
    ours = begin(admin)
    for query in ("SAVEPOINT s", "SELECT 1/0", "ROLLBACK TO s", "INSERT INTO items VALUES (7)"):
        ours.run(query)
    assert ours.commit().status == 200
    assert sql(admin, "SELECT id FROM items") == [[7]]


@pytest.mark.parametrize("query", ["COMMIT", "/* x */ ROLLBACK", "COMMIT AND CHAIN", "BEGIN"])
def test_transaction_control_inside_it_is_refused_and_changes_nothing(
    admin: Caller, query: str
) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    assert ours.run(query).code == "transaction_ended"
    assert sql(admin, "SELECT * FROM items") == []
    assert ours.commit().body["state"] == "committed"
    assert sql(admin, "SELECT id FROM items") == [[1]]


def test_two_texts_in_one_statement_are_refused(admin: Caller) -> None:
    assert begin(admin).run("SELECT 1; SELECT 2").body["sqlstate"] == "42601"


def test_it_is_its_own_session_s_alone(admin: Caller, signed_in_as: SignIn) -> None:
    ours = begin(admin)
    theirs = signed_in_as("operator")
    for method, path in (
        ("GET", ours.path),
        ("POST", f"{ours.path}/commit"),
        ("DELETE", ours.path),
    ):
        assert theirs.call(method, path).code == "transaction_not_found"
    stolen = theirs.post(f"{ours.path}/statements", {"number": 1, "query": "SELECT 1"})
    assert stolen.code == "transaction_not_found"
    assert theirs.get(f"{PATH}/nonsense").code == "transaction_not_found"


def test_a_reader_s_transaction_reads(admin: Caller) -> None:
    ours = begin(admin, read_only=True, isolation="repeatable read")
    assert ours.run("SHOW transaction_isolation").body["rows"] == [
        {"transaction_isolation": "repeatable read"}
    ]
    assert ours.run("INSERT INTO items VALUES (1)").status == 403


def test_an_idle_transaction_is_rolled_back(admin: Caller) -> None:
    with override_settings(SQL=replace(settings.SQL, transaction_idle_s=-1)):
        ours = begin(admin)
        OPEN_TRANSACTIONS.end_due()
    over = ours.run("SELECT 1")
    assert (over.status, over.body["outcome"]) == (410, "rolled_back")
    assert admin.get(ours.path).body["state"] == "rolled_back"


def test_open_transactions_are_counted_against_the_caps(admin: Caller) -> None:
    opened = [begin(admin) for _ in range(settings.SQL.transactions_per_organization)]
    refused = admin.post(PATH, {})
    assert (refused.status, refused.code) == (429, "too_many_transactions")
    assert int(refused.headers["Retry-After"]) > 0
    opened[0].roll_back()
    assert admin.post(PATH, {}).status == 201


def test_one_organization_leaves_places_to_others(admin: Caller) -> None:
    other = organization("Charlie's")
    KEPT.give(support.caller(other).scope)
    charlie = signed_in(member(other, "charlie@example.com"))
    with override_settings(SQL=replace(settings.SQL, running=12)):
        begin(admin)
        begin(admin)
        refused = admin.post(PATH, {})
        assert (refused.status, refused.code) == (503, "sql_busy")
        begin(charlie)


def test_a_commit_whose_answer_is_lost_is_looked_up(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    real = TenantConnection.run

    def lose(self: TenantConnection, text: bytes) -> Any:
        result = real(self, text)
        if text == b"COMMIT":
            raise ConnectionLost
        return result

    with patch.object(TenantConnection, "run", lose):
        assert ours.commit().body["state"] == "committed"
    assert sql(admin, "SELECT id FROM items") == [[1]]


def test_a_commit_that_never_arrived_is_looked_up(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    real = TenantConnection.run

    def lose(self: TenantConnection, text: bytes) -> Any:
        if text == b"COMMIT":
            self.pgconn.finish()
            raise ConnectionLost
        return real(self, text)

    with patch.object(TenantConnection, "run", lose):
        assert ours.commit().body["outcome"] == "rolled_back"
    assert sql(admin, "SELECT id FROM items") == []


def test_a_lost_connection_ends_it(admin: Caller) -> None:
    ours = begin(admin)
    (row,) = ours.run("SELECT pg_backend_pid() AS pid").body["rows"]
    as_provisioner("SELECT pg_terminate_backend(%s)", [row["pid"]])
    assert ours.run("SELECT 1").status in {410, 503}
    assert ours.run("SELECT 1").body["outcome"] == "rolled_back"


def test_a_deferred_constraint_is_told_by_the_commit(admin: Caller) -> None:
    sql(admin, "CREATE TABLE late (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    ours = begin(admin)
    ours.run("INSERT INTO late VALUES (1), (1)")
    answer = ours.commit()
    assert (answer.status, answer.body["sqlstate"]) == (409, "23505")
    assert admin.get(ours.path).body["state"] == "rolled_back"


def test_a_transaction_of_a_process_that_ended_is_rolled_back(admin: Caller) -> None:
    ours = begin(admin)
    # A socket that no process listens on any more.
    InteractiveTransaction.objects.filter(pk=ours.id).update(owner="00000000-00000000")
    over = ours.run("SELECT 1")
    assert (over.status, over.body["outcome"]) == (410, "rolled_back")
    assert ours.commit().body["outcome"] == "rolled_back"


def test_two_statements_at_once_are_refused(admin: Caller) -> None:
    ours = begin(admin)
    held = OPEN_TRANSACTIONS._open[ours.id]  # as if another request used it
    with held.lock:
        busy = ours.send(1, "SELECT 1")
        assert (busy.status, busy.code) == (409, "transaction_busy")
        assert ours.commit().code == "transaction_busy"
    assert ours.send(1, "SELECT 1 AS one").body["rows"] == [{"one": 1}]


def test_a_rollback_while_a_statement_runs_frees_the_connection_soon(admin: Caller) -> None:
    ours = begin(admin)
    with OPEN_TRANSACTIONS._open[ours.id].lock:  # as if a statement ran
        assert ours.roll_back().status == 204
    # Its row counts no longer, so it must not wait for its idle time.
    assert ours.run("SELECT 1").code == "transaction_over"
    OPEN_TRANSACTIONS.end_due()
    assert ours.id not in OPEN_TRANSACTIONS._open


def test_a_rollback_cancels_the_statement_that_runs(admin: Caller) -> None:
    ours = begin(admin)
    real = Execution.run

    def roll_back_first(self: Execution) -> RequestOutcome:
        assert ours.roll_back().status == 204
        return real(self)

    with patch.object(Execution, "run", roll_back_first):
        assert ours.run("SELECT pg_sleep(60)").code == "query_cancelled"
    assert ours.id not in OPEN_TRANSACTIONS._open


def test_a_transaction_counts_as_long_as_its_statement_may_run(admin: Caller) -> None:
    ours = begin(admin)
    seen: list[datetime] = []
    real = owner.ask

    def look(
        principal: Principal, row: InteractiveTransaction, question: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        seen.append(InteractiveTransaction.objects.get(pk=row.pk).active_until)
        return real(principal, row, question)

    longest = timezone.now() + timedelta(milliseconds=settings.SQL.timeout_ms)
    with patch.object(owner, "ask", look):
        ours.run("SELECT 1")
    assert seen[0] > longest
    assert InteractiveTransaction.objects.get(pk=ours.id).active_until < longest


def test_no_statement_writes_once_the_commit_has_begun(admin: Caller) -> None:
    ours = begin(admin)
    late: list[str] = []
    real = operations._move

    def write_first(*arguments: Any, **members: Any) -> None:
        late.append(ours.run("INSERT INTO items VALUES (1)").code)
        real(*arguments, **members)

    with patch.object(operations, "_move", write_first):
        assert ours.commit().body["state"] == "committed"
    assert late[0] == "transaction_busy"
    assert sql(admin, "SELECT id FROM items") == []


def test_a_commit_that_runs_too_long_is_ended(admin: Caller) -> None:
    sql(
        admin,
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END'",
    )
    sql(
        admin,
        "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON items"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()",
    )
    ours = begin(admin)
    ours.run("SET statement_timeout = 0")
    ours.run("SET transaction_timeout = 0")
    ours.run("INSERT INTO items VALUES (1)")
    with override_settings(SQL=replace(settings.SQL, timeout_ms=200)):
        assert ours.commit().body["sqlstate"] == "57014"
    assert admin.get(ours.path).body["state"] == "rolled_back"


def test_commits_count_as_statements(admin: Caller) -> None:
    first, second = begin(admin), begin(admin)
    row = InteractiveTransaction.objects.get(pk=first.id)
    scope = Scope(row.organization_id, row.environment_id)
    with patch.object(admission, "QUEUE_WAIT_S", 0.02), ExitStack() as held:
        # As if two statements waited for what the transactions have locked.
        for _ in range(settings.SQL.running_per_environment):
            held.enter_context(ADMISSION.slot(scope))
        with ADMISSION.slot_for_end(scope):  # as if another commit ran
            refused = first.commit()
        assert (refused.status, refused.code) == (429, "too_many_queries")
        assert first.run("SELECT 1").code == "too_many_queries"
        # It is still open, and one commit at a time gets through.
        assert [one.commit().body["state"] for one in (first, second)] == ["committed"] * 2


def test_the_outcome_of_a_commit_is_unknown_after_a_move(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    row = InteractiveTransaction.objects.get(pk=ours.id)
    placed = Database.objects.get(environment_id=row.environment_id)
    real = TenantConnection.run

    def lose(self: TenantConnection, text: bytes) -> Any:
        result = real(self, text)
        if text == b"COMMIT":
            RetiredDatabase.objects.create(
                organization_id=row.organization_id,
                environment_id=row.environment_id,
                cluster=placed.cluster,
                dbname="left",
                drop_after=timezone.now(),
            )
            raise ConnectionLost
        return result

    with patch.object(TenantConnection, "run", lose):
        assert ours.commit().code == "outcome_unknown"


def test_a_failure_of_the_gateway_ends_the_transaction(admin: Caller) -> None:
    ours = begin(admin)
    with patch.object(Execution, "run", side_effect=ValueError), suppress(ValueError):
        ours.run("SELECT 1")
    assert ours.run("SELECT 1").code == "transaction_over"
