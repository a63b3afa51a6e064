"""A client that goes away takes its query with it."""

import socket
import time
from collections.abc import Iterator

import pytest

from common.web import client_presence
from tests.sqlgateway.support import Caller, backends_of


@pytest.fixture
def client() -> Iterator[socket.socket]:
    """Return the client's end of the connection that this thread answers to."""
    ours, theirs = socket.socketpair()
    client_presence.set_client_socket(ours)
    with ours, theirs:
        yield theirs
    client_presence.set_client_socket(None)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_sleep(60)",
        (
            "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL;"
            " END; END LOOP; END $$"
        ),
    ],
)
def test_the_query_of_a_client_that_is_gone_ends_at_once(
    alice: Caller, client: socket.socket, text: str
) -> None:
    # The database, a connection and its settings are there.
    alice.sql("SELECT 1")
    client.close()
    started = time.monotonic()

    answer = alice.sql(text)

    assert answer.status >= 400
    # It is cancelled within a second; what survives that is terminated half a second later.
    assert time.monotonic() - started < (1 if text.startswith("SELECT") else 3)
    assert backends_of(alice) == []


def test_a_write_of_a_client_that_is_gone_is_rolled_back(
    alice: Caller, client: socket.socket
) -> None:
    alice.sql("CREATE TABLE t (id int)")
    client.close()
    answer = alice.sql("INSERT INTO t VALUES (1); SELECT pg_sleep(60)")
    client_presence.set_client_socket(None)

    assert answer.code == "query_cancelled"
    assert alice.value("SELECT count(*) FROM t") == 0


def test_a_client_that_sends_its_next_request_early_is_not_gone(
    alice: Caller, client: socket.socket
) -> None:
    client.sendall(b"GET /v1/whoami HTTP/1.1\r\n")

    assert alice.value("SELECT count(pg_sleep(0.05))") == 1
    assert alice.value("SELECT 1") == 1
