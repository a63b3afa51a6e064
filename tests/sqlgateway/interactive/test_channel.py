"""The way from one web process to the one that owns a transaction."""

import json
import socket
from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest

from platform_site.lib import crypto
from sqlgateway.interactive import channel
from sqlgateway.interactive.channel import CHANNEL, Channel, OwnerAway
from sqlgateway.interactive.held import HELD
from tests.cast import Caller
from tests.sqlgateway.interactive.support import begin, sql


@pytest.fixture(autouse=True)
def _none_held() -> Iterator[None]:
    yield
    HELD.clear()


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


def _connect() -> socket.socket:
    host, _, port = CHANNEL.address().rpartition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def _nonce(link: socket.socket) -> str:
    size = int.from_bytes(link.recv(4), "big")
    return link.recv(size).decode()


def _answer_to(frame: bytes) -> bytes:
    with _connect() as link:
        _nonce(link)
        link.sendall(len(frame).to_bytes(4, "big") + frame)
        return link.recv(4)


def test_a_question_without_the_key_gets_no_answer() -> None:
    assert _answer_to(b"not encrypted") == b""
    # Encrypted, but for something else: what a row holds is no question.
    assert _answer_to(crypto.encrypt(json.dumps({"purpose": "other"})).encode()) == b""


def test_a_recorded_question_cannot_be_replayed() -> None:
    question = {"purpose": channel.QUESTION, "nonce": "0" * 32, "reply_nonce": "x"}
    with _connect() as link:
        question["nonce"] = _nonce(link)
    assert _answer_to(crypto.encrypt(json.dumps(question)).encode()) == b""


def test_a_long_frame_is_refused_by_its_length() -> None:
    with _connect() as link:
        _nonce(link)
        link.sendall((2**31).to_bytes(4, "big"))
        assert link.recv(1) == b""


def test_an_answer_of_somebody_else_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as impostor:
        address = f"127.0.0.1:{impostor.getsockname()[1]}"
        impostor.settimeout(0.2)
        with patch.object(channel, "HELLO_S", 0.2), pytest.raises(OwnerAway):
            channel.ask(address, {}, timeout_s=0.2)
