"""The owner of a transaction, from another process of its machine and from another machine."""

import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
import time_machine
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from common.web import client_presence
from sqlgateway import errors
from sqlgateway.models import InteractiveTransaction
from sqlgateway.run.execution import Execution
from sqlgateway.run.outcomes import RequestOutcome
from sqlgateway.transactions import operations, owner
from sqlgateway.transactions.machine import ProcessSocket
from sqlgateway.transactions.open_transactions import OPEN_TRANSACTIONS
from tests.cast import Caller, member, organization, signed_in
from tests.sqlgateway.transactions.support import PATH, Transaction, begin, sql
from tests.waiting import wait_until

SignIn = Callable[[str], Caller]


@pytest.fixture
def admin(signed_in_as: SignIn) -> Caller:
    """Return an admin with a table."""
    caller = signed_in_as("admin")
    sql(caller, "CREATE TABLE items (id int PRIMARY KEY, name text)")
    return caller


@contextmanager
def in_another_process() -> Iterator[None]:
    """Have requests received by a process that owns no transaction."""
    with patch.object(ProcessSocket, "is_own", return_value=False):
        yield


@contextmanager
def on_another_machine() -> Iterator[None]:
    """Have requests received by a machine with a data folder of its own."""
    with (
        TemporaryDirectory() as folder,
        override_settings(DATA_DIR=folder),
        patch.object(owner, "SOCKET", ProcessSocket(lambda question: question)),
    ):
        yield


def socket_of(ours: Transaction) -> Path:
    """Return the socket of a transaction's owner."""
    row = InteractiveTransaction.objects.get(pk=ours.id)
    return Path(settings.DATA_DIR, "run", row.owner)


def test_another_process_s_requests_reach_the_owner(admin: Caller) -> None:
    ours = begin(admin)
    with in_another_process():
        assert ours.run("INSERT INTO items VALUES ($1, $2)", [1, "é\u0001"]).status == 200
        assert ours.run("SELECT name FROM items").body["rows"] == [{"name": "é\u0001"}]
        refused = ours.run("SELECT nonesuch")
        assert (refused.body["sqlstate"], refused.body["position"]) == ("42703", 8)
        assert ours.send(9, "SELECT 1").body["expected"] == 4
    assert ours.roll_back().status == 204
    second = begin(admin)
    with in_another_process():
        second.run("INSERT INTO items VALUES (2)")
        assert second.commit().body["state"] == "committed"
    assert sql(admin, "SELECT id FROM items") == [[2]]


@pytest.mark.parametrize("depth", [300, 1000])
@pytest.mark.parametrize("is_own", [True, False])
def test_parameters_too_deep_to_be_forwarded_are_refused(
    admin: Caller, depth: int, is_own: bool
) -> None:
    body = b'{"number": 1, "query": "SELECT $1", "params": %b}' % (b"[" * depth + b"]" * depth)
    ours = begin(admin)

    with patch.object(ProcessSocket, "is_own", return_value=is_own):
        refused = admin.post(f"{ours.path}/statements", body)
        assert ours.run("SELECT 1 AS one").body["rows"] == [{"one": 1}]

    assert (refused.status, refused.body["errors"][0]["code"]) == (400, "too_deep")


def test_a_client_that_goes_away_takes_its_forwarded_statement_with_it(admin: Caller) -> None:
    ours = begin(admin)
    here, there = socket.socketpair()
    real = Execution.run

    def hang_up_first(self: Execution) -> RequestOutcome:
        there.close()
        return real(self)

    with (
        here,
        in_another_process(),
        patch.object(client_presence, "client_fd", _only_of_this_thread(here)),
        patch.object(Execution, "run", hang_up_first),
    ):
        answer = ours.run("SELECT pg_sleep(60)")

    assert answer.code == "query_cancelled"
    # The owner ends the statement, and the transaction with it, long before the deadline.
    wait_until(
        lambda: ours.id not in OPEN_TRANSACTIONS._open, timeout_s=settings.SQL.timeout_ms / 3000
    )
    assert ours.run("SELECT 1").body["outcome"] == "rolled_back"


def _only_of_this_thread(client: socket.socket) -> Callable[[], int | None]:
    """Return the client of this thread; the threads of the owner's socket have theirs."""
    real, here = client_presence.client_fd, threading.get_ident()
    return lambda: client.fileno() if threading.get_ident() == here else real()


