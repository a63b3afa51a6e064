"""The way from one web process to the one that owns a transaction."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from unittest.mock import patch

import pytest
from django.conf import settings

from common import crypto
from common.web import client_presence
from sqlgateway.run.execution import Execution
from sqlgateway.run.outcomes import RequestOutcome
from sqlgateway.transactions import channel
from sqlgateway.transactions.channel import Channel, OwnerUnavailable
from sqlgateway.transactions.open_transactions import OPEN_TRANSACTIONS
from sqlgateway.transactions.owner import CHANNEL
from tests.cast import Caller
from tests.sqlgateway.transactions.support import begin, sql
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def _none_held() -> Iterator[None]:
    yield
    OPEN_TRANSACTIONS.clear()


@pytest.fixture
def admin(signed_in_as: Callable[[str], Caller]) -> Caller:
    """Return an admin with a table."""
    caller = signed_in_as("admin")
    sql(caller, "CREATE TABLE items (id int PRIMARY KEY, name text)")
    return caller


def test_another_process_s_requests_reach_the_owner(admin: Caller) -> None:
    ours = begin(admin)
    with patch.object(Channel, "is_own", return_value=False):
        assert ours.run("INSERT INTO items VALUES ($1, $2)", [1, "é\u0001"]).status == 200
        assert ours.run("SELECT name FROM items").body["rows"] == [{"name": "é\u0001"}]
        refused = ours.run("SELECT nonesuch")
        assert (refused.body["sqlstate"], refused.body["position"]) == ("42703", 8)
        assert ours.send(9, "SELECT 1").body["expected"] == 4
    assert ours.roll_back().status == 204
    second = begin(admin)
    with patch.object(Channel, "is_own", return_value=False):
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

    with patch.object(Channel, "is_own", return_value=is_own):
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
        patch.object(Channel, "is_own", return_value=False),
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
    """Return what says which client this thread answers to; the channel's threads have theirs."""
    real, here = client_presence.client_fd, threading.get_ident()
    return lambda: client.fileno() if threading.get_ident() == here else real()


def test_a_commit_is_heard_to_its_end_by_a_client_that_went_away(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("INSERT INTO items VALUES (1)")
    here, there = socket.socketpair()
    there.close()
    with (
        here,
        patch.object(Channel, "is_own", return_value=False),
        patch.object(client_presence, "client_fd", _only_of_this_thread(here)),
    ):
        assert ours.commit().body["state"] == "committed"
    assert sql(admin, "SELECT id FROM items") == [[1]]


def _connect() -> socket.socket:
    host, _, port = CHANNEL.address().rpartition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def _nonce(link: socket.socket) -> str:
    size = int.from_bytes(link.recv(4), "big")
    return link.recv(size).decode()


def _frame(message: dict[str, str]) -> bytes:
    frame = crypto.encrypt(json.dumps(message)).encode()
    return len(frame).to_bytes(4, "big") + frame


def _answer_to(frame: bytes) -> bytes:
    with _connect() as link:
        _nonce(link)
        link.sendall(len(frame).to_bytes(4, "big") + frame)
        return link.recv(4)


def _is_closed_while_a_byte_arrives_at_a_time(link: socket.socket) -> bool:
    """Send the beginning of a frame slowly; True if the other side does not wait for its end."""
    link.settimeout(0.02)
    for byte in (2**9).to_bytes(4, "big") + b"x" * 100:
        try:
            link.sendall(bytes([byte]))
            if link.recv(1) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_a_question_without_the_key_gets_no_answer() -> None:
    assert _answer_to(b"not encrypted") == b""
    # Encrypted, but for something else: what a row holds is no question.
    assert _answer_to(crypto.encrypt(json.dumps({"purpose": "other"})).encode()) == b""


def test_a_recorded_question_cannot_be_replayed() -> None:
    with _connect() as link:
        recorded = _nonce(link)
    proof = {"purpose": channel.PROOF, "nonce": recorded}
    question = {"purpose": channel.QUESTION, "nonce": recorded, "reply_nonce": "x"}
    assert _answer_to(crypto.encrypt(json.dumps(proof)).encode()) == b""
    with _connect() as link:
        link.sendall(_frame({"purpose": channel.PROOF, "nonce": _nonce(link)}) + _frame(question))
        assert link.recv(4) == b""


def test_a_question_without_a_proof_gets_no_answer() -> None:
    with _connect() as link:
        question = {"purpose": channel.QUESTION, "nonce": _nonce(link), "reply_nonce": "x"}
        link.sendall(_frame(question))
        assert link.recv(4) == b""


def test_silent_connections_do_not_keep_callers_out(admin: Caller) -> None:
    ours = begin(admin)
    with ExitStack() as strangers:
        for _ in range(channel.MAX_CALLERS + channel.MAX_UNPROVEN + 8):
            strangers.enter_context(_connect())
        with patch.object(Channel, "is_own", return_value=False):
            assert ours.run("SELECT 1").status == 200
            assert ours.commit().body["state"] == "committed"


@pytest.mark.parametrize("has_proof", [False, True])
def test_a_frame_has_one_deadline_however_slowly_it_arrives(*, has_proof: bool) -> None:
    with patch.object(channel, "FRAME_S", 0.1), _connect() as link:
        proof = {"purpose": channel.PROOF, "nonce": _nonce(link)}
        if has_proof:
            link.sendall(_frame(proof))
        assert _is_closed_while_a_byte_arrives_at_a_time(link)


def test_an_answer_has_one_deadline_however_slowly_it_arrives() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        asked = threads.submit(channel.ask, address, {}, timeout_s=0.1)
        link, _ = listener.accept()
        with link:
            link.sendall((32).to_bytes(4, "big") + b"0" * 32)
            for byte in b"\x00\x00\x02\x00" + b"x" * 100:
                wait([asked], timeout=0.02)
                if asked.done():
                    break
                link.sendall(bytes([byte]))
            assert asked.done()
        with pytest.raises(OwnerUnavailable):
            asked.result(0)


def test_a_long_frame_is_refused_by_its_length() -> None:
    with _connect() as link:
        _nonce(link)
        link.sendall((2**31).to_bytes(4, "big"))
        assert link.recv(1) == b""


def test_an_answer_of_somebody_else_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as impostor:
        address = f"127.0.0.1:{impostor.getsockname()[1]}"
        impostor.settimeout(0.2)
        with patch.object(channel, "FRAME_S", 0.2), pytest.raises(OwnerUnavailable):
            channel.ask(address, {}, timeout_s=0.2)
