"""Connections that end: what was never sent is tried again, or known not to have run."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings

from sqlgateway.databases.provisioning import database_for
from sqlgateway.pg import pool
from tests.sqlgateway.proxy import Proxy, proxy_before
from tests.sqlgateway.support import Caller
from tests.waiting import wait_until

pytestmark = pytest.mark.provisions

# An answer to the reset is longer, and arrives in one piece.
RESET_BYTES = 50


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Return a proxy before the tenants' server, through which the platform reaches it."""
    with (
        proxy_before(settings.SQL.cluster_url) as made,
        override_settings(SQL=replace(settings.SQL, cluster_url=made.url)),
    ):
        yield made
        pool.CONNECTION_POOL.clear()


def test_a_server_that_was_killed_behind_its_last_answer_is_asked_anew(
    proxy: Proxy, alice: Caller
) -> None:
    """The connection's end lies behind the whole answer to the reset; nothing was sent to it."""
    alice.sql("CREATE TABLE t (id int)")
    opened = proxy.accepted
    assert alice.value("SELECT 1") == 1
    assert proxy.accepted == opened
    wait_until(lambda: _has_been_reset(alice))
    proxy.cut()

    assert alice.sql("INSERT INTO t VALUES (1) RETURNING *").rows == [{"id": 1}]


def _has_been_reset(someone: Caller) -> bool:
    """True if the server has answered the reset of the last session of somebody's database."""
    (connection,) = pool.CONNECTION_POOL._idle[database_for(someone.scope).login("admin").key]
    return len(connection._wire._peek() or b"") > RESET_BYTES


@pytest.mark.parametrize(
    ("cut_at", "body"),
    [
        (b"BEGIN", {"queries": [{"query": "INSERT INTO t VALUES ($1)", "params": [1]}]}),
        (b"INSERT", {"query": "INSERT INTO t VALUES (($1::int[])[1])", "params": [[1]]}),
    ],
)
def test_a_request_whose_own_text_was_never_sent_is_known_not_to_have_run(
    proxy: Proxy, alice: Caller, cut_at: bytes, body: dict[str, object]
) -> None:
    """The connection ends at the gateway's BEGIN, or while the server parses a text."""
    alice.sql("CREATE TABLE t (id int)")
    proxy.cut_at = cut_at

    answer = alice.post(body)

    assert (answer.status, answer.code) == (503, "sql_unavailable")
    assert "Retry-After" in answer.headers
    assert alice.value("SELECT count(*) FROM t") == 0


def test_an_answer_that_is_complete_needs_no_connection_any_more(
    proxy: Proxy, alice: Caller
) -> None:
    alice.sql("CREATE TYPE mood AS ENUM ('calm'); CREATE TABLE t (mood mood)")
    proxy.cut_at = b"pg_catalog.pg_type"

    answer = alice.sql("INSERT INTO t VALUES ('calm') RETURNING mood")

    assert answer.rows == [{"mood": "calm"}]
    assert alice.value("SELECT count(*) FROM t") == 1
