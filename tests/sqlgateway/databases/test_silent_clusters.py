"""A tenants' cluster that falls silent: nothing is closed, and nothing comes back."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial

import pytest
from django.conf import settings
from django.test import override_settings

from platform_site import settings as platform_settings
from sqlgateway.clusters import silence
from sqlgateway.clusters.servers import NETWORK_LIMITS, address_without_row, administer
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Cluster
from sqlgateway.pg import pool
from sqlgateway.pg.watchdog import WATCHDOG
from sqlgateway.run import gateway
from tests.sqlgateway import support
from tests.sqlgateway.proxy import Proxy, proxy_before
from tests.sqlgateway.support import Answer, Caller
from tests.waiting import wait_until

pytestmark = [pytest.mark.provisions, pytest.mark.slow]


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Return a proxy before the tenants' server, through which the platform reaches it."""
    with (
        proxy_before(settings.SQL.cluster_url) as made,
        override_settings(SQL=replace(settings.SQL, cluster_url=made.url)),
    ):
        yield made
        made.is_silent = False
        pool.CONNECTION_POOL.clear()
        silence._RETRY_AT.clear()


def _timed(someone: Caller, query: str) -> tuple[Answer, float]:
    started = time.monotonic()
    answer = someone.sql(query)
    return answer, time.monotonic() - started


def test_a_statement_on_a_silent_cluster_ends_soon_after_its_deadline(
    proxy: Proxy, alice: Caller
) -> None:
    alice.sql("CREATE TABLE t (id int)")
    threading.Timer(0.5, lambda: setattr(proxy, "is_silent", True)).start()

    started = time.monotonic()
    answer = alice.sql("INSERT INTO t SELECT 1 FROM pg_sleep(20)", timeout_ms=1000)

    assert (answer.status, answer.code) == (502, "outcome_unknown")
    assert time.monotonic() - started < 12


def test_after_a_timeout_the_next_requests_do_not_wait(proxy: Proxy, alice: Caller) -> None:
    alice.value("SELECT 1")
    pool.CONNECTION_POOL.clear()
    proxy.is_silent = True
    assert alice.sql("SELECT 1").status == 503

    again, elapsed_s = _timed(alice, "SELECT 1")

    assert (again.status, again.code, again.headers["Retry-After"]) == (503, "sql_unavailable", "2")
    assert elapsed_s < 0.5
    proxy.is_silent = False
    wait_until(lambda: alice.sql("SELECT 1").status == 200)


def test_a_server_that_refuses_a_role_slowly_is_not_silent(
    proxy: Proxy, alice: Caller, charlie: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a tenant that changes its role's password would stop all others."""
    monkeypatch.setattr(silence, "LATE_S", 0.0)
    for caller in (alice, charlie):
        caller.value("SELECT 1")
    alice.sql("ALTER ROLE CURRENT_USER PASSWORD 'other'")
    pool.CONNECTION_POOL.clear()

    assert alice.value("SELECT 1") == 1
    assert charlie.value("SELECT 1") == 1


def test_every_connection_to_a_cluster_gives_up_a_silent_host(proxy: Proxy, alice: Caller) -> None:
    alice.value("SELECT 1")
    connection = gateway.connect(alice.scope, "admin")
    words = connection.psycopg_connection.info.get_parameters()
    pool.CONNECTION_POOL.discard(connection)

    assert {name: words[name] for name in NETWORK_LIMITS} == NETWORK_LIMITS


def test_a_silent_cluster_delays_no_deadline_of_another(
    proxy: Proxy, alice: Caller, second: Cluster
) -> None:
    alice.value("SELECT 1")
    bob = support.caller(support.organization("Bob's"))
    assert bob.value("SELECT 1") == 1
    assert bob.database.cluster_id != alice.database.cluster_id
    connections = [gateway.connect(alice.scope, "admin") for _ in range(3)]
    proxy.is_silent = True
    for connection in connections:
        WATCHDOG.cancel(WATCHDOG.watch(connection, time.monotonic() + 60))

    answer = bob.sql("SELECT pg_sleep(20)", timeout_ms=300)

    assert (answer.status, answer.code) == (400, "query_timeout")
    for connection in connections:
        pool.CONNECTION_POOL.discard(connection)


def test_a_silent_server_that_is_no_cluster_says_nothing_of_another(proxy: Proxy) -> None:
    """As where a restore, or the addition of a cluster, is tried with two servers."""
    proxy.is_silent = True
    with pytest.raises(EngineUnavailable), administer(address_without_row(proxy.url)):
        pass
    with administer(address_without_row(platform_settings.SQL.cluster_url)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_cluster_whose_requests_hold_all_slots_delays_no_other(
    proxy: Proxy, committed: Caller, second: Cluster
) -> None:
    committed.value("SELECT 1")
    bob = support.caller(support.organization("Bob's"))
    assert bob.value("SELECT 1") == 1
    assert bob.database.cluster_id != committed.database.cluster_id
    with (
        override_settings(SQL=replace(settings.SQL, running=1, queue=1)),
        ThreadPoolExecutor(2) as executor,
    ):
        sleep = partial(committed.sql, "SELECT pg_sleep(20)", timeout_ms=4000)
        silent = [executor.submit(copy_context().run, sleep) for _ in range(2)]
        wait_until(lambda: len(support.backends_of(committed)) == 1)
        proxy.is_silent = True

        for _ in range(3):
            answer, elapsed_s = _timed(bob, "SELECT 1")
            assert (answer.status, elapsed_s < 1) == (200, True), answer.body
        assert not silent[0].done()