def test_a_forwarded_commit_is_read_to_its_end_for_a_client_that_went_away(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    here, there = socket.socketpair()
    there.close()
    with (
        here,
        in_another_process(),
        patch.object(client_presence, "client_fd", _only_of_this_thread(here)),
    ):
        assert ours.commit().body["state"] == "committed"
    assert sql(admin, "SELECT id FROM items") == [[1]]


def test_only_this_user_can_connect_to_the_owner(admin: Caller) -> None:
    path = socket_of(begin(admin))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.stat().st_uid == path.parent.stat().st_uid == os.geteuid()
    assert len(os.fsencode(path)) < 100


def test_the_owner_checks_the_principal_of_a_forwarded_question(admin: Caller) -> None:
    ours = begin(admin)
    sent: list[dict[str, Any]] = []
    real = ProcessSocket.ask

    def record(self: ProcessSocket, name: str, question: dict[str, Any], **options: Any) -> Any:
        sent.append(dict(question))
        return real(self, name, question, **options)

    with in_another_process(), patch.object(ProcessSocket, "ask", record):
        ours.run("INSERT INTO items VALUES (1)")
    (question,) = sent

    for position, other in enumerate([-1, -1, "someone", "another session", "reader"]):
        holder = list(question["holder"])
        holder[position] = other
        for call in ({"number": 2}, {"call": "xid"}, {"call": "end", "commit": True}):
            answer = _asked(socket_of(ours), {**question, "holder": holder, **call})
            assert answer["error"]["class"] == "TransactionNotFound", (position, call)
    assert ours.commit().body["state"] == "committed"
    assert sql(admin, "SELECT id FROM items") == [[1]]


def _asked(path: Path, question: dict[str, Any]) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as link, link.makefile("rb") as lines:
        link.connect(str(path))
        link.sendall(json.dumps(question).encode() + b"\n")
        answer: dict[str, Any] = json.loads(lines.readline())
    return answer


def test_sockets_of_ended_processes_are_removed_and_others_stay(admin: Caller) -> None:
    live = socket_of(begin(admin))
    label = live.name[:8]
    dead, of_another_machine = live.with_name(f"{label}-dead"), live.with_name("12345678-dead")
    for path in (dead, of_another_machine):
        with socket.socket(socket.AF_UNIX) as ended:
            ended.bind(str(path))

    newer = ProcessSocket(lambda question: question)

    assert newer.label == label
    assert live.with_name(newer.name).is_socket()
    assert (live.exists(), dead.exists(), of_another_machine.exists()) == (True, False, True)
    of_another_machine.unlink()


def test_an_id_begins_with_the_label_of_its_machine_which_tells_nothing(admin: Caller) -> None:
    answers = [admin.post(PATH, {}) for _ in range(2)]

    (label,) = {answer.body["id"][:8] for answer in answers}
    assert label == ProcessSocket(lambda question: question).label
    assert [each.headers["Location"] for each in answers] == [
        f"{PATH}/{each.body['id']}" for each in answers
    ]
    # A machine that was copied together with its folder.
    with patch.object(socket, "gethostname", return_value="copy"):
        assert ProcessSocket(lambda question: question).label != label


def test_a_request_to_another_machine_changes_nothing(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    with on_another_machine():
        refused = [ours.send(2, "INSERT INTO items VALUES (2)"), ours.commit(), ours.roll_back()]
        assert {(each.status, each.code) for each in refused} == {(409, "transaction_elsewhere")}
        assert admin.get(ours.path).body["state"] == "open"

    assert ours.run("INSERT INTO items VALUES (3)").status == 200
    assert ours.commit().body["state"] == "committed"
    assert sql(admin, "SELECT id FROM items ORDER BY id") == [[1], [3]]
    with on_another_machine():
        assert ours.commit().body["state"] == "committed"
        assert ours.run("SELECT 1").body["outcome"] == "committed"


def test_another_machine_tells_strangers_no_more_than_the_owner(
    admin: Caller, signed_in_as: SignIn
) -> None:
    ours = begin(admin)
    strangers = (
        signed_in_as("operator"),
        signed_in(member(organization("Charlie's"), "charlie@example.com")),
    )
    forged = ours.id.replace(ours.id[:8], "00000000", 1)
    paths = (ours.path, f"{PATH}/{forged}", f"{PATH}/..%2f..%2frun", f"{PATH}/{ours.id[:8]}-..")

    def seen(caller: Caller) -> set[tuple[int, str]]:
        body = {"number": 1, "query": "SELECT 1"}
        answers = [caller.post(f"{path}/statements", body) for path in paths]
        for path in paths:
            answers += [caller.post(f"{path}/commit"), caller.call("DELETE", path)]
        return {(answer.status, answer.code) for answer in answers}

    for stranger in strangers:
        there = seen(stranger)
        with on_another_machine():
            assert seen(stranger) == there
        assert there <= {(404, "transaction_not_found"), (404, "not_found")}
    assert ours.run("SELECT 1 AS one").body["rows"] == [{"one": 1}]


def test_another_machine_knows_the_outcome_once_the_time_is_over(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    later = timezone.now() + timedelta(seconds=settings.SQL.transaction_idle_s + 3)

    with on_another_machine(), time_machine.travel(later, tick=False):
        answer = ours.run("SELECT 1")
        assert (answer.status, answer.body["outcome"]) == (410, "rolled_back")

    # The owner, whose clock may differ, does not commit it afterwards.
    assert ours.commit().body["outcome"] == "rolled_back"
    OPEN_TRANSACTIONS.clear()
    assert sql(admin, "SELECT id FROM items") == []


def test_an_unfinished_commit_is_left_to_its_machine(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    with patch.object(operations, "_commit", side_effect=errors.SqlBusy):
        assert ours.commit().code == "sql_busy"

    with on_another_machine():
        assert (ours.commit().code, ours.roll_back().code) == ("transaction_elsewhere",) * 2
        later = timezone.now() + timedelta(seconds=settings.SQL.transaction_idle_s + 3)
        with time_machine.travel(later, tick=False):
            unknown = ours.commit()
    assert (unknown.code, unknown.body["retryable"]) == ("outcome_unknown", True)

    assert ours.commit().body["state"] == "committed"
    assert sql(admin, "SELECT id FROM items") == [[1]]
